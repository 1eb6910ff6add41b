/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/blk.h"

/* The checks of every request, here once: a layer may rely on whole granules inside its size, and a
 * mistake in one layer is caught by the next one below instead of reaching the storage. */

#include <errno.h>

static int check(const struct blk *b, uint64_t len, uint64_t off)
{
    if (((off | len) & (b->granule - 1)) != 0 || off > b->size || len > b->size - off)
        return -EINVAL;
    return 0;
}

static int check_change(const struct blk *b, uint64_t len, uint64_t off)
{
    int r = check(b, len, off);

    return r == 0 && b->read_only ? -EROFS : r;
}

int blk_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    int r = check(b, len, off);

    return r < 0 || len == 0 ? r : b->ops->read(b, buf, len, off);
}

int blk_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    int r = check_change(b, len, off);

    return r < 0 || len == 0 ? r : b->ops->write(b, buf, len, off);
}

int blk_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off)
{
    int r = check(b, len, off);

    *loan = (struct blk_loan){.n = 1, .parts = {{.iov_base = buf, .iov_len = len}}};
    if (r < 0 || len == 0)
        return r;
    return b->ops->lend != NULL ? b->ops->lend(b, loan, buf, len, off)
                                : b->ops->read(b, buf, len, off);
}

void blk_loan_end(struct blk_loan *loan)
{
    if (loan->lender != NULL)
        loan->lender->ops->take_back(loan->lender, loan);
    loan->lender = NULL;
}

int blk_flush(struct blk *b)
{
    return b->ops->flush(b);
}

int blk_discard(struct blk *b, uint64_t len, uint64_t off)
{
    int r = check_change(b, len, off);

    return r < 0 || len == 0 ? r : b->ops->discard(b, len, off);
}

int blk_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    int r = check_change(b, len, off);

    return r < 0 || len == 0 ? r : b->ops->write_zeroes(b, len, off);
}

int blk_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    struct blk_extent e;
    int r = check(b, b->granule, off);

    if (r == 0)
        r = b->ops->extent(b, off, &e);
    if (r < 0)
        return r;
    if (e.end > b->size) /* what is below may be larger than the layer that passed the call on */
        e.end = b->size;
    *ret = e;
    return 0;
}

int blk_stat(struct blk *b, struct blk_stat *ret)
{
    return b->ops->stat(b, ret);
}

int blk_resize(struct blk *b, uint64_t size)
{
    if (size & (b->granule - 1))
        return -EINVAL;
    if (b->read_only)
        return -EROFS;
    if (size == b->size)
        return 0;
    return b->ops->resize != NULL ? b->ops->resize(b, size) : -EOPNOTSUPP;
}

void blk_close(struct blk *b)
{
    while (b != NULL) {
        struct blk *below = b->below;

        b->ops->close(b);
        b = below;
    }
}

int blk_pass_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    return blk_read(b->below, buf, len, off);
}

int blk_pass_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    return blk_write(b->below, buf, len, off);
}

int blk_pass_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off)
{
    return blk_lend(b->below, loan, buf, len, off);
}

int blk_pass_flush(struct blk *b)
{
    return blk_flush(b->below);
}

int blk_pass_discard(struct blk *b, uint64_t len, uint64_t off)
{
    return blk_discard(b->below, len, off);
}

int blk_pass_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    return blk_write_zeroes(b->below, len, off);
}

int blk_pass_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    return blk_extent(b->below, off, ret);
}

int blk_pass_stat(struct blk *b, struct blk_stat *ret)
{
    return blk_stat(b->below, ret);
}

int blk_pass_resize(struct blk *b, uint64_t size)
{
    int r;

    if (size < b->size)
        b->size = size;
    r = blk_resize(b->below, size);
    if (r == 0)
        b->size = size;
    return r;
}
