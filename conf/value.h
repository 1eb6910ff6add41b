/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The value of one setting, whatever stands beside it. */

#include "base/report.h"
#include "conf/config.h"

/* Is this what its key takes? Of an unknown key nothing is said. -EUCLEAN, -ENOMEM. */
int conf_value_check(const struct conf_said *s, struct report *rep);

/* The word of -o that a setting says; NULL: none, as "ro = no" does, and keys of volumes alone. */
const char *conf_word_of(const char *key, const char *value);
/* The same with its value, and "\," for the commas in that; "" for none. The caller's to free;
 * NULL: no memory. */
char *conf_word_text(const struct conf_said *s);
