/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/keys.h"

/* A word of -o is a key by standing in the table of options.c. Here is what more is to know of some
 * of them, and the keys that are no words of -o. */

#include "conf/options.h"

#include <string.h>

static const struct conf_key own[] = {
    {"container", "PATH", "the file or block device that holds the encrypted disk", CONF_PATH,
     .in_defaults = false},
    {"mountpoint", "PATH", "where it is mounted (mnt/NAME in the runtime folder)", CONF_PATH,
     .in_defaults = false},
    {"filesystem", "auto|none", "mount what is on the disk, or show the image alone (none)",
     CONF_FILESYSTEM, .in_defaults = true},
    {"login", "yes|no", "does it open and close with its owner's session? (no)", CONF_SWITCH,
     .in_defaults = true},
    {"after", "NAME", "the volume that is to be mounted before this one", CONF_VOLUME,
     .in_defaults = false},
    {"owner", "USER", "whose volume and whose image it is (root)", CONF_USER, .in_defaults = false,
     .system_only = true},
};
#define N_OWN ((unsigned)(sizeof(own) / sizeof(own[0])))

/* help is NULL where the word's own is true of a key, too. */
static const struct {
    const char *name, *help;
    enum conf_kind kind;
    bool in_defaults;
} special[] = {
    {"header", NULL, CONF_PATH, false},
    {"keyfile", "the key file", CONF_PATH, true},
    {"passphrase-file", "read the passphrase from FILE", CONF_PATH, true},
    {"name", "what list shows (the NAME of the volume)", CONF_OPTION, false},
};

bool conf_key(struct conf_key *ret, unsigned i)
{
    const struct conf_word_help *w = i < N_OWN ? NULL : conf_options_help(i - N_OWN);

    if (i < N_OWN) {
        *ret = own[i];
        return true;
    }
    if (w == NULL)
        return false;
    *ret = (struct conf_key){.name = w->name,
                             .value = w->value != NULL ? w->value : "yes|no",
                             .help = w->help,
                             .kind = CONF_OPTION,
                             .in_defaults = true};
    for (size_t s = 0; s < sizeof(special) / sizeof(special[0]); s++)
        if (strcmp(special[s].name, w->name) == 0) {
            ret->help = special[s].help != NULL ? special[s].help : w->help;
            ret->kind = special[s].kind;
            ret->in_defaults = special[s].in_defaults;
        }
    return true;
}

bool conf_key_find(struct conf_key *ret, const char *name)
{
    for (unsigned i = 0; conf_key(ret, i); i++)
        if (strcmp(ret->name, name) == 0)
            return true;
    return false;
}

bool conf_key_is_path(const char *name)
{
    struct conf_key k;

    return conf_key_find(&k, name) && k.kind == CONF_PATH;
}
