/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the members of "hushvol key" share. */

#include "cli/all.h"
#include "cli/command.h"
#include "cli/credential_options.h"
#include "cli/reach.h"
#include "keystore/format.h"

/* name is "key add" */
extern const struct command cmd_key_add, cmd_key_change, cmd_key_list, cmd_key_remove, cmd_key_test;

/* "passphrase", "keyfile", "passphrase+keyfile" */
const char *key_kind_text(enum key_slot_kind kind);

enum { KEY_OPT_FORCE = CMD_OPT_OWN, KEY_OPT_JSON, KEY_OPT_LABEL, KEY_OPT_RECOVERY, KEY_OPT_SLOT };
/* Rows for a long option table. */
/* clang-format off */
#define KEY_LABEL_OPTION {"label", required_argument, NULL, KEY_OPT_LABEL}
#define KEY_SLOT_OPTION {"slot", required_argument, NULL, KEY_OPT_SLOT}
/* clang-format on */

/* Everything that a member may be told; its own option table says what it is. Words are borrowed
 * from argv. */
struct key_words {
    const char *word; /* CONTAINER or NAME, as the user wrote it */
    const char *container, *header, *label;
    struct cmd_which which; /* instead of it */
    int slot;               /* KEY_SLOT_ANY unless given */
    struct credential_source key, new_key;
    struct kdf_request kdf;
    bool force, json, recovery, help, verbose;
    char prompt[REPORT_LINE], new_prompt[REPORT_LINE]; /* of key and new_key, which point here */
};

/* Take a member's words by its option table. -EINVAL, said. When help is set the rest is not. */
int key_take_words(struct key_words *ret, const struct command *c, const struct option *options,
                   int argc, char **argv);
/* The value of --slot. 0, or -EINVAL (said). */
int key_take_slot(const struct command *c, int *ret, const char *arg);
/* Was a key given, or a place to take it from? */
bool key_is_given(const struct credential_source *s);

/* What a key that is gone from the header still opens; to stdout, after the result. */
void key_say_old_copies(const struct key_format *f);
