/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/poison.h"

/* The kernel may drop the pages that it could not write and report success the next time, so a
 * failed flush is never asked again: what fsync promised above must not be promised once more.
 *
 * Nor may two flushes run below at once: the kernel tells an error to one of them only, and the
 * other would promise what is lost. So one runs, and all who come meanwhile share the next one,
 * which begins after their writes; many threads that sync cost fewer flushes this way, too. */

#include "base/auto.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

struct poison {
    struct blk blk;
    struct report *rep;
    atomic_bool struck;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint64_t n_begun, n_ended; /* flushes, under the lock; unequal: one is running */
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

static int poison_resize(struct blk *b, uint64_t size)
{
    int r = refuse(b);

    return r < 0 ? r : blk_pass_resize(b, size);
}

/* The lock is held; it is let go meanwhile. */
static void flush_once(struct poison *p)
{
    int r;

    p->n_begun++;
    pthread_mutex_unlock(&p->lock);
    r = blk_flush(p->blk.below);
    if (r < 0) {
        atomic_store(&p->struck, true);
        report_error(p->rep, -r,
                     "the container could not be written to its disk (%s): what was written since "
                     "the last successful sync may be lost; the volume is read-only until it is "
                     "mounted again (check the disk below)",
                     strerror(-r));
    }
    pthread_mutex_lock(&p->lock);
    p->n_ended++;
    pthread_cond_broadcast(&p->ended);
}

static int poison_flush(struct blk *b)
{
    struct poison *p = container_of(b, struct poison, blk);
    HOLD(&p->lock);
    uint64_t next = p->n_begun + 1; /* the one that is running began before our last writes */

    while (p->n_ended < next && !atomic_load(&p->struck)) {
        if (p->n_begun == p->n_ended)
            flush_once(p);
        else
            pthread_cond_wait(&p->ended, &p->lock);
    }
    return atomic_load(&p->struck) ? -EIO : 0;
}

static void poison_close(struct blk *b)
{
    struct poison *p = container_of(b, struct poison, blk);

    pthread_cond_destroy(&p->ended);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static const struct blk_ops poison_ops = {
    .name = "poison",
    .read = blk_pass_read,
    .lend = blk_pass_lend,
    .write = poison_write,
    .flush = poison_flush,
    .discard = poison_discard,
    .write_zeroes = poison_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = poison_resize,
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
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->ended, NULL);
    *ret = &p->blk;
    return 0;
}

bool vol_poison_struck(struct blk *b)
{
    return atomic_load(&container_of(b, struct poison, blk)->struck);
}
