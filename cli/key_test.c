/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key test. Takes no lock and writes nothing: it works on a mounted container. */

#include "cli/credential_options.h"
#include "keystore/unlock.h"

#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key test CONTAINER [OPTION...]\n"
    "\n"
    "Says which key slot the passphrase or key file opens. Nothing is mounted or written, and the\n"
    "container may be mounted.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    "  --slot N                 try slot N only\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol key test photos.hv --keyfile /media/stick/photos.key\n"
    "\n"
    "Exit status: 0 it opens, 1 failed, 2 wrong words, 3 no slot opens, 4 not a container or\n"
    "damaged, 7 no such container.\n";
/* clang-format on */

enum { OPT_SLOT = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"slot", required_argument, NULL, OPT_SLOT},
    CMD_CREDENTIAL_OPTIONS,
    {0},
};

struct request {
    const char *container;
    int slot;
    struct credential_source key;
    bool help, verbose;
    char prompt[REPORT_LINE];
};

static int take_option(struct request *q, int opt, char **argv)
{
    int r;

    switch (opt) {
    case CMD_OPT_HELP:
        q->help = true;
        return 0;
    case 'v':
        q->verbose = true;
        return 0;
    case OPT_SLOT:
        return key_take_slot(&cmd_key_test, &q->slot, optarg);
    default:
        break;
    }
    r = cmd_credential_option(&cmd_key_test, opt, optarg, &q->key, NULL);
    if (r == 0)
        return cmd_option_error(&cmd_key_test, opt, argv);
    return r < 0 ? r : 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(q, opt, argv);
        if (r < 0 || q->help)
            return r;
    }
    return key_take_container(&cmd_key_test, &q->container, argc, argv);
}

static int key_test(int argc, char **argv)
{
    struct request q = {.slot = KEY_SLOT_ANY};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    struct blk_file_spec spec = {
        .read_only = true, .direct = BLK_DIRECT_OFF, .lock = BLK_LOCK_NONE};
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_key_test);
    report_stderr_init(&rep, "key test", q.container);
    rep.silent_infos = !q.verbose;
    snprintf(q.prompt, sizeof(q.prompt), "Passphrase for %s", q.container);
    q.key.prompt = q.prompt;
    spec.path = q.container;
    r = key_container_open(&c, &spec, NULL, NULL, &rep);
    if (r == 0)
        r = key_unlock_with(&c, &q.key, q.slot, &volume, &rep);
    if (r < 0)
        return r;
    printf("key slot %u opens %s\n", volume.slot, q.container);
    return 0;
}

const struct command cmd_key_test = {
    .name = "key test",
    .summary = "does this key open it, and which slot",
    .usage = usage,
    .run = key_test,
};
