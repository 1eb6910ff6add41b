/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/attach.h"

/* A loop device is made with 4096-byte blocks, which spares a read-modify-write in a sector cipher
 * of that size; a file system that was made on 512-byte blocks may refuse to be mounted on larger
 * ones, and then gets those. */

#include "fuse/unmount.h"

#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_LARGE 4096
#define BLOCK_SMALL 512

/* Root may live in a container without loop devices. */
static bool use_loop(void)
{
    return geteuid() == 0 && cmd_loop_possible() == 0;
}

int cmd_attach_check(const struct cmd_attach *a, struct report *rep)
{
    if (use_loop() || a->mkfs == NULL)
        return 0;
    if (!cmd_fs_is_ext(a->mkfs))
        return report_error(rep, EOPNOTSUPP,
                            "%s needs a loop device, and so root; without it only ext4 can be used",
                            a->mkfs);
    if (a->partition != 0)
        return report_error(rep, EOPNOTSUPP,
                            "--mkfs on a partition needs a loop device, and so "
                            "root");
    return 0;
}

/* What is there must be what is wanted: nothing for mkfs, else a file system. */
static int check_content(const struct cmd_attach *a, const struct cmd_fs *fs, struct report *rep)
{
    const char *what = fs->type[0] != '\0' ? fs->type : fs->ptable;

    if (a->mkfs != NULL && what[0] != '\0' && !a->force)
        return report_error(rep, EEXIST,
                            "the disk holds something already: %s (--force overwrites it)", what);
    if (a->mkfs != NULL)
        return 0;
    if (fs->type[0] != '\0')
        return 0;
    if (fs->ptable[0] != '\0')
        return report_error(rep, ENODATA,
                            "the disk has a partition table (%s): choose one with --partition N",
                            fs->ptable);
    return report_error(rep, ENODATA, "the disk holds no file system (--mkfs ext4 makes one)");
}

/* Probe, and make or mend: target is the loop device, or the image with an offset. What is there,
 * the image is asked: partition tables count in 512-byte blocks, whatever those of the device. */
static int make_ready(const struct cmd_attach *a, const char *target,
                      const struct cmd_fs_part *part, struct cmd_fs *fs, struct report *rep)
{
    bool is_device = a->device[0] != '\0';
    int r = cmd_fs_probe(fs, a->image, part, a->force ? NULL : rep);

    if (r < 0 && !(a->force && r == -ENOTUNIQ))
        return r;
    r = check_content(a, fs, rep);
    if (r == 0 && a->mkfs != NULL)
        return cmd_fs_make(a->mkfs, target, getuid(), getgid(), rep);
    if (r == 0 && cmd_fs_is_ext(fs->type) && !a->read_only)
        r = cmd_fs_check(target, is_device ? 0 : part->off, rep);
    return r;
}

static uint32_t best_block_size(const struct cmd_attach *a, const struct cmd_fs_part *part)
{
    struct stat st;

    if (stat(a->image, &st) < 0 || st.st_size % BLOCK_LARGE != 0 || part->off % BLOCK_LARGE != 0 ||
        part->len % BLOCK_LARGE != 0)
        return BLOCK_SMALL;
    return BLOCK_LARGE;
}

/* quiet: another try follows. */
static int try_block_size(struct cmd_attach *a, const struct cmd_fs_part *part, uint32_t size,
                          bool quiet, struct report *rep)
{
    const struct cmd_loop_spec spec = {.image = a->image,
                                       .off = part->off,
                                       .len = part->len,
                                       .read_only = a->read_only,
                                       .block_size = size};
    struct cmd_fs fs;
    int r = cmd_loop_attach(a->device, &spec, rep);

    if (r < 0)
        return r;
    r = make_ready(a, a->device, part, &fs, rep);
    if (r == 0) {
        r = cmd_fs_mount(a->device, a->folder, a->read_only, quiet, rep);
        if (r == -EIO && quiet)
            r = -EAGAIN;
    }
    if (r < 0) {
        cmd_loop_detach(a->device, a->image, rep);
        a->device[0] = '\0';
    }
    return r;
}

static int attach_loop(struct cmd_attach *a, const struct cmd_fs_part *part, struct report *rep)
{
    uint32_t size = best_block_size(a, part);
    bool may_be_small = size != BLOCK_SMALL && a->mkfs == NULL;
    int r = try_block_size(a, part, size, may_be_small, rep);

    if (r == -EAGAIN)
        r = try_block_size(a, part, BLOCK_SMALL, false, rep);
    return r;
}

static int attach_fuse2fs(struct cmd_attach *a, const struct cmd_fs_part *part, struct report *rep)
{
    const struct cmd_fs_fuse spec = {.mountpoint = a->mountpoint,
                                     .folder = a->folder,
                                     .off = part->off,
                                     .read_only = a->read_only,
                                     .allow_other = a->allow_other,
                                     .allow_root = a->allow_root};
    struct cmd_fs fs;
    int r;

    a->device[0] = '\0';
    r = make_ready(a, a->image, part, &fs, rep);

    if (r < 0)
        return r;
    if (a->mkfs == NULL && !cmd_fs_is_ext(fs.type))
        return report_error(rep, EOPNOTSUPP,
                            "%s needs a loop device, and so root; without it only ext2, ext3 and "
                            "ext4 can be mounted",
                            fs.type);
    return cmd_fs_fuse2fs(&spec, rep);
}

int cmd_attach_run(struct cmd_attach *a, struct report *rep)
{
    struct cmd_fs_part part = {0};
    int r = 0;

    if (a->partition != 0)
        r = cmd_fs_partition(&part, a->image, a->partition, rep);
    if (r < 0)
        return r;
    return use_loop() ? attach_loop(a, &part, rep) : attach_fuse2fs(a, &part, rep);
}

void cmd_attach_undo(struct cmd_attach *a, struct report *rep)
{
    serve_unmount(a->folder, false, rep);
    if (a->device[0] != '\0')
        cmd_loop_detach(a->device, a->image, rep);
}
