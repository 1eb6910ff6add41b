/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/file_layer.h"

/* Zeros in a file or on a device, and where there are some already.
 *
 *              first             where the kernel cannot
 * discard      PUNCH_HOLE        write_zeroes
 * write_zeroes ZERO_RANGE        zeros over the data of a file, over everything on a device
 *
 * Both fallocate modes promise zeros, also on devices (the kernel's blkdev_fallocate never turns a
 * punch into a discard that may leave data). Only "not supported" and "not in these units" fall
 * back; no room, no quota and a broken medium are the caller's to know. */

#include "base/bytes.h"

#include <errno.h>
#include <fcntl.h>

enum { ZEROS = 128 * 1024 };
static _Alignas(4096) unsigned char zeros[ZEROS]; /* never written: it costs no storage */

int file_fallocate(struct file *f, int mode, uint64_t len, uint64_t off)
{
    int r;

    do
        r = fallocate(f->fd, mode, (off_t)off, (off_t)len);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

/* -EOPNOTSUPP: do it in another way. */
static int file_try(struct file *f, atomic_bool *never, int mode, uint64_t len, uint64_t off)
{
    int r;

    if (atomic_load_explicit(never, memory_order_relaxed))
        return -EOPNOTSUPP;
    r = file_fallocate(f, mode | FALLOC_FL_KEEP_SIZE, len, off);
    if (r == -EOPNOTSUPP || r == -ENOSYS)
        atomic_store_explicit(never, true, memory_order_relaxed);
    /* EINVAL: a device takes whole logical blocks; the next range may be some. */
    return r == -ENOSYS || r == -EINVAL ? -EOPNOTSUPP : r;
}

int file_write_out_zeros(struct file *f, uint64_t len, uint64_t off)
{
    while (len > 0) {
        size_t n = len < ZEROS ? (size_t)len : ZEROS;
        int r = file_write(&f->blk, zeros, n, off);

        if (r < 0)
            return r;
        off += n;
        len -= n;
    }
    return 0;
}

/* Holes, and what was allocated and never written, read as zeros already. */
static int file_zero_data(struct file *f, uint64_t len, uint64_t off)
{
    uint64_t end = off + len;

    while (off < end) {
        struct blk_extent e;
        int r = file_extent(&f->blk, off, &e);

        if (r < 0)
            return r;
        if (e.end > end)
            e.end = end;
        r = e.hole ? 0 : file_write_out_zeros(f, e.end - off, off);
        if (r < 0)
            return r;
        off = e.end;
    }
    return 0;
}

int file_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct file *f = container_of(b, struct file, blk);
    int r = file_try(f, &f->no_zero_range, FALLOC_FL_ZERO_RANGE, len, off);

    return r == -EOPNOTSUPP ? file_zero_data(f, len, off) : r;
}

int file_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct file *f = container_of(b, struct file, blk);
    int r = file_try(f, &f->no_punch, FALLOC_FL_PUNCH_HOLE, len, off);

    return r == -EOPNOTSUPP ? file_write_zeroes(b, len, off) : r;
}

/* No data from off to the end of the file: a hole, unless the file was cut and off lies behind its
 * end, where a read fails. */
static int file_last_hole(struct file *f, struct blk_extent *ret)
{
    struct stat st;

    if (fstat(f->fd, &st) < 0)
        return -errno;
    if ((uint64_t)st.st_size < f->blk.size)
        return -EIO;
    *ret = (struct blk_extent){.end = f->blk.size, .hole = true};
    return 0;
}

/* Several threads may seek at once: the position that they share is used by nobody. */
int file_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    struct file *f = container_of(b, struct file, blk);
    struct blk_extent e = {.end = b->size, .hole = false};
    off_t data, hole;

    *ret = e;
    if (f->device)
        return 0;
    data = lseek(f->fd, (off_t)off, SEEK_DATA);
    if (data < 0 && errno == ENXIO)
        return file_last_hole(f, ret);
    if (data < 0) /* EINVAL: a file system that does not know holes */
        return errno == EINVAL || errno == EOPNOTSUPP ? 0 : -errno;
    e.end = bytes_round_down((uint64_t)data, b->granule);
    e.hole = e.end > off;
    if (!e.hole) {
        hole = lseek(f->fd, data, SEEK_HOLE);
        if (hole < 0) /* ENXIO: the file was cut just now; data is the safe answer */
            return errno == ENXIO || errno == EINVAL ? 0 : -errno;
        e.end = bytes_round_up((uint64_t)hole, b->granule);
    }
    if (e.end > b->size)
        e.end = b->size;
    *ret = e;
    return 0;
}
