/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key add: unlock with a key that exists, then store the new one in a slot of its own. The
 * new one is asked for last, so nobody thinks up a passphrase for a container that does not open.
 */

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key add CONTAINER [OPTION...]\n"
    "\n"
    "Adds a key slot, also while the container is mounted. Asks for a passphrase that opens it, then\n"
    "twice for the new one, unless options say where they come from; when both come from standard\n"
    "input (-), the new one is its second line.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_NEW_CREDENTIAL_USAGE
    CMD_KDF_USAGE
    CMD_HEADER_USAGE
    "  --label TEXT             up to 32 bytes, kept in the header unencrypted\n"
    "  --slot N                 put the new key into slot N (the first free one)\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol key add photos.hv --label spare --new-keyfile /media/stick/photos.key\n"
    "\n"
    "Exit status: 0 added, 1 failed (all slots in use), 2 wrong words, 3 no slot opens, 4 not a\n"
    "container or damaged, 5 in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,         KEY_LABEL_OPTION, KEY_SLOT_OPTION,   CMD_CREDENTIAL_OPTIONS,
    CMD_NEW_CREDENTIAL_OPTIONS, CMD_KDF_OPTIONS,  CMD_HEADER_OPTION, {0},
};

/* Returns the index of the new slot. */
static int add_slot(struct cmd_reach *at, const struct key_words *w, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int r = cmd_reach_possible(at, KEY_PATCH_ADD, rep);

    if (r == 0)
        r = cmd_reach_unlock(at, &w->key, KEY_SLOT_ANY, &volume, rep);
    if (r == 0)
        r = credential_read(&cred, &w->new_key, rep);
    if (r < 0)
        return r;
    return cmd_reach_put(at, KEY_PATCH_ADD, &cred, w->slot, w->label, &w->kdf, rep);
}

static int key_add(int argc, char **argv)
{
    AUTO_REACH struct cmd_reach at = {0};
    struct key_words w;
    struct report rep;
    int r = key_take_words(&w, &cmd_key_add, options, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_add);
    report_stderr_init(&rep, "key add", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_open(&at, w.container, w.header, &rep);
    if (r == 0)
        r = add_slot(&at, &w, &rep);
    if (r < 0)
        return r;
    printf("added key slot %d to %s\n", r, w.container);
    return 0;
}

const struct command cmd_key_add = {
    .name = "key add",
    .summary = "make another key slot",
    .usage = usage,
    .run = key_add,
};
