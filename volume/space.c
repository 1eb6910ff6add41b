/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/space.h"

/* A sparse container can find its host full in the middle of anything. A file system above takes an
 * error there badly, so by default the write waits until somebody made room. It waits here, above
 * the range locks, so that reads and other writes go on; trying again is safe because a write that
 * failed may have stored any part of itself, and the whole is written again.
 *
 * There is nothing to wait on: the kernel tells nobody that a file system has room again. So it is
 * a look every quarter of a second, ended early when waiting is given up. */

#include <errno.h>
#include <string.h>
#include <time.h>

#define TRY_AGAIN_MS 250

struct space {
    struct blk blk;
    struct report *rep;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wait;          /* under the lock */
    unsigned n_waiting; /* under the lock */
};

/* One call that may run out of room: a write with buf, or a request for zeros. */
struct attempt {
    struct blk *below;
    const void *buf;
    int (*zeros)(struct blk *, uint64_t, uint64_t);
    uint64_t len, off;
};

static int try(const struct attempt *a)
{
    if (a->zeros != NULL)
        return a->zeros(a->below, a->len, a->off);
    return blk_write(a->below, a->buf, (size_t)a->len, a->off);
}

static bool no_room(int r)
{
    return r == -ENOSPC || r == -EDQUOT;
}

/* Until it is time to try again; false when waiting is given up. The lock is held. */
static bool wait_a_little(struct space *s)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += TRY_AGAIN_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (s->wait && pthread_cond_timedwait(&s->changed, &s->lock, &until) == 0)
        ;
    return s->wait;
}

static int wait_for_room(struct space *s, const struct attempt *a, int r)
{
    HOLD(&s->lock);
    if (!s->wait)
        return r;
    if (s->n_waiting++ == 0)
        report_warn(s->rep,
                    "no room for the container (%s): writes wait until there is some (free space "
                    "on its file system, or unmount: what was not synced is lost then)",
                    strerror(-r));
    while (no_room(r) && wait_a_little(s)) {
        pthread_mutex_unlock(&s->lock);
        r = try(a);
        pthread_mutex_lock(&s->lock);
    }
    if (--s->n_waiting == 0 && r == 0)
        report_info(s->rep, "there is room for the container again: writes go on");
    return r;
}

static int attempt(struct space *s, const struct attempt *a)
{
    int r = try(a);

    return no_room(r) ? wait_for_room(s, a, r) : r;
}

static int space_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct attempt a = {.below = b->below, .buf = buf, .len = len, .off = off};

    return attempt(container_of(b, struct space, blk), &a);
}

static int space_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct attempt a = {.below = b->below, .zeros = blk_discard, .len = len, .off = off};

    return attempt(container_of(b, struct space, blk), &a);
}

static int space_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct attempt a = {.below = b->below, .zeros = blk_write_zeroes, .len = len, .off = off};

    return attempt(container_of(b, struct space, blk), &a);
}

static void space_close(struct blk *b)
{
    struct space *s = container_of(b, struct space, blk);

    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static const struct blk_ops space_ops = {
    .name = "space",
    .read = blk_pass_read,
    .lend = blk_pass_lend,
    .write = space_write,
    .flush = blk_pass_flush,
    .discard = space_discard,
    .write_zeroes = space_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = blk_pass_resize,
    .close = space_close,
};

int vol_space_open(struct blk **ret, struct blk *below, bool wait, struct report *rep)
{
    struct space *s = calloc(1, sizeof(*s));
    pthread_condattr_t clock;

    if (s == NULL)
        return report_errno(rep, ENOMEM, "cannot build the space layer");
    s->blk = (struct blk){.ops = &space_ops,
                          .below = below,
                          .size = below->size,
                          .granule = below->granule,
                          .read_only = below->read_only};
    s->rep = rep;
    s->wait = wait;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &clock);
    pthread_condattr_destroy(&clock);
    *ret = &s->blk;
    return 0;
}

void vol_space_set_wait(struct blk *b, bool wait)
{
    struct space *s = container_of(b, struct space, blk);
    HOLD(&s->lock);

    s->wait = wait;
    pthread_cond_broadcast(&s->changed);
}

unsigned vol_space_waiting(struct blk *b)
{
    struct space *s = container_of(b, struct space, blk);
    HOLD(&s->lock);

    return s->n_waiting;
}
