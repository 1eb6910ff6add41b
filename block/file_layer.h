/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the parts of the file layer share; nobody else includes it.
 * file.c opens, reads and writes; file_zero.c makes and finds zeros; file_create.c makes new ones;
 * file_room.c makes them larger and smaller.
 */

#include "base/buf.h"
#include "block/file.h"

#include <stdatomic.h>
#include <sys/stat.h>

struct file_draft; /* a new file before its commit */

struct file {
    struct blk blk;
    int fd;
    bool device;
    uint32_t mem_align;  /* bytes: what O_DIRECT wants of memory */
    struct bufs *bounce; /* for memory that is not aligned so; NULL: any will do */
    atomic_bool no_punch,
        no_zero_range;        /* fallocate said that it cannot, so it is not asked again */
    struct file_draft *draft; /* owned; NULL: it has its name */
};

/* file.c */

/* A layer without a file yet, granule 1; blk_close() releases it. NULL: no memory. */
struct file *file_new(void);
/* Only regular files and block devices are bytes that stay: -EINVAL, with words, for anything else.
 */
int file_check_kind(const struct stat *st, const char *path, struct report *rep);
/* OFD lock on all of fd, type F_RDLCK or F_WRLCK. -EBUSY when it is taken, in silence, *holder as
 * in blk_file_open(); other errors with words. */
int file_lock(int fd, short type, pid_t *holder, struct report *rep);
int file_write(struct blk *b, const void *buf, size_t len, uint64_t off);
/* Bytes of the file or device now, whatever f->blk.size says. */
int file_real_size(const struct file *f, uint64_t *ret);

/* file_zero.c */

int file_discard(struct blk *b, uint64_t len, uint64_t off);
int file_write_zeroes(struct blk *b, uint64_t len, uint64_t off);
int file_extent(struct blk *b, uint64_t off, struct blk_extent *ret);
/* fallocate() with mode, whatever signals come. */
int file_fallocate(struct file *f, int mode, uint64_t len, uint64_t off);
/* Zeros written like any other bytes. */
int file_write_out_zeros(struct file *f, uint64_t len, uint64_t off);

/* file_room.c */

/* Storage, which reads as zeros, for the bytes from off to size, where the file has none yet; it is
 * that large then. -ENOSPC, -EINTR when progress says so: part of it may be there. */
int file_preallocate(struct file *f, uint64_t off, uint64_t size, struct progress *progress);

/* file_create.c */

/* Remove the new file, release d. NULL is fine. */
void file_draft_close(struct file_draft *d);
