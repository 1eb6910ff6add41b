/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key add: unlock with a key that exists, then store the new one in a slot of its own. The
 * new one is asked for last, so nobody thinks up a passphrase for a container that does not open.
 */

#include "keystore/change.h"
#include "keystore/recovery.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key add CONTAINER [OPTION...]\n"
    "\n"
    "Adds a key slot, also while the container is mounted. Asks for a passphrase that opens it, then\n"
    "twice for the new one, unless options say where they come from; when both come from standard\n"
    "input (-), the new one is its second line.\n"
    "\n"
    "With --recovery the new one is made by chance and printed, once: groups of letters and digits\n"
    "for a sheet of paper, in any of which a slip of the pen is noticed. It is typed where a\n"
    "passphrase is asked for.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_NEW_CREDENTIAL_USAGE
    CMD_KDF_USAGE
    CMD_HEADER_USAGE
    "  --label TEXT             up to 32 bytes, kept in the header unencrypted\n"
    "  --recovery               make a recovery key and print it\n"
    "  --slot N                 put the new key into slot N (the first free one)\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol key add photos.hv --label spare --new-keyfile /media/stick/photos.key\n"
    "  hushvol key add photos.hv --recovery\n"
    "\n"
    "Exit status: 0 added, 1 failed (all slots in use), 2 wrong words, 3 no slot opens, 4 not a\n"
    "container or damaged, 5 in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    KEY_LABEL_OPTION,
    KEY_SLOT_OPTION,
    {"recovery", no_argument, NULL, KEY_OPT_RECOVERY},
    CMD_CREDENTIAL_OPTIONS,
    CMD_NEW_CREDENTIAL_OPTIONS,
    CMD_KDF_OPTIONS,
    CMD_HEADER_OPTION,
    {0},
};

static int take_words(struct key_words *w, int argc, char **argv)
{
    int r = key_take_words(w, &cmd_key_add, options, argc, argv);

    if (r < 0 || !w->recovery)
        return r;
    if (key_is_given(&w->new_key))
        return cmd_usage(&cmd_key_add,
                         "--recovery makes the new key: it excludes the options --new-...");
    if (w->label == NULL)
        w->label = "recovery key";
    return 0;
}

static int read_new_key(struct credential *ret, const struct key_format *f,
                        const struct key_words *w, struct report *rep)
{
    int r;

    if (!w->recovery)
        return key_credential_read(ret, &w->new_key, f, rep);
    r = recovery_make(&ret->passphrase);
    ret->has_passphrase = true;
    return r < 0 ? report_errno(rep, -r, "cannot make a recovery key") : 0;
}

static int write_all(const unsigned char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = write(STDOUT_FILENO, bytes, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            bytes += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

/* A closed standard output is one that leads nowhere by now. */
static int check_is_seen(struct report *rep)
{
    struct stat st;

    if (fstat(STDOUT_FILENO, &st) == 0 && S_ISCHR(st.st_mode) && st.st_rdev == makedev(1, 3))
        return report_error(rep, EINVAL,
                            "nobody would see the recovery key: standard output leads nowhere");
    return 0;
}

/* Not through stdio, whose buffer nobody wipes. A key that nobody has seen is none. */
static int show_recovery_key(struct cmd_reach *at, int slot, const struct credential *key,
                             struct report *rep)
{
    int r = write_all(key->passphrase.bytes, key->passphrase.len);

    if (r == 0)
        r = write_all((const unsigned char *)"\n", 1);
    if (r == 0) {
        report_warn(rep,
                    "that is the recovery key in slot %d, shown only this once: copy it, and keep "
                    "it away from this machine",
                    slot);
        return 0;
    }
    report_errno(rep, -r, "cannot show the recovery key");
    if (cmd_reach_remove(at, slot, false, rep) < 0)
        report_warn(rep, "key slot %d holds a key that nobody has seen: remove it", slot);
    return r;
}

/* Nobody is to think up a passphrase for which there is no slot. What is in the slots that this
 * version does not know is left to the format. */
static int check_room(const struct cmd_reach *at, int wanted, struct report *rep)
{
    const struct key_format *f = at->c.format;
    struct key_slot_info used[KEY_SLOTS_MAX];
    int n = f->slots != NULL ? f->slots(at->c.store, used, KEY_SLOTS_MAX, NULL) : 0;

    if (n == (int)f->max_slots)
        return report_error(rep, ENOSPC, "all %d key slots are in use (remove one first)", n);
    if (wanted != KEY_SLOT_ANY && wanted >= (int)f->max_slots)
        return report_error(rep, EINVAL, "there is no key slot %d (0 to %u)", wanted,
                            f->max_slots - 1);
    for (int i = 0; i < n; i++)
        if (wanted == (int)used[i].index)
            return report_error(rep, EEXIST, "key slot %d is in use", wanted);
    return 0;
}

static int add_slot(struct cmd_reach *at, const struct key_words *w, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int r = cmd_reach_possible(at, KEY_PATCH_ADD, rep);

    if (r == 0 && w->recovery)
        r = check_is_seen(rep);
    if (r == 0)
        r = key_change_check_kdf(at->c.format, &w->kdf, rep);
    if (r == 0)
        r = check_room(at, w->slot, rep);
    if (r == 0)
        r = cmd_reach_unlock(at, &w->key, KEY_SLOT_ANY, &volume, rep);
    if (r == 0)
        r = read_new_key(&cred, at->c.format, w, rep);
    if (r == 0)
        r = cmd_reach_put(at, KEY_PATCH_ADD, &cred, w->slot, w->label, &w->kdf, rep);
    if (r < 0)
        return r;
    if (w->recovery)
        return show_recovery_key(at, r, &cred, rep);
    printf("added key slot %d to %s\n", r, CMD_SHOWN(w->container));
    return 0;
}

static int key_add(int argc, char **argv)
{
    AUTO_REACH struct cmd_reach at = {0};
    struct key_words w;
    struct report rep;
    int r = take_words(&w, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_add);
    report_stderr_init(&rep, "key add", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_open(&at, w.container, w.header, &rep);
    return r < 0 ? r : add_slot(&at, &w, &rep);
}

const struct command cmd_key_add = {
    .name = "key add",
    .summary = "make another key slot",
    .usage = usage,
    .run = key_add,
};
