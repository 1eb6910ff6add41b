/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The configuration files as volumes: what each [volume NAME] results in together with the
 * [defaults], and which line of which file says so.
 *
 * A system file is one below /etc; a user's own comes after them. His [defaults] come over the
 * system's, and his [volume NAME] stands in the place of one of that name there. */

#include "base/report.h"
#include "conf/options.h"

#include <stdbool.h>
#include <stddef.h>

struct conf_said {
    const char *key;
    char *value; /* ~ % and ${} replaced in what names a file */
    const char *file;
    unsigned line;
    bool by_default; /* stands in [defaults] */
};

struct conf_volume {
    const char *name, *file; /* file and line of [volume NAME] */
    unsigned line;
    struct conf_said *said; /* those of [defaults] that hold for it, then its own */
    unsigned n_said;
    const char *container;          /* absolute */
    const char *mountpoint;         /* absolute; NULL: not said */
    const char *owner, *after;      /* or NULL */
    bool filesystem, login, system; /* filesystem: mount what is on the disk, not the image alone */
};

struct conf; /* owns all that the above points to */
int conf_new(struct conf **ret);
void conf_free(struct conf *c);

/* Add the text of one file, system files first. Says every fault, "FILE:LINE: why", and goes on.
 * -EUCLEAN there were some, -ENOMEM. */
int conf_add(struct conf *c, const char *file, bool system, const char *text, size_t len,
             struct report *rep);
/* After the last: check every key and value, and make the volumes. The same errors; and -ENOENT as
 * conf_user_caller(). */
int conf_settle(struct conf *c, struct report *rep);

/* In the order of the files; NULL after the last. */
const struct conf_volume *conf_volume(const struct conf *c, unsigned i);
const struct conf_volume *conf_find(const struct conf *c, const char *name);

/* Apply v's mount options, its name and its owner to a struct that holds none yet. -EINVAL as
 * conf_options_apply(), which conf_settle() has refused already. */
int conf_volume_apply(struct conf_mount *m, const struct conf_volume *v, struct report *rep);
