/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/point.h"

/* Users own folders on the way to their mount points, and can put other things in their place at
 * any moment. So nothing is checked by path: what was opened is looked at, and mounted on.
 *
 * Without O_DIRECTORY, with which the kernel would start the automount that we are part of. */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#define AUTOMOUNT 0x0187

/* File systems of files. In others (proc, cgroup, devpts, ...) folders of a user can stand for
 * something of the system's. Numbers that linux/magic.h may lack, too. */
static const unsigned long of_files[] = {
    0xef53,     /* ext2, ext3, ext4 */
    0x58465342, /* xfs */
    0x9123683e, /* btrfs */
    0x01021994, /* tmpfs */
    0x858458f6, /* ramfs */
    0x794c7630, /* overlay */
    0x61756673, /* aufs */
    0xf2f52010, /* f2fs */
    0x2fc12fc1, /* zfs */
    0xca451a4e, /* bcachefs */
    0x3153464a, /* jfs */
    0x52654973, /* reiserfs */
    0x3434,     /* nilfs */
    0x24051905, /* ubifs */
    0x00004d44, /* fat */
    0x2011bab0, /* exfat */
    0x5346544e, /* ntfs */
    0x7366746e, /* ntfs3 */
    0x0000482b, /* hfs+ */
    0x65735546, /* fuse */
    0x0000f15f, /* ecryptfs */
    0x00006969, /* nfs */
    0xff534d42, /* cifs */
    0xfe534d42, /* smb */
    0x01021997, /* 9p */
    0x00c36400, /* ceph */
    0x0bd00bd0, /* lustre */
    0x47504653, /* gpfs */
    0x01161970, /* gfs2 */
    0x7461636f, /* ocfs2 */
    0x6b414653, /* afs */
    0x786f4256, /* vboxsf */
};

static bool keeps_files(unsigned long type)
{
    for (size_t i = 0; i < sizeof(of_files) / sizeof(of_files[0]); i++)
        if (of_files[i] == type)
            return true;
    return false;
}

/* errno values of what is looked at; in the user's person. */
static int look(int fd, struct stat *st, struct statfs *fs, bool *writable)
{
    if (fstat(fd, st) < 0 || fstatfs(fd, fs) < 0)
        return -errno;
    *writable = syscall(SYS_faccessat2, fd, "", W_OK | X_OK, AT_EACCESS | AT_EMPTY_PATH) == 0;
    return *writable || errno == EACCES || errno == EROFS ? 0 : -errno;
}

static int open_as(const char *path, const struct serve_become *user, struct stat *st,
                   struct statfs *fs, bool *writable)
{
    const struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                                 .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
    AUTO_FD int fd = -1;
    int r = serve_become_begin(user);

    if (r == 0) {
        fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        r = fd < 0 ? -errno : look(fd, st, fs, writable);
    }
    if (serve_become_end() < 0)
        return -ENOTRECOVERABLE;
    return r < 0 ? r : TAKE_FD(fd);
}

static int check(const char *path, const struct serve_become *user, const struct stat *st,
                 const struct statfs *fs, struct report *rep)
{
    if (!S_ISDIR(st->st_mode))
        return report_error(rep, ENOTDIR, "mount point %s is not a folder", path);
    if (!keeps_files((unsigned long)fs->f_type))
        return report_error(rep, EPERM,
                            "mount point %s is in a file system that keeps no files (type 0x%lx)",
                            path, (unsigned long)fs->f_type);
    if (st->st_uid != user->uid)
        return report_error(rep, EPERM,
                            "mount point %s belongs to user %u and must be one of %s's own (chown)",
                            path, (unsigned)st->st_uid, user->name);
    return 0;
}

int serve_point_open(const char *path, const struct serve_become *user, const char *granted,
                     struct report *rep)
{
    struct stat st = {0};
    struct statfs fs = {0};
    bool writable = false;
    AUTO_FD int fd = open_as(path, user, &st, &fs, &writable);
    int r;

    if (fd == -ELOOP)
        return report_error(rep, ELOOP,
                            "there is a symbolic link in the path of the mount point %s", path);
    if (fd < 0)
        return report_errno(rep, -fd, "cannot open the mount point %s as %s", path, user->name);
    if (fs.f_type == AUTOMOUNT && st.st_uid == 0 && granted != NULL && strcmp(path, granted) == 0)
        return TAKE_FD(fd);
    r = check(path, user, &st, &fs, rep);
    if (r == 0 && !writable)
        r = report_error(rep, EPERM, "%s may not write to the mount point %s", user->name, path);
    return r < 0 ? r : TAKE_FD(fd);
}
