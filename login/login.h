/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* One call of the module: for whom, how, and who hears of it. */

#include "login/args.h"
#include "login/run_as.h"
#include "login/talk.h"

struct login {
    struct login_talk talk;
    struct login_args args;
    struct login_user user;
    const char *service; /* of PAM: "sshd" */
    char **env;          /* of what runs for the user, made when something does */
};

/* Fill *l. False when this user has no login volumes by the rules of the module: unknown, below
 * min_uid, or we are not root and could not act for him. */
bool login_begin(struct login *l, pam_handle_t *pamh, int flags, int argc, const char **argv);
/* Is this a session in which somebody logs in, or one that only runs something (left out)? */
bool login_counts(const struct login *l);
void login_end(struct login *l);
