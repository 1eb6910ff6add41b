/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/align.h"

/* Any offset and length become whole granules: the aligned middle goes straight down, a granule
 * that a request covers only in part goes through a bounce buffer; a write reads it first. Both
 * happen under a lock on the whole granules touched, so that two neighbours in one granule keep
 * both their writes. This is the only place that knows of edges.
 *
 * Lock order: the range first, then a bounce buffer; whoever has a buffer only goes down. */

#include "base/buf.h"
#include "base/bytes.h"
#include "volume/rangelock.h"

#include <errno.h>
#include <string.h>

struct align {
    struct blk blk;
    struct range_lock *ranges;
    struct bufs *bounce; /* one granule each */
};

/* A request cut at granules: a part of one granule, whole ones, a part of one. */
struct cut {
    size_t head, tail; /* bytes; 0 when there is none */
    uint64_t middle;
};

static struct cut cut_at(uint32_t granule, uint64_t len, uint64_t off)
{
    uint64_t into = off & (granule - 1);
    struct cut c = {0};

    if (into != 0)
        c.head = (size_t)(granule - into < len ? granule - into : len);
    c.tail = (size_t)((len - c.head) & (granule - 1));
    c.middle = len - c.head - c.tail;
    return c;
}

static void take(struct align *a, struct range_held *held, uint64_t len, uint64_t off,
                 bool exclusive)
{
    uint32_t granule = a->blk.below->granule;

    range_take(a->ranges, held, bytes_round_down(off, granule), bytes_round_up(off + len, granule),
               exclusive);
}

static int read_part(struct align *a, unsigned char *to, size_t len, uint64_t off)
{
    uint32_t granule = a->blk.below->granule;
    AUTO_BUF struct buf *bounce = NULL;
    int r;

    if (len == 0)
        return 0;
    bounce = buf_take(a->bounce);
    r = blk_read(a->blk.below, bounce->bytes, granule, bytes_round_down(off, granule));
    if (r == 0)
        memcpy(to, bounce->bytes + (off & (granule - 1)), len);
    return r;
}

/* from NULL: zeros. */
static int write_part(struct align *a, const unsigned char *from, size_t len, uint64_t off)
{
    uint32_t granule = a->blk.below->granule;
    AUTO_BUF struct buf *bounce = NULL;
    unsigned char *at;
    int r;

    if (len == 0)
        return 0;
    bounce = buf_take(a->bounce);
    r = blk_read(a->blk.below, bounce->bytes, granule, bytes_round_down(off, granule));
    if (r < 0)
        return r;
    at = bounce->bytes + (off & (granule - 1));
    if (from != NULL)
        memcpy(at, from, len);
    else
        memset(at, 0, len);
    return blk_write(a->blk.below, bounce->bytes, granule, bytes_round_down(off, granule));
}

/* serve_read → poison_read → space_read → ALIGN_READ → plain_read */
static int align_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct align *a = container_of(b, struct align, blk);
    struct cut c = cut_at(b->below->granule, len, off);
    AUTO_RANGE struct range_held held;
    unsigned char *to = buf;
    int r;

    take(a, &held, len, off, false);
    r = read_part(a, to, c.head, off);
    if (r == 0 && c.middle > 0)
        r = blk_read(b->below, to + c.head, (size_t)c.middle, off + c.head);
    if (r == 0)
        r = read_part(a, to + c.head + c.middle, c.tail, off + c.head + c.middle);
    return r;
}

/* The range is locked only until the loan is made: what was lent no longer changes, so a write that
 * begins later is later than this read. */
static int align_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off)
{
    struct align *a = container_of(b, struct align, blk);

    if (((len | off) & (b->below->granule - 1)) != 0)
        return align_read(b, buf, len, off);
    AUTO_RANGE struct range_held held;

    take(a, &held, len, off, false);
    return blk_lend(b->below, loan, buf, len, off);
}

/* serve_write → poison_write → space_write → ALIGN_WRITE → plain_write */
static int align_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct align *a = container_of(b, struct align, blk);
    struct cut c = cut_at(b->below->granule, len, off);
    AUTO_RANGE struct range_held held;
    const unsigned char *from = buf;
    int r;

    take(a, &held, len, off, true);
    r = write_part(a, from, c.head, off);
    if (r == 0 && c.middle > 0)
        r = blk_write(b->below, from + c.head, (size_t)c.middle, off + c.head);
    if (r == 0)
        r = write_part(a, from + c.head + c.middle, c.tail, off + c.head + c.middle);
    return r;
}

static int align_zeros(struct blk *b, uint64_t len, uint64_t off,
                       int (*middle)(struct blk *, uint64_t, uint64_t))
{
    struct align *a = container_of(b, struct align, blk);
    struct cut c = cut_at(b->below->granule, len, off);
    AUTO_RANGE struct range_held held;
    int r;

    take(a, &held, len, off, true);
    r = write_part(a, NULL, c.head, off);
    if (r == 0 && c.middle > 0)
        r = middle(b->below, c.middle, off + c.head);
    if (r == 0)
        r = write_part(a, NULL, c.tail, off + c.head + c.middle);
    return r;
}

static int align_discard(struct blk *b, uint64_t len, uint64_t off)
{
    return align_zeros(b, len, off, blk_discard);
}

static int align_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    return align_zeros(b, len, off, blk_write_zeroes);
}

/* A hole that begins or ends inside a granule: below speaks of whole ones, so look at the whole
 * one. */
static int align_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    return blk_extent(b->below, bytes_round_down(off, b->below->granule), ret);
}

static void align_close(struct blk *b)
{
    struct align *a = container_of(b, struct align, blk);

    bufs_close(a->bounce);
    range_lock_close(a->ranges);
    free(a);
}

static const struct blk_ops align_ops = {
    .name = "align",
    .read = align_read,
    .lend = align_lend,
    .write = align_write,
    .flush = blk_pass_flush,
    .discard = align_discard,
    .write_zeroes = align_write_zeroes,
    .extent = align_extent,
    .stat = blk_pass_stat,
    .resize = blk_pass_resize,
    .close = align_close,
};

int vol_align_open(struct blk **ret, struct blk *below, unsigned n_threads, struct report *rep)
{
    struct align *a = calloc(1, sizeof(*a));

    if (a == NULL)
        return report_errno(rep, ENOMEM, "cannot build the align layer");
    a->blk = (struct blk){
        .ops = &align_ops, .size = below->size, .granule = 1, .read_only = below->read_only};
    if (range_lock_open(&a->ranges) < 0 || bufs_open(&a->bounce, n_threads, below->granule) < 0) {
        blk_close(&a->blk);
        return report_errno(rep, ENOMEM, "cannot build the align layer");
    }
    a->blk.below = below;
    *ret = &a->blk;
    return 0;
}

void vol_align_forget(struct blk *b)
{
    bufs_wipe(container_of(b, struct align, blk)->bounce);
}
