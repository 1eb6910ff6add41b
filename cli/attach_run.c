/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/attach.h"

/* A loop device is made with 4096-byte blocks, which spares a read-modify-write in a sector cipher
 * of that size; a file system that was made on 512-byte blocks may refuse to be mounted on larger
 * ones, and then gets those. */

#include "base/run.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
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

/* mount prints the path of the image. */
static int say_by_hand(const struct cmd_attach *a, const char *type, uint64_t off,
                       struct report *rep)
{
    char program[PATH_MAX] = "e2fsck", where[40] = "";

    run_find(program, sizeof(program), "e2fsck");
    if (off != 0)
        snprintf(where, sizeof(where), "?offset=%" PRIu64, off);
    return report_error(rep, EIO,
                        "its %s file system needs a repair that a person has to watch: %s -f "
                        "\"$(hushvol mount %s%s%s)%s\", then hushvol umount %s",
                        type, program, a->container, a->header != NULL ? " --header " : "",
                        a->header != NULL ? a->header : "", where, a->container);
}

/* e2fsck forgets the offset when it opens a file system again after replaying its journal: such a
 * one inside an image is left to the kernel, or refused. */
static int mend(const struct cmd_attach *a, const char *target, const struct cmd_fs_part *part,
                struct cmd_attach_content *c, struct report *rep)
{
    uint64_t off = a->device[0] != '\0' ? 0 : part->off;
    int r;

    c->found = cmd_ext_state(target, off);
    if (c->found == CMD_EXT_CLEAN || a->read_only || (c->found == CMD_EXT_JOURNAL && off != 0))
        return 0;
    r = cmd_ext_mend(target, off, rep);
    c->mended = r > 0;
    if (r == -EUCLEAN)
        return say_by_hand(a, c->fs.type, part->off, rep);
    return r < 0 ? r : 0;
}

/* What is there, the image is asked: partition tables count in 512-byte blocks, whatever those of
 * the device. */
int cmd_attach_prepare(const struct cmd_attach *a, const char *target,
                       const struct cmd_fs_part *part, struct cmd_attach_content *ret,
                       struct report *rep)
{
    int r;

    *ret = (struct cmd_attach_content){.found = CMD_EXT_CLEAN};
    r = cmd_fs_probe(&ret->fs, a->image, part, a->force ? NULL : rep);
    if (r < 0 && !(a->force && r == -ENOTUNIQ))
        return r;
    r = check_content(a, &ret->fs, rep);
    if (r < 0)
        return r;
    if (a->mkfs != NULL) {
        snprintf(ret->fs.type, sizeof(ret->fs.type), "%s", a->mkfs);
        return cmd_fs_make(a->mkfs, target, getuid(), getgid(), rep);
    }
    return cmd_fs_is_ext(ret->fs.type) ? mend(a, target, part, ret, rep) : 0;
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
    struct cmd_attach_content c;
    int r = cmd_loop_attach(a->device, &spec, rep);

    if (r < 0)
        return r;
    r = cmd_attach_prepare(a, a->device, part, &c, rep);
    if (r == 0 && c.mended)
        report_info(rep, "e2fsck mended the file system");
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

int cmd_attach_run(struct cmd_attach *a, struct report *rep)
{
    struct cmd_fs_part part = {0};
    int r = 0;

    if (a->partition != 0)
        r = cmd_fs_partition(&part, a->image, a->partition, rep);
    if (r < 0)
        return r;
    return use_loop() ? attach_loop(a, &part, rep) : cmd_attach_user(a, &part, rep);
}

void cmd_attach_undo(struct cmd_attach *a, struct report *rep)
{
    if (!use_loop()) {
        cmd_attach_user_undo(a, rep);
        return;
    }
    serve_unmount(a->folder, false, rep);
    if (a->device[0] != '\0')
        cmd_loop_detach(a->device, a->image, rep);
}
