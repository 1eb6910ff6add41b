/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/resize.h"

/* A mounted disk grows in the process that serves it. What stands on its image does not notice by
 * itself: the kernel learns the image's new size at the next look at it, a loop device when it is
 * told, a file system by a program of its own. The first two are ours as far as we may, the last
 * one is named. */

#include "cli/job.h"
#include "cli/loop.h"
#include "fuse/mounts.h"

#include <errno.h>
#include <json-c/json.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The loop devices on one image. */
struct above {
    const struct serve_found *f;
    char image[PATH_MAX + 8];
    struct serve_mount_id mount;
    unsigned n_grown;
    struct report *rep;
};

/* As root, devices that root's own attach made; others are named. */
static void follow(const char *device, const char *backing, void *arg)
{
    struct above *a = arg;
    const char *ours = a->f->record.device;

    if (strcmp(backing, a->image) != 0 || !cmd_loop_on_mount(device, &a->mount))
        return;
    if (geteuid() != 0 || a->f->folder.owner != 0 || ours == NULL || strcmp(device, ours) != 0)
        printf("next, as root: losetup -c %s\n", device);
    else if (cmd_loop_set_capacity(device, a->rep) == 0)
        a->n_grown++;
}

static void say_next(const struct above *a)
{
    const char *folder = a->f->record.filesystem, *device = a->f->record.device;
    char shown[REPORT_LINE];

    report_escape(shown, sizeof(shown), folder != NULL ? folder : a->image);
    if (device != NULL && a->n_grown > 0)
        printf("next, for the file system in %s: resize2fs %s (ext4), xfs_growfs %s,\n"
               "      or btrfs filesystem resize max %s\n",
               shown, device, shown, shown);
    else if (folder != NULL && device == NULL)
        printf(
            "next: hushvol detach %s; then hushvol mount, e2fsck -f and resize2fs on the image\n",
            shown);
    else
        printf("next: the file system on %s, by resize2fs, xfs_growfs or btrfs filesystem resize\n",
               shown);
}

/* A look at the image first: by then the kernel knows its size, which loop devices go by. */
static void go_up(const struct serve_found *f, struct report *rep)
{
    struct above a = {.f = f, .rep = rep};
    struct stat st;

    snprintf(a.image, sizeof(a.image), "%s/image", f->record.mountpoint);
    if (serve_mounts_at(&a.mount, f->record.mountpoint) == 0 && a.mount.ours &&
        stat(a.image, &st) == 0)
        cmd_loop_each(follow, &a);
    say_next(&a);
}

int cmd_resize_mounted(const struct serve_found *f, const struct cmd_size *want, struct report *rep)
{
    AUTO_FOUND struct serve_found now = {0};
    struct cmd_job job = {.word = "resize", .fd = -1, .doing = "resize"};
    uint64_t size = 0;
    int r = want->how == CMD_SIZE_ALL ? 0 : cmd_size_of(&size, want, f->record.size, rep);

    if (r < 0)
        return r;
    job.more = json_object_new_object();
    json_object_object_add(job.more, "size", json_object_new_uint64(size));
    r = cmd_job_run(f, &job, rep);
    if (r < 0)
        return r;
    r = serve_registry_again(&now, f);
    if (r < 0)
        return report_errno(rep, -r, "it was done, and the mount ended");
    cmd_size_say(f->record.name, now.record.size, f->record.size);
    if (now.record.size > f->record.size)
        go_up(&now, rep);
    return 0;
}
