/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The kernel's mount table as this process sees it (proc(5), /proc/PID/mountinfo). Asking it never
 * touches a file system, so a dead one cannot make us wait. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct serve_mounted {
    uint64_t id;           /* of the mount, unique while it is there */
    unsigned major, minor; /* st_dev of what is mounted */
    char *point;           /* the mount point, absolute */
    char *options;         /* of the mount: "rw,nosuid" */
    char *type;            /* "ext4", "fuse.hushvol" */
    char *source;          /* what was mounted */
    char *super;           /* options of the file system: "rw,user_id=1000,..." */
};

/* Call fn for each line of f, in the kernel's order: what hides another mount comes later. Ends
 * with the first answer that is not 0 and returns it; strings are fn's to look at until it returns.
 */
int serve_mounts_read(FILE *f, int (*fn)(const struct serve_mounted *m, void *arg), void *arg);
/* The same over our own table. -errno when it cannot be read. */
int serve_mounts_each(int (*fn)(const struct serve_mounted *m, void *arg), void *arg);

/* What a mount is, small enough to send to another process. */
struct serve_mount_id {
    uint64_t id;
    unsigned major, minor;
    bool fuse;    /* some FUSE file system */
    bool ours;    /* its type is fuse.hushvol */
    long user_id; /* who mounted it, when it is FUSE; else -1 */
};
/* The visible mount at this path (absolute, without symbolic links). -ENOENT nothing is mounted
 * there. */
int serve_mounts_at(struct serve_mount_id *ret, const char *point);
/* Is this source ("/dev/loop0") mounted at this path, or with point NULL anywhere? */
bool serve_mounts_has(const char *point, const char *source);
bool serve_mounts_same(const struct serve_mount_id *a, const struct serve_mount_id *b);
