/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What stands for a place of a user in the paths of a configuration file. */

#include "base/report.h"

#include <sys/types.h>

enum conf_xdg { CONF_XDG_CONFIG, CONF_XDG_DATA, CONF_XDG_STATE, CONF_XDG_CACHE, CONF_XDG_RUNTIME };
#define CONF_XDGS 5

struct conf_user {
    uid_t uid;
    char *name, *home;
    char *xdg[CONF_XDGS]; /* absolute */
};
/* The caller. Root's home is what the system's list of users says, whatever HOME and the XDG
 * variables are, since those may still be another user's. -ENOENT who is not on that list and has
 * no HOME (said), -ENOMEM. */
int conf_user_caller(struct conf_user *ret, struct report *rep);
/* Another user by name, with the places that the XDG rules give where no variable is set. -ENOENT,
 * without words; -ENOMEM. */
int conf_user_named(struct conf_user *ret, const char *name);
/* Fine on a zeroed struct. */
void conf_user_done(struct conf_user *u);
#define AUTO_CONF_USER __attribute__((cleanup(conf_user_done)))

/* ~ and ~/ at the beginning, %u the user's name, %h his home, %% a percent sign, ${XDG_CONFIG_HOME}
 * and ${XDG_DATA_HOME}, _STATE_HOME, _CACHE_HOME, ${XDG_RUNTIME_DIR}. ret is the caller's to free,
 * at most PATH_MAX - 1 bytes. -EUCLEAN something else behind % or ${, or too long; *why says what
 * is allowed (static). -ENOMEM. */
int conf_expand(char **ret, const char *text, const struct conf_user *u, const char **why);
