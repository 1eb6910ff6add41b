/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/unmount.h"

#include "base/run.h"
#include "fuse/mounts.h"

#include <errno.h>
#include <sys/mount.h>
#include <unistd.h>

static int unmount_as_root(const char *point, bool lazy, struct report *rep)
{
    if (umount2(point, UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0)) == 0)
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
