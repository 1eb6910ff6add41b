/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol umount and detach: two names for one thing, since what was attached comes down with the
 * mount below it and a mount without a file system on top is the shorter way of the same. */

#include "base/report_held.h"
#include "cli/all.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/teardown.h"
#include "cli/tries.h"
#include "fuse/mounts.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* clang-format off */
#define USAGE(name)                                                                               \
    "Usage: hushvol " name " DIR|NAME|CONTAINER [OPTION...]\n"                                      \
    "       hushvol " name " --all|--login [--volumes NAME,...] [OPTION...]\n"                      \
    "\n"                                                                                           \
    "Takes a mounted volume down from the top: the file system on it, the loop device, the image.\n" \
    "Returns when everything is written and the container is closed. When somebody keeps it busy,\n" \
    "names who, and takes nothing down. Cleans up after a volume whose process died. A suspended\n" \
    "volume with a file system on it, which could not write, has to be resumed first. Says so when\n" \
    "the file system had reads or writes fail while it was mounted.\n"                             \
    "\n"                                                                                           \
    "  -a, --all                every mount of yours, instead of one; status 0 when there is none\n"    \
    "  --login                  the same for volumes of the configuration files with login = yes, and\n" \
    "                           for those that only they come after; every one when a fault in\n" \
    "                           the files hides which these are, status 1\n"                                 \
    "  --volumes NAME,...       only these volumes of the configuration files\n"                       \
    "  --any-of NAME,...        the same, and those of these names that are none of them do not "  \
    "count\n"                                                                                      \
    "  --timeout SECONDS        try again so long while somebody keeps it busy\n"                      \
    "  --if-mounted             status 0 when it is not mounted\n"                                       \
    "  -f, --force              take it down, whoever uses it: what they did not sync is lost\n"    \
    "  -v, --verbose            say more\n"                                                         \
    "\n"                                                                                           \
    "Examples:\n"                                                                                  \
    "  hushvol " name " photos\n"                                                                   \
    "  hushvol " name " /mnt/photos\n"                                                              \
    "\n"                                                                                           \
    "Exit status: 0 done, 1 failed, 2 wrong words, 5 busy, 7 no such mount.\n"
/* clang-format on */

enum { OPT_FORCE = CMD_OPT_OWN, OPT_TIMEOUT, OPT_IF_MOUNTED };

#define TIMEOUT_MAX 86400

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_WHICH_OPTIONS,
    {"force", no_argument, NULL, OPT_FORCE},
    {"timeout", required_argument, NULL, OPT_TIMEOUT},
    {"if-mounted", no_argument, NULL, OPT_IF_MOUNTED},
    {0},
};

struct request {
    const char *word;
    struct cmd_umount_all how;
    bool if_mounted, help;
};

static int take_timeout(const struct command *c, struct request *q, const char *arg)
{
    char *end;
    unsigned long v = strtoul(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || v > TIMEOUT_MAX)
        return cmd_usage(c, "--timeout takes seconds, up to %d, not \"%s\"", TIMEOUT_MAX, arg);
    q->how.timeout_s = (unsigned)v;
    return 0;
}

static int take_option(const struct command *c, struct request *q, int opt, char **argv)
{
    switch (opt) {
    case CMD_OPT_HELP:
        q->help = true;
        return 0;
    case OPT_FORCE:
    case 'f':
        q->how.force = true;
        return 0;
    case OPT_IF_MOUNTED:
        q->if_mounted = true;
        return 0;
    case OPT_TIMEOUT:
        return take_timeout(c, q, optarg);
    case 'v':
        return 0;
    default:
        if (cmd_which_option(&q->how.which, opt == 'a' ? CMD_OPT_ALL : opt, optarg) > 0)
            return 0;
        return cmd_option_error(c, opt, argv);
    }
}

static int take_words(const struct command *c, struct request *q, int argc, char **argv)
{
    const struct cmd_which *w = &q->how.which;
    int opt, r = 0;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":vfa", options, NULL)) != -1)
        r = take_option(c, q, opt, argv);
    if (r < 0 || q->help)
        return r;
    r = cmd_which_check(c, w, argc - optind);
    if (r == 0 && !w->all && !w->login && argc - optind != 1)
        return cmd_usage(c, "takes one DIR, NAME or CONTAINER");
    q->word = argv[optind];
    return r;
}

/* A mount of ours without a record: its runtime folder may have been emptied. */
static int unmount_unknown(const struct request *q, bool force, struct report *rep)
{
    struct serve_mount_id there;
    char path[PATH_MAX];
    int r;

    if (realpath(q->word, path) == NULL || serve_mounts_at(&there, path) < 0 || !there.ours)
        return q->if_mounted ? 0
                             : report_error(rep, ENOENT,
                                            "nothing of that name, folder or container is mounted");
    r = serve_unmount(path, force, rep);
    return r == -EBUSY ? report_error(rep, EBUSY, "busy: somebody uses it") : r;
}

static int take_down(const struct serve_found *f, const struct request *q, bool force,
                     struct report *rep)
{
    if (f == NULL)
        return unmount_unknown(q, force, rep);
    return f->alive ? cmd_teardown(f, force, rep) : cmd_teardown_dead(f, rep);
}

/* f NULL: none that has a record. By force only when there is no more time. */
static int take_down_patiently(const struct serve_found *f, const struct request *q,
                               struct report *rep)
{
    const bool waits = q->how.timeout_s > 0;
    struct cmd_tries tries;
    struct report_held held;
    int r;

    report_held_init(&held, rep);
    cmd_tries_start(&tries, q->how.timeout_s);
    do {
        report_held_forget(&held);
        r = take_down(f, q, q->how.force && !waits, &held.rep);
    } while (r == -EBUSY && cmd_tries_again(&tries));
    if (r == -EBUSY && q->how.force && waits)
        return take_down(f, q, true, rep);
    report_held_say(&held);
    return r;
}

static int run(const struct command *c, int argc, char **argv)
{
    AUTO_FOUND struct serve_found f = {0};
    struct request q = {0};
    struct report rep;
    int r = take_words(c, &q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(c);
    report_stderr_init(&rep, c->name, q.word);
    if (q.how.which.all || q.how.which.login)
        return cmd_umount_all(&q.how, &rep);
    r = cmd_find_mount(&f, q.word, &rep);
    if (r < 0 && r != -ENOENT)
        return r;
    return take_down_patiently(r == 0 ? &f : NULL, &q, &rep);
}

static int run_umount(int argc, char **argv)
{
    return run(&cmd_umount, argc, argv);
}

static int run_detach(int argc, char **argv)
{
    return run(&cmd_detach, argc, argv);
}

const struct command cmd_umount = {
    .name = "umount",
    .summary = "take a volume down and wait until its container is closed",
    .usage = USAGE("umount"),
    .run = run_umount,
};

const struct command cmd_detach = {
    .name = "detach",
    .summary = "the same, for what attach made",
    .usage = USAGE("detach"),
    .run = run_detach,
};
