/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The keys of the configuration files: those of volumes, and every word of -o (conf/options.h). */

#include <stdbool.h>

enum conf_kind { CONF_OPTION, CONF_PATH, CONF_SWITCH, CONF_FILESYSTEM, CONF_VOLUME, CONF_USER };

struct conf_key {
    const char *name;
    const char *value; /* the form of what it takes: "PATH", "yes|no" */
    const char *help;  /* one line; what is said in () in it holds when nobody says anything */
    enum conf_kind kind;
    bool in_defaults; /* may stand in [defaults] too */
    bool system_only; /* stands in files below /etc only */
};
/* In the order for help, the words of -o last. Also a key's check of existence: false after the
 * last, or without one of that name. */
bool conf_key(struct conf_key *ret, unsigned i);
bool conf_key_find(struct conf_key *ret, const char *name);

/* Are ~ % and ${} replaced in the values of this key? */
bool conf_key_is_path(const char *name);
