/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/filesystem.h"

#include "base/auto.h"
#include "base/run.h"
#include "fuse/mounts.h"

#include <blkid/blkid.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define WAIT_TRIES 200 /* for fuse2fs to be mounted */
#define WAIT_MS 50

static void auto_probe(blkid_probe *p)
{
    if (*p != NULL)
        blkid_free_probe(*p);
}

static blkid_probe open_probe(int fd, const struct cmd_fs_part *part)
{
    blkid_probe p = blkid_new_probe();

    if (p == NULL)
        return NULL;
    if (blkid_probe_set_device(p, fd, (blkid_loff_t)part->off, (blkid_loff_t)part->len) == 0)
        return p;
    blkid_free_probe(p);
    return NULL;
}

static void copy_value(char *out, size_t size, blkid_probe p, const char *key)
{
    const char *value;

    if (blkid_probe_lookup_value(p, key, &value, NULL) == 0)
        snprintf(out, size, "%s", value);
}

int cmd_fs_probe(struct cmd_fs *ret, const char *path, const struct cmd_fs_part *part,
                 struct report *rep)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    blkid_probe p __attribute__((cleanup(auto_probe))) = NULL;
    int r;

    *ret = (struct cmd_fs){0};
    if (fd < 0)
        return report_errno(rep, errno, "cannot open %s", path);
    p = open_probe(fd, part);
    if (p == NULL)
        return report_errno(rep, EIO, "cannot look at %s", path);
    blkid_probe_enable_superblocks(p, 1);
    blkid_probe_set_superblocks_flags(p, BLKID_SUBLKS_TYPE);
    blkid_probe_enable_partitions(p, 1);
    r = blkid_do_safeprobe(p);
    if (r == -2)
        return report_error(rep, ENOTUNIQ, "the disk looks like several things at once");
    if (r < 0)
        return report_errno(rep, EIO, "cannot read %s", path);
    copy_value(ret->type, sizeof(ret->type), p, "TYPE");
    copy_value(ret->ptable, sizeof(ret->ptable), p, "PTTYPE");
    return 0;
}

int cmd_fs_partition(struct cmd_fs_part *ret, const char *path, int number, struct report *rep)
{
    const struct cmd_fs_part all = {0};
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    blkid_probe p __attribute__((cleanup(auto_probe))) = NULL;
    blkid_partlist list;
    blkid_partition part;

    if (fd < 0)
        return report_errno(rep, errno, "cannot open %s", path);
    p = open_probe(fd, &all);
    list = p != NULL ? blkid_probe_get_partitions(p) : NULL;
    if (list == NULL || blkid_partlist_numof_partitions(list) == 0)
        return report_error(rep, ENODATA,
                            "the disk has no partition table (leave --partition out)");
    part = blkid_partlist_get_partition_by_partno(list, number);
    if (part == NULL)
        return report_error(rep, ENOENT, "the disk has no partition %d (it has %d)", number,
                            blkid_partlist_numof_partitions(list));
    ret->off = (uint64_t)blkid_partition_get_start(part) * 512;
    ret->len = (uint64_t)blkid_partition_get_size(part) * 512;
    return 0;
}

bool cmd_fs_is_ext(const char *type)
{
    return strcmp(type, "ext2") == 0 || strcmp(type, "ext3") == 0 || strcmp(type, "ext4") == 0;
}

bool cmd_fs_can_make(const char *type)
{
    return strcmp(type, "ext4") == 0 || strcmp(type, "xfs") == 0 || strcmp(type, "btrfs") == 0;
}

/* What a program said when it failed, as one line. mkfs.xfs adds its whole usage to the reason. */
static const char *one_line(char *said)
{
    char *usage = strstr(said, "Usage:");
    size_t len;

    if (usage != NULL && usage != said)
        *usage = '\0';
    for (len = strlen(said); len > 0 && isspace((unsigned char)said[len - 1]); len--)
        said[len - 1] = '\0';
    for (char *c = said; *c != '\0'; c++)
        if (*c == '\n')
            *c = ' ';
    return said;
}

/* None of them discards first: a new disk has nothing to give back. An ext4 of a small disk would
 * get smaller blocks, each a read-modify-write for a larger cipher sector. */
int cmd_fs_make(const char *type, const char *path, uid_t owner, gid_t group, struct report *rep)
{
    char program[32], extended[64], said[1024] = "";
    const char *const ext[] = {program, "-q", "-F", "-b", "4096", "-E", extended, path, NULL};
    const char *const others[] = {program, "-q", "-f", "-K", path, NULL};
    int r;

    snprintf(program, sizeof(program), "mkfs.%.16s", type);
    snprintf(extended, sizeof(extended), "root_owner=%u:%u,nodiscard", owner, group);
    r = run_read(cmd_fs_is_ext(type) ? ext : others, said, sizeof(said), rep);
    if (r == -ENOENT)
        return -EOPNOTSUPP;
    return r > 0 ? report_error(rep, EIO, "%s ended with status %d: %s", program, r, one_line(said))
                 : r;
}

int cmd_fs_mount(const char *device, const char *folder, bool read_only, bool quiet,
                 struct report *rep)
{
    const char *const argv[] = {
        "mount", "-o", read_only ? "nosuid,nodev,ro" : "nosuid,nodev", "--", device, folder, NULL};
    int r = run_wait(argv, quiet ? RUN_HIDE_ALL : RUN_HIDE, rep);

    if (r > 0 && quiet)
        return -EIO;
    if (r > 0 && read_only)
        return report_error(rep, EIO,
                            "the file system cannot be mounted (one that was not unmounted must "
                            "write its journal first: attach it once without ro)");
    return r > 0 ? report_error(rep, EIO, "the file system cannot be mounted") : r;
}

/* Does this fuse2fs know -o offset=? Its help tells. */
static bool knows_offset(void)
{
    const char *const argv[] = {"fuse2fs", "-h", NULL};
    char help[8192];

    return run_read(argv, help, sizeof(help), NULL) >= 0 && strstr(help, "offset=") != NULL;
}

static int wait_mounted(const char *folder, struct report *rep)
{
    struct serve_mount_id there;

    for (int i = 0; i < WAIT_TRIES; i++) {
        if (serve_mounts_at(&there, folder) == 0 && there.fuse)
            return 0;
        poll(NULL, 0, WAIT_MS);
    }
    return report_error(rep, EIO, "fuse2fs did not mount the file system");
}

/* The image goes by a relative path because that becomes the source in the mount table: the whole
 * path leads through a folder that only its owner may enter, and mkfs.btrfs, when root runs it on
 * whatever disk, looks at every source and gives up at one it may not see. */
int cmd_fs_fuse2fs(const struct cmd_fs_fuse *spec, struct report *rep)
{
    char words[128];
    const char *const argv[] = {"fuse2fs", "image", spec->folder, "-o", words, NULL};
    int n, r;

    if (spec->off != 0 && !knows_offset())
        return report_error(rep, EOPNOTSUPP,
                            "this fuse2fs cannot mount a partition (needs e2fsprogs 1.47)");
    n = snprintf(words, sizeof(words), "%s%s%s", spec->read_only ? "ro" : "rw",
                 spec->allow_other ? ",allow_other" : "", spec->allow_root ? ",allow_root" : "");
    if (spec->off != 0)
        snprintf(words + n, sizeof(words) - (size_t)n, ",offset=%" PRIu64, spec->off);
    r = run_wait_in(spec->mountpoint, argv, RUN_HIDE, rep);
    if (r == -ENOENT)
        return -EOPNOTSUPP;
    if (r > 0)
        return report_error(rep, EIO, "fuse2fs ended with status %d", r);
    return r < 0 ? r : wait_mounted(spec->folder, rep);
}
