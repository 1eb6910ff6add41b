/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* The family "hushvol key ...": which of it, and what its members share. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command *const members[] = {
    &cmd_key_add, &cmd_key_change, &cmd_key_remove, &cmd_key_list, &cmd_key_test, NULL,
};

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key add CONTAINER [OPTION...]\n"
    "       hushvol key change CONTAINER [OPTION...]\n"
    "       hushvol key remove CONTAINER [OPTION...]\n"
    "       hushvol key list CONTAINER [--json]\n"
    "       hushvol key test CONTAINER [OPTION...]\n"
    "\n"
    "A container has slots; each opens with its own passphrase or key files, and all open the same\n"
    "disk. All of these work on a mounted container too.\n"
    "\n"
    "  add     make another slot, with the key of one that exists\n"
    "  change  put a new passphrase or key file in the place of an old one\n"
    "  remove  destroy a slot\n"
    "  list    what is in the slots, without any key\n"
    "  test    does this passphrase or key file open it, and which slot?\n"
    "\n"
    "\"hushvol key add --help\" and so on explain each.\n"
    "\n"
    "Examples:\n"
    "  hushvol key add photos.hv --new-keyfile /media/stick/photos.key\n"
    "  hushvol key change photos.hv\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 3 no slot opens, 4 not a container or damaged,\n"
    "5 in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

const char *key_kind_text(enum key_slot_kind kind)
{
    switch (kind) {
    case KEY_SLOT_UNTOLD:
        return "not on record";
    case KEY_SLOT_PASSPHRASE:
        return "passphrase";
    case KEY_SLOT_KEYFILE:
        return "keyfile";
    case KEY_SLOT_BOTH:
        return "passphrase+keyfile";
    }
    return "unknown";
}

void key_say_old_copies(const struct key_format *f)
{
    if (f->reencrypt == NULL)
        printf("copies of the old header (backups, snapshots) open it with the old key for ever "
               "(\"hushvol convert\" makes a container that they do not open)\n");
    else
        printf("copies of the old header (backups, snapshots) open it with the old key until "
               "\"hushvol "
               "reencrypt\"\n");
}

static int key(int argc, char **argv)
{
    if (argc < 2)
        return cmd_usage(&cmd_key, "add, change, remove, list or test?");
    if (strcmp(argv[1], "--help") == 0)
        return cmd_help(&cmd_key);
    for (const struct command *const *c = members; *c != NULL; c++)
        if (strcmp(strchr((*c)->name, ' ') + 1, argv[1]) == 0)
            return (*c)->run(argc - 1, argv + 1);
    return cmd_usage(&cmd_key, "no \"key %s\"; there are add, change, remove, list and test",
                     argv[1]);
}

const struct command cmd_key = {
    .name = "key",
    .summary = "key slots: add, change, remove, list, test",
    .usage = usage,
    .run = key,
};
