/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/poison.h"

/* The kernel may drop the pages that it could not write and report success the next time, so a
 * failed flush is never asked again: what fsync promised above must not be promised once more. */

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

struct poison {
    struct blk blk;
    struct report *rep;
    atomic_bool struck;
};

static int refuse(struct blk *b)
{
    return atomic_load(&container_of(b, struct poison, blk)->struck) ? -EROFS : 0;
}

static int poison_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    int r = refuse(b);

    return r < 0 ? r : blk_write(b->below, buf, len, off);
}

static int poison_discard(struct blk *b, uint64_t len, uint64_t off)
{
    int r = refuse(b);

    return r < 0 ? r : blk_discard(b->below, len, off);
}

static int poison_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    int r = refuse(b);

    return r < 0 ? r : blk_write_zeroes(b->below, len, off);
}

static int poison_flush(struct blk *b)
{
    struct poison *p = container_of(b, struct poison, blk);
    int r;

    if (atomic_load(&p->struck))
        return -EIO;
    r = blk_flush(b->below);
    if (r < 0 && !atomic_exchange(&p->struck, true))
        report_error(p->rep, -r,
                     "the container could not be written to its disk (%s): what was written since "
                     "the last successful sync may be lost; the volume is read-only until it is "
                     "mounted again (check the disk below)",
                     strerror(-r));
    return r < 0 ? -EIO : 0;
}

static void poison_close(struct blk *b)
{
    free(container_of(b, struct poison, blk));
}

static const struct blk_ops poison_ops = {
    .name = "poison",
    .read = blk_pass_read,
    .write = poison_write,
    .flush = poison_flush,
    .discard = poison_discard,
    .write_zeroes = poison_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .close = poison_close,
};

int vol_poison_open(struct blk **ret, struct blk *below, struct report *rep)
{
    struct poison *p = calloc(1, sizeof(*p));

    if (p == NULL)
        return report_errno(rep, ENOMEM, "cannot build the poison layer");
    p->blk = (struct blk){.ops = &poison_ops,
                          .below = below,
                          .size = below->size,
                          .granule = below->granule,
                          .read_only = below->read_only};
    p->rep = rep;
    *ret = &p->blk;
    return 0;
}

bool vol_poison_struck(struct blk *b)
{
    return atomic_load(&container_of(b, struct poison, blk)->struck);
}
