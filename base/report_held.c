/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/report_held.h"

/* A line comes here when it is complete, with the words of its beginning and escaped; so it is
 * handed on as it is, past what to would put around it. */

#include "base/auto.h"

#include <stdio.h>

static void pass_on(const struct report_held *h, enum report_level level, const char *text)
{
    if (h->to != NULL)
        h->to->say(h->to, level, text);
}

static void held_say(struct report *rep, enum report_level level, const char *text)
{
    struct report_held *h = container_of(rep, struct report_held, rep);

    if (level == REPORT_ERROR)
        snprintf(h->error, sizeof(h->error), "%s", text);
    else
        pass_on(h, level, text);
}

void report_held_init(struct report_held *h, struct report *to)
{
    *h = (struct report_held){.to = to};
    if (to != NULL)
        h->rep = *to;
    h->rep.say = held_say;
}

void report_held_forget(struct report_held *h)
{
    h->error[0] = '\0';
}

void report_held_say(struct report_held *h)
{
    if (h->error[0] != '\0')
        pass_on(h, REPORT_ERROR, h->error);
    report_held_forget(h);
}
