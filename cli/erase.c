/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol erase. Needs no key, and no header that is whole: who may write the container could
 * overwrite it anyway, and may be in a hurry. */

#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "cli/named.h"
#include "cli/reach.h"
#include "keystore/change.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol erase CONTAINER [--yes] [--header FILE]\n"
    "\n"
    "Destroys every key slot in both copies of the header: no passphrase and no key file opens the\n"
    "container any more, and its data cannot be read by anybody. Needs no key, works with a damaged\n"
    "header too, and can not be undone without a backup of the header. Asks for the name of the\n"
    "container.\n"
    "\n"
    "It can not reach: backups of the header or the container, copies of a detached header, snapshots\n"
    "of the file system that the container is on, and old blocks that an SSD keeps to itself.\n"
    "Of a mounted container the volume stays readable until it is unmounted.\n"
    "\n"
    CMD_YES_USAGE
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol erase photos.hv\n"
    "\n"
    "Exit status: 0 erased, 1 failed or not confirmed, 2 wrong words or nobody to ask, 4 there is no\n"
    "header that could be erased, 5 in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_YES_OPTION,
    CMD_HEADER_OPTION,
    {0},
};

struct request {
    const char *container, *header;
    bool yes, help, verbose;
};

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP) {
            q->help = true;
            return 0;
        }
        r = cmd_header_option(&cmd_erase, opt, optarg, &q->header);
        if (opt == CMD_OPT_YES)
            q->yes = true;
        else if (opt == 'v')
            q->verbose = true;
        else if (r <= 0)
            return r < 0 ? r : cmd_option_error(&cmd_erase, opt, argv);
    }
    if (optind == argc)
        return cmd_usage(&cmd_erase, "which container?");
    if (optind + 1 < argc)
        return cmd_usage(&cmd_erase, "only one container at a time, not also \"%s\"",
                         argv[optind + 1]);
    q->container = argv[optind];
    return 0;
}

static int confirm(const struct request *q, bool mounted, struct report *rep)
{
    const char *slash = strrchr(q->container, '/');
    char question[REPORT_LINE];

    snprintf(question, sizeof(question),
             "This destroys every key slot of %s%s. Nothing opens it any more but a backup of its "
             "header.",
             q->container, mounted ? ", which is mounted" : "");
    return cmd_confirm(q->yes, question,
                       slash != NULL && slash[1] != '\0' ? slash + 1 : q->container, rep);
}

static int erase_mounted(const struct request *q, struct report *rep)
{
    AUTO_REACH struct cmd_reach at = {0};
    int r = cmd_reach_open(&at, q->container, q->header, rep);

    if (r == 0)
        r = cmd_reach_possible(&at, KEY_PATCH_ERASE, rep);
    if (r == 0)
        r = confirm(q, at.mounted, rep);
    if (r == 0)
        r = cmd_reach_erase(&at, rep);
    if (r == 0 && at.mounted)
        report_warn(rep,
                    "it is still mounted at %s, and readable there until \"hushvol umount %s\"",
                    at.mount.record.mountpoint, at.mount.record.name);
    return r;
}

/* The container is ours alone. */
static int erase_locked(struct key_container *c, const struct request *q, struct report *rep)
{
    struct blk *header = key_container_header(c);
    int r = key_recognise(&c->format, header, rep);

    if (r == -EBADMSG)
        report_warn(rep, "there is nothing that looks like a header, so nothing was erased");
    if (r == 0)
        r = key_change_possible(c->format, KEY_PATCH_ERASE, rep);
    if (r == 0)
        r = confirm(q, false, rep);
    if (r == 0)
        r = key_change_erase(c->format, header, c->blk, rep);
    return r;
}

static int erase_container(const struct request *q, struct report *rep)
{
    const struct blk_file_spec spec = {.path = q->container, .direct = BLK_DIRECT_OFF};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    pid_t holder = 0;
    int r = key_container_open_files(&c, &spec, q->header, &holder, rep);

    if (r == -EBUSY)
        return erase_mounted(q, rep);
    return r < 0 ? r : erase_locked(&c, q, rep);
}

static int erase(int argc, char **argv)
{
    struct request q = {0};
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_erase);
    report_stderr_init(&rep, "erase", q.container);
    rep.silent_infos = !q.verbose;
    r = cmd_named_container(&q.container, &q.header, NULL, &rep);
    if (r < 0)
        return r;
    r = erase_container(&q, &rep);
    if (r < 0)
        return r;
    printf("erased every key slot of %s\n"
           "not reached: backups, copies of a detached header, snapshots, spare blocks of an SSD\n",
           CMD_SHOWN(q.container));
    return 0;
}

const struct command cmd_erase = {
    .name = "erase",
    .summary = "destroy every key slot",
    .usage = usage,
    .run = erase,
};
