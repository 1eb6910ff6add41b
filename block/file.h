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

/* Back to the page cache: granule is 1 from now on. Before anything is built on b, a file layer. */
void blk_file_leave_direct(struct blk *b);

/* How to make the bytes of a new file. */
struct blk_file_create {
    const char *path;
    uint64_t size;             /* bytes; on a block device only checked to fit */
    bool preallocate;          /* fallocate; where the file system has none, written zeros */
    bool replace;              /* whatever is at path may be overwritten */
    const char *if_exists;     /* what to do then, for the message; NULL: use --force */
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

/* Make room so that the container, whose bytes end at end now, can have size of them: the new ones
 * are zeros and durably there when this returns 0, and blk_resize() may follow; b->size stays. What
 * a file has behind end, left there by a resize that did not finish, is nobody's and is replaced.
 * preallocate: storage for all of it. A device has its size: only looked at, and what it holds
 * there stays. May take long, requests may run meanwhile; progress may be NULL. -ENOSPC, -EFBIG,
 * -EINTR (no words) and whatever else fails give back what was taken. */
int blk_file_extend(struct blk *b, uint64_t end, uint64_t size, bool preallocate,
                    struct progress *progress, struct report *rep);
/* Cut the file to size, which is what blk_resize() made of b before, durably. A device stays as it
 * is. */
int blk_file_shrink(struct blk *b, uint64_t size, struct report *rep);

/* Bytes of the file or device at this moment: a device may have grown since it was opened. */
int blk_file_real_size(const struct blk *b, uint64_t *ret);
/* Is b a block device? */
bool blk_file_is_device(const struct blk *b);
/* After a flush: let the kernel forget what it has cached, so that the next reads come from the
 * medium. As far as that is possible: a file system in memory has nothing else. */
void blk_file_drop_cache(const struct blk *b);

/* The descriptor, for fstat and for the messages of open; b is a file layer. */
int blk_file_fd(const struct blk *b);
