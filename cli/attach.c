/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol attach: a mount, and on top of it a file system (attach_run.c). Whatever fails,
 * everything is taken down again. */

#include "cli/attach.h"
#include "cli/mount_words.h"
#include "cli/teardown.h"
#include "fuse/control.h"
#include "fuse/mounts.h"

#include <errno.h>
#include <json-c/json.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol attach CONTAINER|NAME DIR [OPTION...]\n"
    "\n"
    "Mounts a container and the file system on its disk at DIR, which is made if it is not there: as\n"
    "root through a loop device, otherwise with fuse2fs (ext2, ext3 and ext4), which works without\n"
    "their journal. An ext file system that was not closed cleanly is mended first, by e2fsck -p.\n"
    "\"hushvol detach DIR\" takes all of it down. A NAME is a volume of the configuration files\n"
    "(\"hushvol config --help\"); DIR is then what mountpoint says there.\n"
    "\n"
    "Without root, -o allow_root asks udisks2, where it runs, for a loop device: then the kernel mounts\n"
    "every file system that it knows. udisks2 chooses where; a DIR that is not there becomes a link to\n"
    "that place. What it refuses is said, and an ext file system is mounted by fuse2fs instead.\n"
    "\n"
    "  --mkfs TYPE              first make a file system: ext4; as root also xfs and btrfs\n"
    "  --force                  let --mkfs overwrite what is on the disk\n"
    "  --partition N            the disk has a partition table: use partition N\n"
    CMD_MOUNT_USAGE
    "  -q, --quiet              say only what is wrong\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol attach photos.hv ~/photos --mkfs ext4\n"
    "  hushvol attach photos.hv ~/photos\n"
    "\n"
    "Exit status: 0 mounted, 1 failed, 2 wrong words, 3 no key fits, 4 damaged or no container,\n"
    "5 mounted or locked already, 6 not possible here, 7 no such container.\n";
/* clang-format on */

enum { OPT_MKFS = CMD_OPT_OWN, OPT_FORCE, OPT_PARTITION };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_MOUNT_OPTIONS,
    {"mkfs", required_argument, NULL, OPT_MKFS},
    {"force", no_argument, NULL, OPT_FORCE},
    {"partition", required_argument, NULL, OPT_PARTITION},
    {"quiet", no_argument, NULL, 'q'},
    {0},
};

struct request {
    struct cmd_mount_words words;
    struct cmd_attach attach;
    char folder[PATH_MAX];
    bool made_folder;
    struct serve_daemon_result mounted;
};

static int take_partition(struct request *q, const char *arg)
{
    char *end;
    long n = strtol(arg, &end, 10);

    if (*end != '\0' || n < 1 || n > 1024)
        return cmd_usage(&cmd_attach, "--partition takes a number from 1, not \"%s\"", arg);
    q->attach.partition = (int)n;
    return 0;
}

static int take_option(struct request *q, int opt, char **argv)
{
    switch (opt) {
    case OPT_MKFS:
        q->attach.mkfs = optarg;
        return 0;
    case OPT_FORCE:
        q->attach.force = true;
        return 0;
    case OPT_PARTITION:
        return take_partition(q, optarg);
    case 'q':
        q->words.quiet = true;
        return 0;
    default:
        return cmd_mount_option(&cmd_attach, &q->words, opt, argv);
    }
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r = 0;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":qvo:", options, NULL)) != -1)
        r = take_option(q, opt, argv);
    if (r < 0 || q->words.help)
        return r;
    if (argc - optind < 1 || argc - optind > 2)
        return cmd_usage(&cmd_attach, "takes a CONTAINER and a DIR");
    if (q->attach.mkfs != NULL && !cmd_fs_can_make(q->attach.mkfs))
        return cmd_usage(&cmd_attach, "--mkfs takes ext4, xfs or btrfs, not \"%s\"",
                         q->attach.mkfs);
    if (q->attach.force && q->attach.mkfs == NULL)
        return cmd_usage(&cmd_attach, "--force is for --mkfs");
    q->words.container = argv[optind];
    q->attach.folder = argv[optind + 1];
    return 0;
}

/* When it is one of our volumes, which, and how that ends. */
static int say_occupied(const char *folder, struct report *rep)
{
    AUTO_FOUND struct serve_found f = {0};

    if (serve_registry_find(&f, folder) < 0)
        return report_error(rep, EBUSY, "something is mounted at %s already", folder);
    return report_error(rep, EBUSY,
                        f.alive ? "%s is mounted at %s already (\"hushvol detach %s\" ends that)"
                                : "%s is still at %s, but its process died (\"hushvol detach %s\" "
                                  "cleans up)",
                        f.record.name, folder, f.record.name);
}

/* What the words come to, the volume's among them when it has a name. */
static int settle(struct request *q, int argc, char **argv, struct report *rep)
{
    int r = cmd_mount_named(&q->words, rep);

    if (r > 0)
        r = take_words(q, argc, argv);
    if (r < 0)
        return r;
    if (q->attach.folder == NULL && q->words.named != NULL)
        q->attach.folder = q->words.named->mountpoint;
    if (q->attach.folder == NULL)
        return cmd_usage(&cmd_attach, "takes a CONTAINER and a DIR");
    if (q->attach.mkfs != NULL && q->words.conf.vol.read_only)
        return cmd_usage(&cmd_attach, "--mkfs and -o ro contradict each other");
    return cmd_mount_as_owner(&q->words, rep);
}

/* Where udisks2 had mounted it when the machine stopped: a link that leads nowhere any more. */
static bool is_left_link(const char *path)
{
    char to[PATH_MAX];
    ssize_t n = readlink(path, to, sizeof(to) - 1);

    if (n < 0 || access(path, F_OK) == 0)
        return false;
    to[n] = '\0';
    return strncmp(to, "/media/", 7) == 0 || strncmp(to, "/run/media/", 11) == 0;
}

static int prepare_folder(struct request *q, struct report *rep)
{
    struct serve_mount_id there;

    if (is_left_link(q->attach.folder))
        unlink(q->attach.folder);
    q->made_folder = mkdir(q->attach.folder, 0755) == 0;
    if (!q->made_folder && errno != EEXIST)
        return report_errno(rep, errno, "cannot make the folder %s", q->attach.folder);
    if (realpath(q->attach.folder, q->folder) == NULL)
        return report_errno(rep, errno, "%s", q->attach.folder);
    q->attach.folder = q->folder;
    if (serve_mounts_at(&there, q->folder) == 0)
        return say_occupied(q->folder, rep);
    return 0;
}

static void remember(const struct serve_daemon_result *result, void *arg)
{
    struct request *q = arg;

    q->mounted = *result;
}

/* The daemon keeps it in its record, where umount and list find it. */
static int tell_daemon(const struct request *q, const struct serve_found *f, struct report *rep)
{
    struct json_object *facts = json_object_new_object(), *answer;
    const char *point = q->attach.point;
    bool linked = point[0] != '\0';

    json_object_object_add(facts, "filesystem", json_object_new_string(linked ? point : q->folder));
    json_object_object_add(facts, "made_filesystem",
                           json_object_new_boolean(q->made_folder && !linked));
    if (linked)
        json_object_object_add(facts, "link", json_object_new_string(q->folder));
    if (q->attach.device[0] != '\0')
        json_object_object_add(facts, "device", json_object_new_string(q->attach.device));
    int r = serve_control_ask(&answer, f, "attached", facts, rep);

    if (r == 0)
        json_object_put(answer);
    return r;
}

/* Ctrl-C ends the helper that is running, which has ordinary signals, and its failure takes
 * everything down again; were it to end us, mount and loop device would stay. */
static void leave_signals_to_helpers(void)
{
    static const int signals[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_IGN);
}

static int attach_on_top(struct request *q, struct report *rep)
{
    AUTO_FOUND struct serve_found f = {0};
    char image[PATH_MAX + 8];
    int r = serve_registry_find(&f, q->mounted.name);

    if (r < 0)
        return report_errno(rep, -r, "cannot find the mount again");
    snprintf(image, sizeof(image), "%s/image", q->mounted.mountpoint);
    q->attach.mountpoint = q->mounted.mountpoint;
    q->attach.image = image;
    q->attach.container = q->words.path;
    q->attach.header = q->words.conf.vol.header;
    q->attach.folder_is_new = q->made_folder;
    q->attach.read_only = q->words.conf.vol.read_only;
    q->attach.allow_other = q->words.conf.serve.allow_other;
    q->attach.allow_root = q->words.conf.serve.allow_root;
    r = cmd_attach_run(&q->attach, rep);
    if (r == 0) {
        r = tell_daemon(q, &f, rep);
        if (r < 0)
            cmd_attach_undo(&q->attach, rep);
    }
    if (r < 0)
        cmd_teardown(&f, false, rep);
    return r;
}

static int attach(struct request *q, struct report *rep)
{
    bool in_daemon = false;
    int r = cmd_attach_check(&q->attach, rep);

    if (r == 0)
        r = prepare_folder(q, rep);
    if (r == 0)
        r = cmd_mount_serve(&q->words, remember, q, &in_daemon, rep);
    if (in_daemon)
        return r;
    if (r == 0) {
        leave_signals_to_helpers();
        r = attach_on_top(q, rep);
    }
    if (r < 0 && q->made_folder)
        rmdir(q->folder);
    if (r == 0)
        printf("%s\n", q->folder);
    return r;
}

static int run(int argc, char **argv)
{
    struct request q = {0};
    struct report rep;
    int r;

    cmd_mount_words_init(&q.words);
    r = take_words(&q, argc, argv);
    report_stderr_init(&rep, "attach", q.words.container);
    rep.silent_infos = q.words.quiet;
    if (r == 0 && !q.words.help)
        r = settle(&q, argc, argv, &rep);
    if (r == 0)
        r = q.words.help ? cmd_help(&cmd_attach) : attach(&q, &rep);
    cmd_mount_words_done(&q.words);
    return r;
}

const struct command cmd_attach = {
    .name = "attach",
    .summary = "mount a container and the file system in it",
    .usage = usage,
    .run = run,
};
