/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key remove. By its number a slot goes without any key: who may write the container could
 * destroy it anyway, and the key may be what was lost. */

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key remove CONTAINER --slot N [--force]\n"
    "       hushvol key remove CONTAINER [OPTION...]\n"
    "\n"
    "Destroys a key slot, also while the container is mounted: slot N without asking for a key, or\n"
    "without --slot the one that the given passphrase or key file opens. The last slot that opens\n"
    "here stays unless --force is given; without it only a header backup opens the container.\n"
    "\n"
    "  --slot N                 slot N; with a key, only if that opens it\n"
    "  --force                  even the last slot\n"
    CMD_CREDENTIAL_USAGE
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol key remove photos.hv --slot 2\n"
    "  hushvol key remove photos.hv --keyfile /media/stick/photos.key\n"
    "\n"
    "Exit status: 0 removed, 1 failed (the last slot), 2 wrong words, 3 no slot opens, 4 not a\n"
    "container or damaged, 5 in use, 6 not possible in this format, 7 no such container or slot.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,     KEY_SLOT_OPTION,   {"force", no_argument, NULL, KEY_OPT_FORCE},
    CMD_CREDENTIAL_OPTIONS, CMD_HEADER_OPTION, {0},
};

/* Returns its index. */
static int remove_slot(struct cmd_reach *at, const struct key_words *w, struct report *rep)
{
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int slot = w->slot, r = cmd_reach_possible(at, KEY_PATCH_REMOVE, rep);

    if (r == 0 && (slot == KEY_SLOT_ANY || key_is_given(&w->key))) {
        r = cmd_reach_unlock(at, &w->key, slot, &volume, rep);
        slot = (int)volume.slot;
    }
    if (r == 0)
        r = cmd_reach_remove(at, slot, w->force, rep);
    return r < 0 ? r : slot;
}

/* Nobody should learn from the next mount that this was the last one. */
static void say_if_none_is_left(const struct cmd_reach *at, const struct key_words *w,
                                struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    struct key_slot_info left[KEY_SLOTS_MAX];

    if (w->force && at->c.format->slots != NULL &&
        cmd_reach_look(&c, w->container, w->header, NULL) == 0 &&
        c.format->slots(c.store, left, KEY_SLOTS_MAX, NULL) == 0)
        report_warn(rep, "no key slot is left: %snothing but a header backup opens it again",
                    at->mounted ? "once it is unmounted, " : "");
}

static int key_remove(int argc, char **argv)
{
    AUTO_REACH struct cmd_reach at = {0};
    struct key_words w;
    struct report rep;
    int r = key_take_words(&w, &cmd_key_remove, options, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_remove);
    report_stderr_init(&rep, "key remove", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_open(&at, w.container, w.header, &rep);
    if (r == 0)
        r = remove_slot(&at, &w, &rep);
    if (r < 0)
        return r;
    printf("removed key slot %d of %s\n", r, CMD_SHOWN(w.container));
    key_say_old_copies(at.c.format);
    say_if_none_is_left(&at, &w, &rep);
    return 0;
}

const struct command cmd_key_remove = {
    .name = "key remove",
    .summary = "destroy a key slot",
    .usage = usage,
    .run = key_remove,
};
