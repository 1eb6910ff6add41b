/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A report for who may try again: errors are held back until it is known that nobody will, all else
 * goes on at once. */

#include "base/report.h"

struct report_held {
    struct report rep; /* to hand down */
    struct report *to;
    char error[REPORT_LINE]; /* the last one; "" none */
};

/* Words go to to, which may be NULL, as its own. */
void report_held_init(struct report_held *h, struct report *to);
/* There is another try: what was held back is forgotten. */
void report_held_forget(struct report_held *h);
/* There is none: say what was held back, if anything was. */
void report_held_say(struct report_held *h);
