/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key test. Takes no lock and writes nothing: it works on a mounted container. */

#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key test CONTAINER [OPTION...]\n"
    "\n"
    "Says which key slot the passphrase or key file opens. Nothing is mounted or written, and the\n"
    "container may be mounted.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_HEADER_USAGE
    "  --slot N                 try slot N only\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol key test photos.hv --keyfile /media/stick/photos.key\n"
    "\n"
    "Exit status: 0 it opens, 1 failed, 2 wrong words, 3 no slot opens, 4 not a container or\n"
    "damaged, 6 of a later version, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS, KEY_SLOT_OPTION, CMD_CREDENTIAL_OPTIONS, CMD_HEADER_OPTION, {0},
};

static int key_test(int argc, char **argv)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    struct key_words w;
    struct report rep;
    int r = key_take_words(&w, &cmd_key_test, options, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_test);
    report_stderr_init(&rep, "key test", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_look(&c, w.container, w.header, &rep);
    if (r < 0)
        return r;
    secret_lock_memory(NULL);
    r = key_unlock_with(&c, &w.key, w.slot, &volume, &rep);
    if (r < 0)
        return r;
    printf("key slot %u opens %s\n", volume.slot, CMD_SHOWN(w.container));
    return 0;
}

const struct command cmd_key_test = {
    .name = "key test",
    .summary = "does this key open it, and which slot",
    .usage = usage,
    .run = key_test,
};
