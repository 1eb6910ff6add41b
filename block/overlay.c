/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/overlay.h"

/* One range, in memory: a request is what below has, with what it shares with the range put over
 * it. That what lies below the range is read for nothing is no loss worth a second way. */

#include <errno.h>
#include <string.h>

struct overlay {
    struct blk blk;
    uint64_t off, len;
    unsigned char bytes[];
};

static int overlay_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct overlay *o = container_of(b, struct overlay, blk);
    uint64_t start = off > o->off ? off : o->off;
    uint64_t end = off + len < o->off + o->len ? off + len : o->off + o->len;
    int r = blk_read(b->below, buf, len, off);

    if (r == 0 && start < end)
        memcpy((unsigned char *)buf + (start - off), o->bytes + (start - o->off), end - start);
    return r;
}

/* blk_write() and its like answer before they come here. */
static int overlay_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    (void)b, (void)buf, (void)len, (void)off;
    return -EROFS;
}

static int overlay_change(struct blk *b, uint64_t len, uint64_t off)
{
    (void)b, (void)len, (void)off;
    return -EROFS;
}

/* The range is data; a hole before it ends where it begins. */
static int overlay_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    struct overlay *o = container_of(b, struct overlay, blk);
    int r;

    if (off >= o->off && off < o->off + o->len) {
        *ret = (struct blk_extent){.end = o->off + o->len};
        return 0;
    }
    r = blk_extent(b->below, off, ret);
    if (r == 0 && off < o->off && ret->end > o->off)
        ret->end = o->off;
    return r;
}

static void overlay_close(struct blk *b)
{
    free(container_of(b, struct overlay, blk));
}

static const struct blk_ops overlay_ops = {
    .name = "overlay",
    .read = overlay_read,
    .write = overlay_write,
    .flush = blk_pass_flush,
    .discard = overlay_change,
    .write_zeroes = overlay_change,
    .extent = overlay_extent,
    .stat = blk_pass_stat,
    .close = overlay_close,
};

int blk_overlay_open(struct blk **ret, struct blk *below, const unsigned char *bytes, size_t len,
                     uint64_t off)
{
    struct overlay *o;

    if (off > below->size || len > below->size - off || ((off | len) & (below->granule - 1)) != 0)
        return -EINVAL;
    o = malloc(sizeof(*o) + len);
    if (o == NULL)
        return -ENOMEM;
    *o = (struct overlay){.blk = {.ops = &overlay_ops,
                                  .below = below,
                                  .size = below->size,
                                  .granule = below->granule,
                                  .read_only = true},
                          .off = off,
                          .len = len};
    memcpy(o->bytes, bytes, len);
    *ret = &o->blk;
    return 0;
}
