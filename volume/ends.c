/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/ends.h"

/* Two pieces of memory under the addresses of a container. What is zeros here is left alone on the
 * medium: the end of a container whose header is at its beginning is data. */

#include "base/bytes.h"

#include <errno.h>
#include <string.h>

enum { BLOCK = 4096 };

struct ends {
    struct blk blk;
    uint64_t head_len, tail_off; /* bytes */
    unsigned char *bytes;        /* the head, then the tail */
};

/* NULL: not all of the range is here. */
static unsigned char *ends_at(struct blk *b, uint64_t len, uint64_t off)
{
    struct ends *e = container_of(b, struct ends, blk);

    if (off + len <= e->head_len)
        return e->bytes + off;
    return off >= e->tail_off ? e->bytes + e->head_len + (off - e->tail_off) : NULL;
}

static int ends_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    const unsigned char *at = ends_at(b, len, off);

    if (at == NULL)
        return -EIO;
    memcpy(buf, at, len);
    return 0;
}

static int ends_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    unsigned char *at = ends_at(b, len, off);

    if (at == NULL)
        return -EIO;
    memcpy(at, buf, len);
    return 0;
}

static int ends_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    unsigned char *at = ends_at(b, len, off);

    if (at == NULL)
        return -EIO;
    memset(at, 0, len);
    return 0;
}

static int ends_flush(struct blk *b)
{
    (void)b;
    return 0;
}

static int ends_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    (void)off;
    *ret = (struct blk_extent){.end = b->size};
    return 0;
}

static int ends_stat(struct blk *b, struct blk_stat *ret)
{
    (void)b;
    *ret = (struct blk_stat){0};
    return 0;
}

static void ends_close(struct blk *b)
{
    struct ends *e = container_of(b, struct ends, blk);

    free(e->bytes);
    free(e);
}

static const struct blk_ops ends_ops = {
    .name = "ends",
    .read = ends_read,
    .write = ends_write,
    .flush = ends_flush,
    .discard = ends_write_zeroes,
    .write_zeroes = ends_write_zeroes,
    .extent = ends_extent,
    .stat = ends_stat,
    .close = ends_close,
};

int vol_ends_open(struct blk **ret, uint64_t size, uint64_t len, struct report *rep)
{
    struct ends *e = calloc(1, sizeof(*e));

    if (e == NULL)
        return report_errno(rep, ENOMEM, "cannot make the header");
    e->blk = (struct blk){.ops = &ends_ops, .size = size, .granule = 1};
    e->head_len = len < size ? len : size;
    e->tail_off = size - e->head_len > len ? size - len : e->head_len;
    e->bytes = calloc(1, (size_t)(e->head_len + (size - e->tail_off) + 1));
    if (e->bytes == NULL) {
        free(e);
        return report_errno(rep, ENOMEM, "cannot make the header");
    }
    *ret = &e->blk;
    return 0;
}

typedef int block_fn(struct blk *to, const unsigned char *bytes, size_t len, uint64_t off);

/* For each block that is not zeros, in order. */
static int for_each_block(struct ends *e, struct blk *to, block_fn *fn)
{
    uint64_t next;

    for (uint64_t off = 0; off < e->blk.size; off = next) {
        uint64_t end = off < e->head_len ? e->head_len : e->blk.size;
        size_t len = end - off < BLOCK ? (size_t)(end - off) : BLOCK;
        const unsigned char *bytes = ends_at(&e->blk, len, off);
        int r = bytes_are_zero(bytes, len) ? 0 : fn(to, bytes, len, off);

        if (r < 0)
            return r;
        next = off + len;
        if (next == e->head_len)
            next = e->tail_off;
    }
    return 0;
}

static int write_block(struct blk *to, const unsigned char *bytes, size_t len, uint64_t off)
{
    return blk_write(to, bytes, len, off);
}

static int compare_block(struct blk *to, const unsigned char *bytes, size_t len, uint64_t off)
{
    unsigned char got[BLOCK];
    int r = blk_read(to, got, len, off);

    if (r < 0)
        return r;
    return memcmp(got, bytes, len) == 0 ? 0 : -EBADMSG;
}

int vol_ends_write(struct blk *b, struct blk *to, struct report *rep)
{
    int r = for_each_block(container_of(b, struct ends, blk), to, write_block);

    return r < 0 ? report_errno(rep, -r, "cannot write the header") : 0;
}

int vol_ends_compare(struct blk *b, struct blk *to, struct report *rep)
{
    int r = for_each_block(container_of(b, struct ends, blk), to, compare_block);

    if (r == -EBADMSG)
        return report_error(rep, EIO,
                            "the header is not what was written (its medium or this machine's "
                            "memory is faulty)");
    return r < 0 ? report_errno(rep, -r, "cannot read the header back") : 0;
}
