/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Ask before something that cannot be undone. Every command that asks has --yes, which answers. */

#include "base/report.h"

#include <stdbool.h>

enum { CMD_OPT_YES = 640 };

/* A row for a long option table, and its line for the usage text. */
/* clang-format off */
#define CMD_YES_OPTION {"yes", no_argument, NULL, CMD_OPT_YES}
#define CMD_YES_USAGE                                                                              \
    "  --yes                    ask nothing\n"
/* clang-format on */

/* Show question, a sentence or more that says what is going to happen, on the terminal, and wait
 * for word to be typed ("yes", the name of a container). With yes set nothing is shown or asked.
 * -ECANCELED something else was typed (said); -EINVAL there is no terminal (said, naming --yes).
 * Ctrl-C ends the program: ask before anything is half done. */
int cmd_confirm(bool yes, const char *question, const char *word, struct report *rep);
