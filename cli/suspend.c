/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol suspend: the process that serves a volume forgets its keys (fuse/suspend.c). What lies
 * above it is the command's to see to: the daemon must not call into its own mount, where its
 * request would be one of those that wait. */

#include "base/auto.h"
#include "cli/all.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/job.h"
#include "cli/loop.h"
#include "cli/teardown.h"
#include "fuse/control.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol suspend DIR|NAME|CONTAINER [OPTION...]\n"
    "       hushvol suspend --all\n"
    "\n"
    "Wipes the keys of a mounted volume from memory and leaves it mounted. Everything is written\n"
    "first: the file system on it is synced, then the container. Whoever reads or writes the disk\n"
    "from then on waits until \"hushvol resume\". It can be ended meanwhile, but not\n"
    "always: who reads through fuse2fs waits for that, the kernel lets a program that writes the\n"
    "image wait for the one before it, and after two minutes its log may say that something hangs.\n"
    "Files that a file system above keeps in the kernel's memory can still be read; as root,\n"
    "\"sysctl vm.drop_caches=3\" drops them. A volume that is suspended already stays so: status 0.\n"
    "\n"
    "  -a, --all                every mounted volume of yours (for root, of everybody), instead of\n"
    "                           one; status 0 when there is none\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol suspend photos\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 5 writes wait for room on the host, or its\n"
    "process is busy with something else, 6 not possible in this format, 7 no such mount.\n";
/* clang-format on */

/* Requests that visit each thread of the daemon, where they wait in turn (fuse/thread.c). */
#define VISITS 100
#define VISIT_US 300 /* between them: for the last one to get in line again */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"all", no_argument, NULL, 'a'},
    {0},
};

/* What we know of the layers above; synced where we may. */
struct above {
    const char *image;
    bool file_system;
};

/* As root: the file system on a loop device writes what it has, and the device drops its pages. */
static void flush_loop(const char *device, const char *backing, void *arg)
{
    struct above *above = arg;
    AUTO_FD int fd = -1;

    if (strcmp(backing, above->image) != 0)
        return;
    above->file_system = true;
    fd = open(device, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        ioctl(fd, BLKFLSBUF, 0);
}

/* fuse2fs keeps blocks of its own, which a sync of its mount does not reach but an fsync does. */
static void sync_file_system(const char *point, struct report *rep)
{
    AUTO_FD int fd = open(point, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || syncfs(fd) < 0)
        report_warn(rep, "the file system at %s cannot be synced: %s", point, strerror(errno));
    else
        fsync(fd);
}

/* Pages of the image that the kernel has (option cache): those of a shared mapping are written,
 * then all go that nobody is at. This does not wait for requests, so it can be done when they do.
 */
static void drop_pages(const char *image)
{
    AUTO_FD int fd = open(image, O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
}

static void sync_image(const char *image)
{
    AUTO_FD int fd = open(image, O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        fsync(fd);
}

static void sync_above(const struct serve_found *f, struct above *above, struct report *rep)
{
    if (cmd_teardown_has_filesystem(f)) {
        above->file_system = true;
        sync_file_system(f->record.filesystem, rep);
    }
    cmd_loop_each(flush_loop, above);
}

static void visit_threads(const char *mountpoint)
{
    struct statfs st;

    for (unsigned i = 0; i < VISITS && statfs(mountpoint, &st) == 0; i++)
        usleep(VISIT_US);
}

static int suspend(const struct serve_found *f, const struct cmd_served *now, struct report *rep)
{
    const struct cmd_job job = {.word = "suspend", .fd = -1, .doing = "suspend"};
    char image[PATH_MAX];
    struct above above = {.image = image};
    bool there = cmd_teardown_has_image(f); /* else its path is only somebody's word */
    int r;

    snprintf(image, sizeof(image), "%s/image", f->record.mountpoint);
    if (now->waits_for_room) /* a sync would wait, too, and nothing could end it */
        return report_error(rep, EBUSY,
                            "writes wait for room on the container's file system (make some room, "
                            "or unmount: what was not synced is lost then)");
    sync_above(f, &above, rep);
    if (there && now->cache)
        sync_image(image);
    r = cmd_job_run(f, &job, rep);
    if (r < 0)
        return r;
    if (there && now->cache)
        drop_pages(image);
    if (there)
        visit_threads(f->record.mountpoint);
    report_info(rep, "%s is suspended; next: hushvol resume %s", f->record.name, f->record.name);
    if (above.file_system)
        report_info(rep, "files that the file system above it keeps in memory can still be read "
                         "(as root: sysctl vm.drop_caches=3 drops them)");
    return 0;
}

int cmd_suspend_mount(const struct serve_found *f, struct report *rep)
{
    struct cmd_served now;
    int r = cmd_ask_served(&now, f, rep);

    if (r < 0)
        return r;
    if (!now.suspended)
        return suspend(f, &now, rep);
    report_info(rep, "%s is suspended already", f->record.name);
    return 0;
}

static int run(int argc, char **argv)
{
    AUTO_FOUND struct serve_found f = {0};
    struct report rep;
    bool all = false;
    int opt, r;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":va", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            return cmd_help(&cmd_suspend);
        if (opt == 'a')
            all = true;
        else if (opt != 'v')
            return cmd_option_error(&cmd_suspend, opt, argv);
    }
    if (argc - optind != !all)
        return cmd_usage(&cmd_suspend, all ? "--all takes no DIR, NAME or CONTAINER"
                                           : "takes one DIR, NAME or CONTAINER");
    report_stderr_init(&rep, "suspend", argv[optind]);
    if (all)
        return cmd_suspend_all(&rep);
    r = cmd_find_mounted(&f, argv[optind], &rep);
    return r < 0 ? r : cmd_suspend_mount(&f, &rep);
}

const struct command cmd_suspend = {
    .name = "suspend",
    .summary = "wipe the keys of a mounted volume and let it wait",
    .usage = usage,
    .run = run,
};
