/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The words of -o (and, with the same names, of the configuration files) as one struct. */

#include "base/report.h"
#include "fuse/serve.h"
#include "volume/volume.h"

struct conf_mount {
    struct vol_spec vol;
    struct serve_spec serve;
    char *words; /* owned: what the pointers above point into */
};
void conf_mount_init(struct conf_mount *m);
void conf_mount_done(struct conf_mount *m);

/* Apply "word,word=value,..." ("\," is a comma inside a value), later words win. Words that only
 * mount(8) and fstab understand are ignored (defaults auto noauto nofail _netdev user nouser users
 * owner group x-*, rw, and the flags nosuid nodev that are on anyway). -EINVAL: which word, and what
 * is allowed. May be called several times on one struct. */
int conf_options_apply(struct conf_mount *m, const char *words, struct report *rep);

/* All words with one line of help each, for --help: name, value's form or NULL, help. */
struct conf_word_help {
    const char *name, *value, *help;
};
const struct conf_word_help *conf_options_help(unsigned *n);
