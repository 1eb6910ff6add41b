/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the members of "hushvol key" share. */

#include "cli/command.h"
#include "keystore/format.h"

/* name is "key add" */
extern const struct command cmd_key_add, cmd_key_list, cmd_key_test;

/* "passphrase", "keyfile", "passphrase+keyfile" */
const char *key_kind_text(enum key_slot_kind kind);

/* The value of --slot. 0, or -EINVAL (said). */
int key_take_slot(const struct command *c, int *ret, const char *arg);
/* The one word that getopt_long() left over. 0, or -EINVAL (said). */
int key_take_container(const struct command *c, const char **ret, int argc, char **argv);
