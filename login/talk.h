/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the module has to say: to the log of the machine, and through the host to who logs in. */

#include "base/report.h"
#include "base/secret.h"

#include <security/pam_modules.h>
#include <stdbool.h>

struct login_talk {
    struct report rep; /* errors and warnings, and what is worth a line */
    pam_handle_t *pamh;
    bool silent; /* PAM_SILENT: the log alone */
    bool debug;
};
void login_talk_init(struct login_talk *t, pam_handle_t *pamh, bool silent);

/* To the log, when debug is on. */
void login_debug(const struct login_talk *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Each line of what a program printed on stderr: as an error when it failed, else to the log alone:
 * that keys could be swapped, say, is no news at each login. */
void login_talk_lines(struct login_talk *t, char *text, bool failed);
/* Ask once, without echo. -ENOTTY the host cannot; -ENODATA nothing was typed; -ENOMEM. */
int login_ask(struct login_talk *t, struct secret *ret, const char *about);
