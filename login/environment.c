/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/environment.h"

/* A list of what may pass and not of what may not: a variable that a loader or a library obeys is
 * harmless to us, since all runs as the user, but what the host has in its own environment may be
 * none of his business. */

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_OF_ALL "/usr/local/bin:/usr/bin:/bin"
#define OURS 5

static bool may_pass(const char *entry)
{
    return strncmp(entry, "XDG_RUNTIME_DIR=", 16) == 0 || strncmp(entry, "LANG=", 5) == 0 ||
           strncmp(entry, "LC_", 3) == 0;
}

static char *pair(const char *name, const char *value)
{
    char *text;

    return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

int login_environment(char ***ret, const struct login_user *user, const char *const *pam_env)
{
    const char *const ours[OURS][2] = {{"HOME", user->home},
                                       {"USER", user->name},
                                       {"LOGNAME", user->name},
                                       {"SHELL", user->shell},
                                       {"PATH", PATH_OF_ALL}};
    size_t n = 0, n_pam = 0;
    char **env;

    while (pam_env != NULL && pam_env[n_pam] != NULL)
        n_pam++;
    env = calloc(OURS + n_pam + 1, sizeof(*env));
    if (env == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < OURS + n_pam; i++) {
        if (i >= OURS && !may_pass(pam_env[i - OURS]))
            continue;
        env[n] = i < OURS ? pair(ours[i][0], ours[i][1]) : strdup(pam_env[i - OURS]);
        if (env[n++] == NULL) {
            login_environment_done(env);
            return -ENOMEM;
        }
    }
    *ret = env;
    return 0;
}

void login_environment_done(char **env)
{
    for (size_t i = 0; env != NULL && env[i] != NULL; i++)
        free(env[i]);
    free(env);
}
