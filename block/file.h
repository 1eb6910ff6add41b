/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/progress.h"
#include "base/report.h"
#include "block/blk.h"

#include <sys/types.h>

enum blk_direct { BLK_DIRECT_AUTO, BLK_DIRECT_ON, BLK_DIRECT_OFF };
enum blk_lock {
    BLK_LOCK_AUTO, /* shared when read-only, exclusive otherwise */
    BLK_LOCK_NONE, /* just looking: for headers that are safe to read at any time */
};

struct blk_file_spec {
    const char *path;
    bool read_only;
    enum blk_direct direct; /* auto: O_DIRECT for block devices, the page cache for files */
    enum blk_lock lock;
};

/* Open the regular file or block device at spec->path as the bottom of a stack. Holds an OFD lock
 * on it (and O_EXCL on a device opened for writing) until closed. Never goes on with a size that is
 * not there: size is fstat's or BLKGETSIZE64's at this moment. granule is 1, with O_DIRECT what the
 * device needs; memory of any alignment will do.
 * -ENOENT; -EACCES, -EPERM, -EROFS as the kernel says; -EINVAL not a file or device; -EOPNOTSUPP
 * O_DIRECT was asked for and is not possible;
 * -EBUSY locked: no words are said and *holder (if not NULL) is the pid of the holder where the
 * kernel knows it, else 0, so that the caller can name the mount. */
int blk_file_open(struct blk **ret, const struct blk_file_spec *spec, pid_t *holder,
                  struct report *rep);

/* How to make the bytes of a new file. */
struct blk_file_create {
    const char *path;
    uint64_t size;             /* bytes; on a block device only checked to fit */
    bool preallocate;          /* fallocate; where the file system has none, written zeros */
    bool replace;              /* whatever is at path may be overwritten */
    struct progress *progress; /* while zeros are written; may be NULL */
};

/* Make a new regular file of spec->size zero bytes, mode 0600, or open the existing block device at
 * the path, locked for writing. Without replace: -EEXIST when the file exists, or the device holds
 * something (any byte of its first or last MiB is not zero). With replace an existing regular file
 * stays untouched until blk_file_commit(): the new one grows beside it, under another name.
 * blk_close() without commit removes the new file. -ENOSPC before anything is promised; -EINTR when
 * progress says so (no words); -EINVAL something else than a file or device is there; -EBUSY (no
 * words) what is there is in use. granule is 1. */
int blk_file_create(struct blk **ret, const struct blk_file_create *spec, struct report *rep);
/* The new file is complete: make it durable and give it its name. b is what blk_file_create made.
 * -EEXIST somebody else took the name meanwhile. */
int blk_file_commit(struct blk *b, struct report *rep);

/* The descriptor, for fstat and for the messages of open; b is a file layer. */
int blk_file_fd(const struct blk *b);
