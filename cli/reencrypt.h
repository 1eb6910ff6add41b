/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Which key slots go on opening a container under its new volume key: each has to be opened now,
 * for it is wrapped anew with what opens it. */

#include "cli/command.h"
#include "keystore/unlock.h"

#include <stdbool.h>

enum { REENCRYPT_OPT_KEEP_PASSPHRASE = 700, REENCRYPT_OPT_KEEP_KEYFILE, REENCRYPT_OPT_KEEP_AND };

/* Rows for the option table. */
/* clang-format off */
#define REENCRYPT_KEEP_OPTIONS                                                                     \
    {"keep-passphrase-file", required_argument, NULL, REENCRYPT_OPT_KEEP_PASSPHRASE},              \
    {"keep-keyfile", required_argument, NULL, REENCRYPT_OPT_KEEP_KEYFILE},                         \
    {"keep-and-keyfile", required_argument, NULL, REENCRYPT_OPT_KEEP_AND}
/* clang-format on */

/* What the options name: a source for each other slot that stays. */
struct reencrypt_words {
    struct credential_source keep[KEY_SLOTS_MAX];
    unsigned n_keep;
};
/* 1 opt was one of these, 0 it was not; -EINVAL (said). arg is borrowed. */
int reencrypt_keep_option(const struct command *c, int opt, const char *arg,
                          struct reencrypt_words *w);

struct reencrypt_kept {
    struct key_keep keep[KEY_SLOTS_MAX];
    struct credential creds[KEY_SLOTS_MAX]; /* what keep points to */
    unsigned n;
};
/* Wipe. Fine on a zeroed struct. */
void reencrypt_kept_done(struct reencrypt_kept *k);
#define AUTO_KEPT __attribute__((cleanup(reencrypt_kept_done)))

/* c was unlocked through slot with opened, which is taken: fill kept with that and with what w
 * names; then, unless yes, ask on the terminal for the passphrase of each other slot, and whether
 * those that nobody opened may go. Changes nothing in the container. name is the container's for
 * people. -EKEYREJECTED a credential opens no slot; -ECANCELED; -EINVAL no terminal to confirm on;
 * else as credential_read. All said. */
int reencrypt_collect(struct reencrypt_kept *kept, struct key_container *c, unsigned slot,
                      struct credential *opened, const struct reencrypt_words *w, bool yes,
                      const char *name, struct report *rep);
