/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/unmount.h"

#include "base/auto.h"
#include "base/run.h"
#include "fuse/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

/* Is the mount that the table shows as there what name in folder leads to? Asked of the kernel
 * without asking the file system, which may be dead. */
static bool is_at(const struct serve_mount_id *there, int folder, const char *name)
{
    const int quietly = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
    struct statx st;

    if (statx(folder, name, quietly, 0, &st) < 0)
        return false;
    if (st.stx_mask & STATX_MNT_ID) /* the devices of a btrfs and of its files differ */
        return st.stx_mnt_id == there->id;
    return st.stx_dev_major == there->major && st.stx_dev_minor == there->minor;
}

/* Users own folders on the way to their mount points, and may put a symbolic link in the place of
 * one while root looks: so the last folder is held, and what is unmounted is looked at from there.
 */
static int unmount_as_root(const char *point, bool lazy, struct report *rep)
{
    const char *name = strrchr(point, '/') + 1;
    AUTO_FREE char *parent = strndup(point, (size_t)(name - point));
    AUTO_FD int folder = parent != NULL ? open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    char path[NAME_MAX + 32];
    struct serve_mount_id there;

    if (serve_mounts_at(&there, point) < 0)
        return -ENOENT;
    if (folder < 0)
        return report_errno(rep, errno, "cannot open the folder of %s", point);
    if (!is_at(&there, folder, name))
        return report_error(rep, EPERM, "another mount took the place of the one at %s (try again)",
                            point);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", folder, name);
    if (umount2(path, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
        return 0;
    if (errno == EBUSY)
        return -EBUSY;
    if (errno == EINVAL)
        return -ENOENT;
    return report_errno(rep, errno, "cannot unmount %s", point);
}

/* fusermount3 tells only that it failed; whether it did, the mount table knows. */
static int unmount_as_user(const char *point, bool lazy, struct report *rep)
{
    const char *const argv[] = {"fusermount3", lazy ? "-uz" : "-u", "-q", "--", point, NULL};
    struct serve_mount_id before, after;
    int r = serve_mounts_at(&before, point);

    if (r < 0)
        return r;
    r = run_wait(argv, RUN_HIDE_ALL, rep);
    if (r < 0)
        return r;
    if (serve_mounts_at(&after, point) < 0 || !serve_mounts_same(&before, &after))
        return 0;
    if (before.user_id != (long)getuid())
        return report_error(rep, EPERM, "%s was mounted by another user", point);
    if (access("/etc/mtab", R_OK) < 0)
        return report_error(rep, EOPNOTSUPP,
                            "fusermount3 cannot unmount without /etc/mtab (as root: ln -s "
                            "../proc/self/mounts /etc/mtab)");
    return lazy ? report_error(rep, EIO, "fusermount3 cannot unmount %s", point) : -EBUSY;
}

int serve_unmount(const char *point, bool lazy, struct report *rep)
{
    return geteuid() == 0 ? unmount_as_root(point, lazy, rep) : unmount_as_user(point, lazy, rep);
}
