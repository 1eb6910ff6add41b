/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The words of -o (and, with the same names, of the configuration files) as one struct. */

#include "base/report.h"
#include "fuse/serve.h"
#include "volume/volume.h"

struct conf_text;
struct conf_mount {
    struct vol_spec vol;
    struct serve_spec serve;
    struct conf_text *texts; /* owned: what the pointers above point into */
};
void conf_mount_init(struct conf_mount *m);
void conf_mount_done(struct conf_mount *m);

/* Apply "word,word=value,..." ("\," is a comma inside a value). May be called several times on one
 * struct: later words win, keyfile= adds; words that contradict each other within one list are
 * refused. Words that only mount(8) and fstab understand are ignored (defaults auto noauto nofail
 * _netdev user nouser users owner group x-*, rw, and the flags nosuid nodev noexec that change
 * nothing here). -EINVAL: which word, and what is allowed; words before it have been applied. */
int conf_options_apply(struct conf_mount *m, const char *words, struct report *rep);
/* Is "word" or "word=value" one that conf_options_apply knows, whatever its value? */
bool conf_options_knows(const char *word);
/* Are these two words that exclude each other? A word excludes itself never. */
bool conf_options_exclude(const char *a, const char *b);

/* The words in the table's order, for --help: name, the value's form or NULL, one line of help.
 * NULL after the last. */
struct conf_word_help {
    const char *name, *value, *help;
};
const struct conf_word_help *conf_options_help(unsigned i);
