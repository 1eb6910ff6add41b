/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/reencrypt.h"

/* hushvol reencrypt: unlock, settle which slots stay, start; or, when that was done before, go on.
 * The work itself is vol_reencrypt()'s. */

#include "base/size.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "cli/key.h"
#include "cli/named.h"
#include "cli/progress.h"
#include "keystore/change.h"
#include "volume/reencrypt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol reencrypt CONTAINER [OPTION...]\n"
    "\n"
    "Gives the container a new volume key and enciphers all of its data anew, in place. After it an\n"
    "old copy of the header, or an old passphrase with one, opens nothing of what is there now.\n"
    "The container may not be mounted meanwhile; but at every moment it can be: Ctrl-C, kill -9 or a\n"
    "power cut stop it, the container opens and works as it is, and the same command, with the\n"
    "passphrase of any slot that stays, goes on.\n"
    "\n"
    "A key slot stays only when what opens it is given, as it has to be wrapped anew: by the options\n"
    "below, or on the terminal, which asks for the passphrase of each other slot. The rest are\n"
    "removed, after a question.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    "  --slot N                 only slot N, which that has to open\n"
    "  --keep-passphrase-file FILE, --keep-keyfile FILE\n"
    "                           what opens another slot, which stays; may be repeated\n"
    "  --keep-and-keyfile FILE  a key file that belongs to the --keep- option before it\n"
    CMD_KDF_USAGE
    "                           (without one of these each slot costs what it did)\n"
    CMD_HEADER_USAGE
    "  --throttle RATE          at most so many bytes a second (50M)\n"
    CMD_YES_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol reencrypt photos.hv\n"
    "  hushvol reencrypt photos.hv --keep-keyfile /media/stick/photos.key --throttle 50M\n"
    "\n"
    "Exit status: 0 all has the new key, 1 failed or not confirmed, 2 wrong words, 3 no slot opens,\n"
    "4 not a container or damaged, 5 mounted or in use, 6 not possible in this format, 7 no such\n"
    "container.\n";
/* clang-format on */

enum { OPT_SLOT = CMD_OPT_OWN, OPT_THROTTLE };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"slot", required_argument, NULL, OPT_SLOT},
    {"throttle", required_argument, NULL, OPT_THROTTLE},
    CMD_YES_OPTION,
    CMD_HEADER_OPTION,
    CMD_CREDENTIAL_OPTIONS,
    REENCRYPT_KEEP_OPTIONS,
    CMD_KDF_OPTIONS,
    {0},
};

struct request {
    const char *container, *header;
    int slot;
    struct credential_source key;
    struct credential opened; /* what key gave */
    struct reencrypt_words keep;
    struct kdf_request kdf;
    uint64_t throttle;
    bool yes, help, verbose, begun;
    struct cmd_progress progress; /* once begun */
    char prompt[REPORT_LINE];
};

static int take_shared_option(struct request *q, int opt, char **argv)
{
    int r = cmd_credential_option(&cmd_reencrypt, opt, optarg, &q->key, NULL);

    if (r == 0)
        r = reencrypt_keep_option(&cmd_reencrypt, opt, optarg, &q->keep);
    if (r == 0)
        r = cmd_kdf_option(&cmd_reencrypt, opt, optarg, &q->kdf);
    if (r == 0)
        r = cmd_header_option(&cmd_reencrypt, opt, optarg, &q->header);
    if (r == 0)
        return cmd_option_error(&cmd_reencrypt, opt, argv);
    return r < 0 ? r : 0;
}

static int take_option(struct request *q, int opt, char **argv)
{
    switch (opt) {
    case CMD_OPT_HELP:
        q->help = true;
        return 0;
    case 'v':
        q->verbose = true;
        return 0;
    case CMD_OPT_YES:
        q->yes = true;
        return 0;
    case OPT_SLOT:
        return key_take_slot(&cmd_reencrypt, &q->slot, optarg);
    case OPT_THROTTLE:
        if (size_parse(&q->throttle, optarg) < 0 || q->throttle == 0)
            return cmd_usage(&cmd_reencrypt, "--throttle takes bytes a second like 50M, not \"%s\"",
                             optarg);
        return 0;
    default:
        return take_shared_option(q, opt, argv);
    }
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
    if (optind == argc)
        return cmd_usage(&cmd_reencrypt, "which container?");
    if (optind + 1 < argc)
        return cmd_usage(&cmd_reencrypt, "only one container at a time, not also \"%s\"",
                         argv[optind + 1]);
    q->container = argv[optind];
    snprintf(q->prompt, sizeof(q->prompt), "Passphrase for %s", q->container);
    q->key.prompt = q->prompt;
    return 0;
}

/* Unlocked, the header mended, and nothing changed yet. */
static int unlock(struct key_container *c, struct request *q, struct key_volume *key,
                  struct report *rep)
{
    int r;

    if (c->format->reencrypt == NULL)
        return report_error(rep, EOPNOTSUPP, "re-encryption is not possible in the %s format",
                            c->format->name);
    r = key_change_check_kdf(c->format, &q->kdf, rep);
    if (r < 0)
        return r;
    q->key.keep = &q->opened;
    r = key_unlock_with(c, &q->key, q->slot, key, rep);
    if (r == 0 && c->format->repair != NULL)
        r = c->format->repair(c->store, rep);
    return r;
}

static int begin(struct key_container *c, struct request *q, struct key_volume *key,
                 struct report *rep)
{
    AUTO_KEPT struct reencrypt_kept kept = {0};
    int r = reencrypt_collect(&kept, c, key->slot, &q->opened, &q->keep, q->yes, q->container, rep);

    if (r < 0)
        return r;
    return c->format->reencrypt->start(c->store, kept.keep, kept.n, &q->kdf, key, rep);
}

/* What was settled when it began cannot be settled again. */
static void say_going_on(const struct request *q, const struct key_volume *key, struct report *rep)
{
    const struct kdf_request *k = &q->kdf;

    if (q->keep.n_keep > 0 || k->memory != 0 || k->time_ms != 0 || k->iterations != 0)
        report_warn(rep, "it goes on with what was begun: which key slots stay, and what they "
                         "cost, was settled then (\"hushvol key\" changes them)");
    report_info(rep, "goes on at %.0f %%", 100.0 * (double)key->boundary / (double)key->size);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void say_done(const struct request *q, uint64_t turned, double took)
{
    char size[SIZE_TEXT], rate[SIZE_TEXT];

    printf("%s has a new volume key: %s enciphered anew in %.1f s (%s/s)\n"
           "what was made from it before (copies, backups of its header, snapshots) still opens "
           "with the old keys\n",
           CMD_SHOWN(q->container), size_format(size, turned), took,
           size_format(rate, (uint64_t)((double)turned / (took > 0.001 ? took : 0.001))));
}

/* The disk is mixed now: whatever happens, it opens, and somebody may want to know how to go on. */
static int work(struct key_container *c, struct request *q, struct key_volume *key,
                struct report *rep)
{
    const struct vol_reencrypt spec = {
        .container = c, .key = key, .throttle = q->throttle, .progress = &q->progress.progress};
    double start = seconds();
    uint64_t turned = 0;
    int r;

    cmd_progress_start(&q->progress, "reencrypt");
    q->begun = true;
    r = vol_reencrypt(&spec, &turned, rep);
    cmd_progress_end(&q->progress, 0);
    if (r == 0)
        say_done(q, turned, seconds() - start);
    else
        report_warn(rep,
                    "it stopped at %.0f %%: the container opens and can be used as it is, and "
                    "the same command goes on",
                    100.0 * (double)key->boundary / (double)key->size);
    return r;
}

static int reencrypt_container(struct request *q, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume key = {0};
    const struct blk_file_spec spec = {.path = q->container};
    pid_t holder = 0;
    int r = key_container_open(&c, &spec, q->header, &holder, rep);

    if (r == -EBUSY)
        return cmd_busy(q->container, q->header, holder, rep);
    if (r == 0)
        r = unlock(&c, q, &key, rep);
    if (r < 0)
        return r;
    if (key.mixed)
        say_going_on(q, &key, rep);
    else
        r = begin(&c, q, &key, rep);
    return r < 0 ? r : work(&c, q, &key, rep);
}

static int reencrypt(int argc, char **argv)
{
    struct request q = {.slot = KEY_SLOT_ANY};
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_reencrypt);
    report_stderr_init(&rep, "reencrypt", q.container);
    rep.silent_infos = !q.verbose;
    r = cmd_named_container(&q.container, &q.header, &q.key, &rep);
    if (r < 0)
        return r;
    secret_lock_memory(&rep);
    r = reencrypt_container(&q, &rep);
    credential_done(&q.opened);
    if (q.begun)
        cmd_progress_end(&q.progress, r);
    return r;
}

const struct command cmd_reencrypt = {
    .name = "reencrypt",
    .summary = "give a container a new volume key",
    .usage = usage,
    .run = reencrypt,
};
