/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol umount and detach: two names for one thing, since what was attached comes down with the
 * mount below it and a mount without a file system on top is the shorter way of the same. */

#include "cli/all.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/teardown.h"
#include "fuse/mounts.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

/* clang-format off */
#define USAGE(name)                                                                               \
    "Usage: hushvol " name " DIR|NAME|CONTAINER [OPTION...]\n"                                      \
    "\n"                                                                                           \
    "Takes a mounted volume down from the top: the file system on it, the loop device, the image.\n" \
    "Returns when everything is written and the container is closed. When somebody keeps it busy,\n" \
    "names who, and takes nothing down. Cleans up after a volume whose process died. A suspended\n" \
    "volume with a file system on it, which could not write, has to be resumed first. Says so when\n" \
    "the file system had reads or writes fail while it was mounted.\n"                             \
    "\n"                                                                                           \
    "  -a, --all                every mount of yours, instead of one\n"                                \
    "  -f, --force              take it down, whoever uses it: what they did not sync is lost\n"    \
    "  -v, --verbose            say more\n"                                                         \
    "\n"                                                                                           \
    "Examples:\n"                                                                                  \
    "  hushvol " name " photos\n"                                                                   \
    "  hushvol " name " /mnt/photos\n"                                                              \
    "\n"                                                                                           \
    "Exit status: 0 done, 1 failed, 2 wrong words, 5 busy, 7 no such mount.\n"
/* clang-format on */

enum { OPT_FORCE = CMD_OPT_OWN, OPT_ALL };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"all", no_argument, NULL, OPT_ALL},
    {"force", no_argument, NULL, OPT_FORCE},
    {0},
};

struct request {
    const char *word;
    bool all, force, help;
};

static int take_words(const struct command *c, struct request *q, int argc, char **argv)
{
    int opt;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":vfa", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            q->help = true;
        else if (opt == OPT_FORCE || opt == 'f')
            q->force = true;
        else if (opt == OPT_ALL || opt == 'a')
            q->all = true;
        else if (opt != 'v')
            return cmd_option_error(c, opt, argv);
    }
    if (!q->help && argc - optind != !q->all)
        return cmd_usage(c, q->all ? "--all takes no DIR, NAME or CONTAINER"
                                   : "takes one DIR, NAME or CONTAINER");
    q->word = argv[optind];
    return 0;
}

/* A mount of ours without a record: its runtime folder may have been emptied. */
static int unmount_unknown(const char *word, bool force, struct report *rep)
{
    struct serve_mount_id there;
    char path[PATH_MAX];
    int r;

    if (realpath(word, path) == NULL || serve_mounts_at(&there, path) < 0 || !there.ours)
        return report_error(rep, ENOENT, "nothing of that name, folder or container is mounted");
    r = serve_unmount(path, force, rep);
    return r == -EBUSY ? report_error(rep, EBUSY, "busy: somebody uses it") : r;
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
    if (q.all)
        return cmd_umount_all(q.force, &rep);
    r = cmd_find_mount(&f, q.word, &rep);
    if (r == -ENOENT)
        return unmount_unknown(q.word, q.force, &rep);
    if (r < 0)
        return r;
    return f.alive ? cmd_teardown(&f, q.force, &rep) : cmd_teardown_dead(&f, &rep);
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
