/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "login/run_as.h"

/* The environment of what runs as the user: HOME, USER, LOGNAME, SHELL and PATH of our making, and
 * of what the PAM handle holds (may be NULL) XDG_RUNTIME_DIR, LANG and LC_*. Nothing of the host's
 * own. *ret ends with NULL and is released by login_environment_done(). -ENOMEM. */
int login_environment(char ***ret, const struct login_user *user, const char *const *pam_env);
/* NULL is fine. */
void login_environment_done(char **env);
