/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The one interface of the data path: a fixed-size array of bytes. Every layer is one of these and
 * holds the one below it; requests go down, data comes back up, nobody calls upwards. */

#include "base/auto.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct blk;

/* What a range of the device is (blk_extent). */
struct blk_extent {
    uint64_t end; /* bytes: the range that begins at the offset asked for ends here */
    bool hole;    /* no storage is behind it and it reads as zeros */
};

struct blk_stat {
    uint64_t allocated; /* bytes of storage in use below, headers included */
};

/* What blk_lend() found: the bytes of a range in their order, some of them still in memory of a
 * layer, which keeps it as it is until blk_loan_end(). Lives with the caller. */
#define BLK_LOAN_PARTS 16
struct blk_loan {
    unsigned n; /* of parts */
    struct iovec parts[BLK_LOAN_PARTS];
    void *keep[BLK_LOAN_PARTS]; /* the lender's, for each part; NULL: nothing to give back */
    struct blk *lender;         /* NULL: nothing was lent */
};

/* Units:   off and len are bytes, multiples of granule; off + len <= size (the blk_* calls check).
 * Threads: every op may run many times at once, on overlaps too; only the align layer orders.
 * Errors:  0 or -errno: -EIO the medium, -EBADMSG a sector that fails its tag, -ENOSPC, -EDQUOT,
 *          -EROFS. After a failed read buf holds nothing to rely on; after a failed write the range
 *          holds any mixture of old and new. */
struct blk_ops {
    const char *name;
    int (*read)(struct blk *b, void *buf, size_t len, uint64_t off);
    int (*write)(struct blk *b, const void *buf, size_t len, uint64_t off);
    /* Read, but leave the bytes in own memory where they are there; what is not goes to its place
     * in buf. May be NULL: the layer has nothing to lend, and read does. */
    int (*lend)(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off);
    /* Of the lender: the caller is done with the parts. */
    void (*take_back)(struct blk *b, struct blk_loan *loan);
    /* Everything answered before this call is durable when it returns 0. */
    int (*flush)(struct blk *b);
    /* The range reads as zeros afterwards; its storage may be given back. */
    int (*discard)(struct blk *b, uint64_t len, uint64_t off);
    /* The range reads as zeros afterwards; its storage stays allocated where that is possible. */
    int (*write_zeroes)(struct blk *b, uint64_t len, uint64_t off);
    /* Data or hole at off, and how far; may report data for what is a hole, never the reverse. */
    int (*extent)(struct blk *b, uint64_t off, struct blk_extent *ret);
    int (*stat)(struct blk *b, struct blk_stat *ret);
    /* Have size bytes from now on, here and as far as that needs it below: growing, the layers
     * below are larger first; shrinking, the ones above are smaller first. Nobody else may be
     * inside. The bottom does not make room, it goes to the size that is there (block/file.h makes
     * it). -EINVAL what is below does not have it, -ENOMEM; then b->size says how large b is.
     * NULL: the layer keeps its size (-EOPNOTSUPP). */
    int (*resize)(struct blk *b, uint64_t size);
    /* Release this layer only; blk_close() goes down. Must stand a half-built layer. */
    void (*close)(struct blk *b);
};

struct blk {
    const struct blk_ops *ops;
    struct blk *below; /* owned; NULL at the bottom */
    uint64_t size;     /* bytes, a multiple of granule */
    uint32_t granule;  /* bytes, a power of two; 1 at the bottom takes anything */
    bool read_only;    /* writes, discards and write_zeroes answer -EROFS */
};

/* Each checks the rules above first (-EINVAL, -EROFS) and does nothing for len 0. */
int blk_read(struct blk *b, void *buf, size_t len, uint64_t off);
int blk_write(struct blk *b, const void *buf, size_t len, uint64_t off);
/* As blk_read() into buf, or less copying: loan says where the bytes are, in buf or with a layer.
 * They are what the range held at one moment during this call, however long the loan lasts. After 0
 * blk_loan_end() must follow, soon, for blk_resize() waits for it; after an error nothing was lent.
 */
int blk_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off);
void blk_loan_end(struct blk_loan *loan);
int blk_flush(struct blk *b);
int blk_discard(struct blk *b, uint64_t len, uint64_t off);
int blk_write_zeroes(struct blk *b, uint64_t len, uint64_t off);
int blk_extent(struct blk *b, uint64_t off, struct blk_extent *ret);
int blk_stat(struct blk *b, struct blk_stat *ret);
/* size is a multiple of granule. Nothing is done when it is b->size. */
int blk_resize(struct blk *b, uint64_t size);

/* Close b and all below it; what was not flushed is lost. NULL is fine. */
void blk_close(struct blk *b);

/* What a layer names in its table when it leaves an op alone: the same call on the one below. */
int blk_pass_read(struct blk *b, void *buf, size_t len, uint64_t off);
int blk_pass_write(struct blk *b, const void *buf, size_t len, uint64_t off);
int blk_pass_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off);
int blk_pass_flush(struct blk *b);
int blk_pass_discard(struct blk *b, uint64_t len, uint64_t off);
int blk_pass_write_zeroes(struct blk *b, uint64_t len, uint64_t off);
int blk_pass_extent(struct blk *b, uint64_t off, struct blk_extent *ret);
int blk_pass_stat(struct blk *b, struct blk_stat *ret);
/* For a layer as large as the one below: both change, in the right order. */
int blk_pass_resize(struct blk *b, uint64_t size);

static inline void auto_blk(struct blk **b)
{
    blk_close(*b);
}
#define AUTO_BLK __attribute__((cleanup(auto_blk)))
