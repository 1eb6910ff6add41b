/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key add: unlock with a key that exists, then store the new one in a slot of its own. The
 * new one is asked for last, so nobody thinks up a passphrase for a container that does not open.
 */

#include "cli/credential_options.h"
#include "keystore/change.h"
#include "keystore/unlock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key add CONTAINER [OPTION...]\n"
    "\n"
    "Adds a key slot. The container has to be unmounted. Asks for a passphrase that opens it, then\n"
    "twice for the new one, unless options say where they come from; when both come from standard\n"
    "input (-), the new one is its second line.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_NEW_CREDENTIAL_USAGE
    CMD_KDF_USAGE
    "  --label TEXT             up to 32 bytes, kept in the header unencrypted\n"
    "  --slot N                 put the new key into slot N (the first free one)\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol key add photos.hv --label spare --new-keyfile /media/stick/photos.key\n"
    "\n"
    "Exit status: 0 added, 1 failed (all slots in use), 2 wrong words, 3 no slot opens, 4 not a\n"
    "container or damaged, 5 mounted or in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

enum { OPT_LABEL = CMD_OPT_OWN, OPT_SLOT };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"label", required_argument, NULL, OPT_LABEL},
    {"slot", required_argument, NULL, OPT_SLOT},
    CMD_CREDENTIAL_OPTIONS,
    CMD_NEW_CREDENTIAL_OPTIONS,
    CMD_KDF_OPTIONS,
    {0},
};

struct request {
    const char *container, *label;
    int slot;
    struct credential_source old_key, new_key;
    struct kdf_request kdf;
    bool help, verbose;
    char old_prompt[REPORT_LINE], new_prompt[REPORT_LINE];
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
    case OPT_LABEL:
        q->label = optarg;
        return 0;
    case OPT_SLOT:
        return key_take_slot(&cmd_key_add, &q->slot, optarg);
    default:
        break;
    }
    r = cmd_credential_option(&cmd_key_add, opt, optarg, &q->old_key, &q->new_key);
    if (r == 0)
        r = cmd_kdf_option(&cmd_key_add, opt, optarg, &q->kdf);
    if (r == 0)
        return cmd_option_error(&cmd_key_add, opt, argv);
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
    return key_take_container(&cmd_key_add, &q->container, argc, argv);
}

/* c is open for writing. Returns the index of the new slot. */
static int add_slot(struct key_container *c, const struct request *q, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int r;

    r = key_change_possible(c->format, KEY_PATCH_ADD, rep);
    if (r == 0)
        r = key_unlock_with(c, &q->old_key, KEY_SLOT_ANY, &volume, rep);
    if (r == 0 && c->format->repair != NULL)
        r = c->format->repair(c->store, rep);
    if (r == 0)
        r = credential_read(&cred, &q->new_key, rep);
    if (r < 0)
        return r;
    return key_change_add(c, &cred, q->slot, q->label, &q->kdf, rep);
}

static int key_add(int argc, char **argv)
{
    struct request q = {.slot = KEY_SLOT_ANY, .new_key.confirm = true};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    struct blk_file_spec spec = {.direct = BLK_DIRECT_OFF};
    struct report rep;
    pid_t holder = 0;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_key_add);
    report_stderr_init(&rep, "key add", q.container);
    rep.silent_infos = !q.verbose;
    snprintf(q.old_prompt, sizeof(q.old_prompt), "Passphrase for %s", q.container);
    snprintf(q.new_prompt, sizeof(q.new_prompt), "New passphrase for %s", q.container);
    q.old_key.prompt = q.old_prompt;
    q.new_key.prompt = q.new_prompt;
    spec.path = q.container;
    r = key_container_open(&c, &spec, NULL, &holder, &rep);
    if (r == -EBUSY)
        return cmd_busy(q.container, NULL, holder, &rep);
    if (r == 0)
        r = add_slot(&c, &q, &rep);
    if (r < 0)
        return r;
    printf("added key slot %d to %s\n", r, q.container);
    return 0;
}

const struct command cmd_key_add = {
    .name = "key add",
    .summary = "make another key slot",
    .usage = usage,
    .run = key_add,
};
