/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What is on a disk, and the programs that make, mend and mount file systems. */

#include "base/report.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct cmd_fs {
    char type[32];   /* "ext4"; "" nothing known */
    char ptable[16]; /* "gpt", when it is a partition table */
};

/* A part of a disk; len 0: to its end. */
struct cmd_fs_part {
    uint64_t off, len;
};

/* What is on the device or file at path? -ENOTUNIQ several things at once (said); -errno, said. */
int cmd_fs_probe(struct cmd_fs *ret, const char *path, const struct cmd_fs_part *part,
                 struct report *rep);
/* Where partition number lies. -ENOENT no such partition, -ENODATA no partition table; said. */
int cmd_fs_partition(struct cmd_fs_part *ret, const char *path, int number, struct report *rep);

bool cmd_fs_is_ext(const char *type);
/* Can we make it? ext4, xfs, btrfs. */
bool cmd_fs_can_make(const char *type);
/* Make one on a device or file that holds nothing. owner gets an ext4's root folder. */
int cmd_fs_make(const char *type, const char *path, uid_t owner, gid_t group, struct report *rep);
/* mount(8), nosuid and nodev. quiet: keep its words to itself. -EIO it failed. */
int cmd_fs_mount(const char *device, const char *folder, bool read_only, bool quiet,
                 struct report *rep);

struct cmd_fs_fuse {
    const char *mountpoint, *folder; /* the image is mountpoint/image */
    uint64_t off;
    bool read_only, allow_other, allow_root;
};
/* fuse2fs, and wait until the kernel has it mounted. -EOPNOTSUPP not installed, or too old for an
 * offset; -EIO; said. */
int cmd_fs_fuse2fs(const struct cmd_fs_fuse *spec, struct report *rep);
