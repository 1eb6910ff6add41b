/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key change: the slot that the old key opened gets the new one. One update of the header,
 * so that at every moment the old key or the new one opens the container. */

#include "keystore/change.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key change CONTAINER [OPTION...]\n"
    "       hushvol key change --login [--volumes NAME,...] [OPTION...]\n"
    "\n"
    "Puts a new key in the place of the old one, also while the container is mounted. Asks for the\n"
    "old passphrase, then twice for the new one, unless options say where they come from; when both\n"
    "come from standard input (-), the new one is its second line. At every moment one of both\n"
    "opens the container. The slot that the old key opens is the one that changes. It keeps its label,\n"
    "and without --kdf options it does not become cheaper to guess.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_NEW_CREDENTIAL_USAGE
    CMD_KDF_USAGE
    CMD_HEADER_USAGE
    "  --label TEXT             another label, up to 32 bytes, unencrypted; \"\" for none\n"
    "  --slot N                 only slot N, which the old key has to open\n"
    "  --login                  every volume of the configuration files that says login = yes and\n"
    "                           needs a passphrase, all from the same old to the same new one\n"
    "  --volumes NAME,...       only these of them\n"
    "  --any-of NAME,...        the same, and those of these names that are none of them do not "
    "count\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol key change photos.hv\n"
    "  hushvol key change photos.hv --keyfile old.key --new-keyfile new.key\n"
    "\n"
    "Exit status: 0 changed, 1 failed, 2 wrong words, 3 no slot opens, 4 not a container or damaged,\n"
    "5 in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    KEY_LABEL_OPTION,
    KEY_SLOT_OPTION,
    CMD_CREDENTIAL_OPTIONS,
    CMD_NEW_CREDENTIAL_OPTIONS,
    CMD_KDF_OPTIONS,
    CMD_HEADER_OPTION,
    {"login", no_argument, NULL, CMD_OPT_LOGIN},
    {"volumes", required_argument, NULL, CMD_OPT_VOLUMES},
    {0},
};

/* Returns the index of the slot. */
static int change_slot(struct cmd_reach *at, const struct key_words *w, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int r = cmd_reach_possible(at, KEY_PATCH_CHANGE, rep);

    if (r == 0)
        r = key_change_check_kdf(at->c.format, &w->kdf, rep);
    if (r == 0)
        r = cmd_reach_unlock(at, &w->key, w->slot, &volume, rep);
    if (r == 0)
        r = key_credential_read(&cred, &w->new_key, at->c.format, rep);
    if (r < 0)
        return r;
    return cmd_reach_put(at, KEY_PATCH_CHANGE, &cred, (int)volume.slot, w->label, &w->kdf, rep);
}

static int key_change(int argc, char **argv)
{
    AUTO_REACH struct cmd_reach at = {0};
    struct key_words w;
    struct report rep;
    int r = key_take_words(&w, &cmd_key_change, options, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_change);
    report_stderr_init(&rep, w.which.login ? "key change --login" : "key change", w.word);
    rep.silent_infos = !w.verbose;
    if (w.which.login)
        return cmd_key_change_all(&w, &rep);
    r = cmd_reach_open(&at, w.container, w.header, &rep);
    if (r == 0)
        r = change_slot(&at, &w, &rep);
    if (r < 0)
        return r;
    printf("changed key slot %d of %s\n", r, CMD_SHOWN(w.container));
    key_say_old_copies(at.c.format);
    return 0;
}

const struct command cmd_key_change = {
    .name = "key change",
    .summary = "a new key in the place of an old one",
    .usage = usage,
    .run = key_change,
};
