/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/attach.h"

/* Without root a file system is mounted by fuse2fs, which knows ext2, ext3 and ext4; or by the
 * kernel, where udisks2 makes a loop device for us and root may read the image. udisks2 chooses the
 * mount point itself, so the folder that the user wants becomes a link to it. Whatever udisks2
 * refuses, an ext file system goes on with fuse2fs. */

#include "cli/udisks.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A link, which takes the place of the folder that we made. */
static int make_link(const struct cmd_attach *a, char reason[REPORT_LINE])
{
    if (rmdir(a->folder) == 0 && symlink(a->point, a->folder) == 0)
        return 0;
    snprintf(reason, REPORT_LINE, "cannot make %.500s a link: %s", a->folder, strerror(errno));
    mkdir(a->folder, 0755);
    return -EOPNOTSUPP;
}

static void take_down(struct cmd_attach *a, struct report *rep)
{
    if (a->point[0] != '\0')
        cmd_udisks_unmount(a->device, false, rep);
    cmd_udisks_delete(a->device, a->image, rep);
    a->point[0] = a->device[0] = '\0';
}

static int mount_device(struct cmd_attach *a, const struct cmd_fs_part *part,
                        char reason[REPORT_LINE])
{
    const struct cmd_loop_spec spec = {
        .image = a->image, .off = part->off, .len = part->len, .read_only = a->read_only};
    int r = cmd_udisks_loop(a->device, &spec, reason);

    if (r < 0) {
        a->device[0] = '\0';
        return r;
    }
    r = cmd_udisks_mount(a->point, a->device, a->read_only, reason);
    if (r < 0)
        a->point[0] = '\0';
    else
        r = make_link(a, reason);
    if (r < 0)
        take_down(a, NULL);
    return r;
}

/* -ENOENT it is not wanted or not there; -EOPNOTSUPP it cannot. reason says why. */
static int attach_udisks(struct cmd_attach *a, const struct cmd_fs_part *part,
                         char reason[REPORT_LINE])
{
    int r;

    if (geteuid() == 0 || !(a->allow_root || a->allow_other)) {
        snprintf(reason, REPORT_LINE, "it takes root, or udisks2 and -o allow_root");
        return -ENOENT;
    }
    r = cmd_udisks_answers(reason);
    if (r < 0)
        return r;
    if (!a->folder_is_new) {
        snprintf(reason, REPORT_LINE,
                 "udisks2 chooses where it mounts, and the folder %.500s is there already (\"rmdir "
                 "%.300s\", and it becomes a link to that place)",
                 a->folder, a->folder);
        return -EOPNOTSUPP;
    }
    return mount_device(a, part, reason);
}

/* What its user should know; once, before it is mounted. */
static int check_for_fuse2fs(const struct cmd_attach *a, const struct cmd_fs_part *part,
                             const struct cmd_attach_content *c, struct report *rep)
{
    static const char without[] = "fuse2fs works without the journal and does not replay it";

    if (a->mkfs != NULL)
        return 0;
    if (a->read_only && c->found == CMD_EXT_JOURNAL)
        return report_error(rep, EROFS,
                            "its %s file system was not closed cleanly, and without its journal "
                            "fuse2fs cannot show it (attach it once without ro, which replays the "
                            "journal by e2fsck -p)",
                            c->fs.type);
    if (part->off != 0 && c->found == CMD_EXT_JOURNAL)
        return report_error(
            rep, EOPNOTSUPP,
            "its %s file system was not closed cleanly, and e2fsck cannot replay a "
            "journal in a partition of an image (attach it once as root, or through "
            "udisks2 with -o allow_root: then the kernel does)",
            c->fs.type);
    if (c->found == CMD_EXT_CLEAN)
        report_info(rep, "%s; it was closed cleanly, so no check is needed", without);
    else if (a->read_only)
        report_info(rep, "%s; it was not closed cleanly, and with ro it is left as it is", without);
    else
        report_info(rep, "%s; it was not closed cleanly, so e2fsck -p was run first%s", without,
                    c->mended ? ", and mended it" : "");
    return 0;
}

static int attach_fuse2fs(struct cmd_attach *a, const struct cmd_fs_part *part, struct report *rep)
{
    const struct cmd_fs_fuse spec = {.mountpoint = a->mountpoint,
                                     .folder = a->folder,
                                     .off = part->off,
                                     .read_only = a->read_only,
                                     .allow_other = a->allow_other,
                                     .allow_root = a->allow_root};

    return cmd_fs_fuse2fs(&spec, rep);
}

int cmd_attach_user(struct cmd_attach *a, const struct cmd_fs_part *part, struct report *rep)
{
    struct cmd_attach_content c;
    char reason[REPORT_LINE];
    int r;

    a->device[0] = a->point[0] = '\0';
    r = cmd_attach_prepare(a, a->image, part, &c, rep);
    if (r < 0)
        return r;
    r = attach_udisks(a, part, reason);
    if (r == 0)
        return 0;
    if (!cmd_fs_is_ext(c.fs.type))
        return report_error(rep, EOPNOTSUPP,
                            "%s needs a loop device (without one only ext2, ext3 and ext4 can be "
                            "mounted): %s",
                            c.fs.type, reason);
    if (r != -ENOENT)
        report_info(rep, "not by the kernel but by fuse2fs: %s", reason);
    r = check_for_fuse2fs(a, part, &c, rep);
    return r < 0 ? r : attach_fuse2fs(a, part, rep);
}

void cmd_attach_user_undo(struct cmd_attach *a, struct report *rep)
{
    if (a->point[0] == '\0') {
        serve_unmount(a->folder, false, rep);
        return;
    }
    unlink(a->folder);
    take_down(a, rep);
}
