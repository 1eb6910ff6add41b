/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol mount: the daemon does the work (fuse/daemon.c); this says what comes next. */

#include "cli/all.h"
#include "cli/mount_words.h"
#include "cli/unit.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol mount CONTAINER|NAME [DIR] [OPTION...]\n"
    "       hushvol mount --all|--login [--volumes NAME,...] [--passphrase-file FILE] [--dry-run]\n"
    "       hushvol mount --from-login NAME\n"
    "\n"
    "Unlocks a container and shows the disk in it as the file DIR/image, and counters as DIR/stats.\n"
    "Returns when it can be used. DIR has to be there; without it a folder is made in the runtime\n"
    "folder, and removed again by \"hushvol umount\". Prints the path of the image.\n"
    "A NAME is a volume of the configuration files (\"hushvol config --help\"), with its options and\n"
    "its DIR; when that says filesystem = auto, this is \"hushvol attach NAME\". Root mounts a volume\n"
    "with owner = USER for that user: as he, but for the mount itself. DIR has to be his then.\n"
    "\n"
    CMD_MOUNT_USAGE
    "  --all                    every volume of yours in the configuration files, in the order that\n"
    "                           after says; one without owner in /etc is root's; those suspended are\n"
    "                           resumed; --passphrase-file is for all that need a passphrase\n"
    "  --login                  those of them that say login = yes\n"
    "  --volumes NAME,...       only these of them, and what they come after\n"
    "  --any-of NAME,...        the same, and those of these names that are none of them do not "
    "count\n"
    "  --dry-run                mount nothing; print a line for each that would be mounted or resumed:\n"
    "                           its name, a tab, and what it needs, \"passphrase\" or \"key\"\n"
    "  --from-login             what the systemd units hushvol@NAME.service run: asks nothing, takes\n"
    "                           the passphrase that \"hushvol mount --login\" hands over, or that\n"
    "                           systemd has as the credential hushvol.NAME\n"
    "  --foreground             stay, and say on the terminal what happens; Ctrl-C unmounts\n"
    "  -q, --quiet              say only what is wrong (with --all and --login the default)\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Then, as root:    losetup --direct-io=on --sector-size 4096 --find --show DIR/image\n"
    "or without root:  fuse2fs DIR/image FOLDER\n"
    "or both in one:   hushvol attach\n"
    "\n"
    "Examples:\n"
    "  hushvol mount photos.hv\n"
    "  hushvol mount photos.hv /mnt/photos -o ro,allow_root\n"
    "  hushvol mount --login --passphrase-file - <one-line\n"
    "\n"
    "Exit status: 0 mounted, 1 failed, 2 wrong words, 3 no key fits, 4 damaged or no container,\n"
    "5 mounted or locked already, 6 no FUSE on this machine, 7 no such container.\n";
/* clang-format on */

enum { OPT_FOREGROUND = CMD_OPT_OWN, OPT_OF_ALL, OPT_FROM_LOGIN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_MOUNT_OPTIONS,
    CMD_WHICH_OPTIONS,
    {"dry-run", no_argument, NULL, OPT_OF_ALL},
    {"from-login", no_argument, NULL, OPT_FROM_LOGIN},
    {"quiet", no_argument, NULL, 'q'},
    {"foreground", no_argument, NULL, OPT_FOREGROUND},
    {0},
};

/* 1: these are the words of cmd_run_mount_all(), 2: of cmd_run_from_login(). */
static int take_words(struct cmd_mount_words *w, int argc, char **argv)
{
    struct cmd_which which = {0};
    int opt, r = 0;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":qvo:", options, NULL)) != -1) {
        if (opt == OPT_OF_ALL || cmd_which_option(&which, opt, optarg) > 0)
            return 1;
        if (opt == OPT_FROM_LOGIN)
            return 2;
        if (opt == OPT_FOREGROUND)
            w->foreground = true;
        else if (opt == 'q')
            w->quiet = true;
        else
            r = cmd_mount_option(&cmd_mount, w, opt, argv);
    }
    if (r < 0 || w->help)
        return r;
    if (argc - optind < 1 || argc - optind > 2)
        return cmd_usage(&cmd_mount, "takes a CONTAINER and at most one DIR");
    w->container = argv[optind];
    w->folder = argv[optind + 1];
    return 0;
}

static void say_next(const struct serve_daemon_result *result, void *arg)
{
    struct report *rep = arg;

    printf("%s/image\n", result->mountpoint);
    fflush(stdout);
    if (geteuid() == 0)
        report_info(rep,
                    "%s is mounted; next: losetup --direct-io=on --sector-size 4096 --find --show "
                    "%s/image",
                    result->name, result->mountpoint);
    else
        report_info(rep, "%s is mounted; next: fuse2fs %s/image FOLDER", result->name,
                    result->mountpoint);
}

static int run(int argc, char **argv)
{
    AUTO_MOUNT_WORDS struct cmd_mount_words w;
    struct report rep;
    bool in_daemon;
    int r;

    cmd_mount_words_init(&w);
    r = take_words(&w, argc, argv);
    if (r > 0)
        return r == 1 ? cmd_run_mount_all(argc, argv) : cmd_run_from_login(argc, argv);
    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_mount);
    report_stderr_init(&rep, "mount", w.container);
    rep.silent_infos = w.quiet;
    r = cmd_mount_named(&w, &rep);
    if (r > 0 && w.named->filesystem && w.foreground)
        return cmd_usage(&cmd_mount, "--foreground is for an image, and %s has filesystem = auto",
                         w.container);
    if (r > 0 && w.named->filesystem)
        return cmd_attach.run(argc, argv);
    if (r > 0)
        r = take_words(&w, argc, argv);
    if (r == 0)
        r = cmd_mount_as_owner(&w, &rep);
    if (r < 0)
        return r;
    return cmd_mount_serve(&w, say_next, &rep, &in_daemon, &rep);
}

const struct command cmd_mount = {
    .name = "mount",
    .summary = "unlock a container and show its disk as a file",
    .usage = usage,
    .run = run,
};
