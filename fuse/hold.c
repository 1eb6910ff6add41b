/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/hold.h"

/* A reader-writer lock would do the same at the price of a cache line that all requests fight for.
 * Here each thread counts itself in on its own line and then reads the gate's state, which nobody
 * writes; who shuts the gate writes the state and then reads all counts. Both in the one order of
 * sequentially consistent atomics: either the request sees the shut gate and counts itself out
 * again, or the holder sees its count and waits. A count may go up for a moment later on, but a
 * request that passed is gone once its shard was seen at zero. */

#include "base/auto.h"
#include "fuse/shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OPEN 0
#define SHUT (-EAGAIN) /* anything else: failed with that */

struct serve_hold {
    struct {
        _Alignas(128) atomic_uint inside;
    } shards[SERVE_SHARDS];
    _Alignas(128) atomic_int state; /* written under the lock */
    _Alignas(128) pthread_mutex_t lock;
    pthread_cond_t left;
    struct serve_held *first, *last; /* what is kept, under the lock like all below */
    size_t bytes;
    unsigned n;
};

int serve_hold_open(struct serve_hold **ret)
{
    struct serve_hold *h = aligned_alloc(128, sizeof(*h));
    pthread_condattr_t clock;

    if (h == NULL)
        return -ENOMEM;
    memset(h, 0, sizeof(*h));
    pthread_mutex_init(&h->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&h->left, &clock);
    pthread_condattr_destroy(&clock);
    *ret = h;
    return 0;
}

void serve_hold_close(struct serve_hold *h)
{
    if (h == NULL)
        return;
    pthread_cond_destroy(&h->left);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

int serve_hold_enter(struct serve_hold *h)
{
    int state;

    atomic_fetch_add(&h->shards[serve_own_shard()].inside, 1);
    state = atomic_load(&h->state);
    if (state != OPEN)
        serve_hold_leave(h);
    return state;
}

void serve_hold_leave(struct serve_hold *h)
{
    atomic_fetch_sub(&h->shards[serve_own_shard()].inside, 1);
    if (atomic_load(&h->state) != OPEN) {
        HOLD(&h->lock);
        pthread_cond_broadcast(&h->left);
    }
}

/* The lock is held. */
static void append(struct serve_hold *h, struct serve_held *r)
{
    r->before = h->last;
    r->after = NULL;
    *(h->last != NULL ? &h->last->after : &h->first) = r;
    h->last = r;
    r->kept = true;
    h->bytes += r->bytes;
    h->n++;
}

/* The lock is held. */
static void unlink_held(struct serve_hold *h, struct serve_held *r)
{
    *(r->before != NULL ? &r->before->after : &h->first) = r->after;
    *(r->after != NULL ? &r->after->before : &h->last) = r->before;
    r->kept = false;
    h->bytes -= r->bytes;
    h->n--;
}

int serve_hold_keep(struct serve_hold *h, struct serve_held *r)
{
    HOLD(&h->lock);

    if (r->interrupted)
        return -EINTR;
    if (atomic_load(&h->state) != SHUT)
        return -EAGAIN;
    if (r->bytes > SERVE_HOLD_BYTES - h->bytes)
        return -ENOMEM;
    append(h, r);
    return 0;
}

bool serve_hold_take(struct serve_hold *h, struct serve_held *r)
{
    HOLD(&h->lock);

    r->interrupted = true;
    if (!r->kept)
        return false;
    unlink_held(h, r);
    return true;
}

/* A failed gate stays so. */
static void set_state(struct serve_hold *h, int state)
{
    HOLD(&h->lock);
    int now = atomic_load(&h->state);

    if (now == OPEN || now == SHUT)
        atomic_store(&h->state, state);
}

void serve_hold_shut(struct serve_hold *h)
{
    set_state(h, SHUT);
}

bool serve_hold_is_shut(struct serve_hold *h)
{
    return atomic_load(&h->state) == SHUT;
}

void serve_hold_lift(struct serve_hold *h)
{
    set_state(h, OPEN);
}

void serve_hold_fail(struct serve_hold *h, int err)
{
    set_state(h, err);
}

static bool all_left(struct serve_hold *h)
{
    for (unsigned i = 0; i < SERVE_SHARDS; i++)
        if (atomic_load(&h->shards[i].inside) != 0)
            return false;
    return true;
}

bool serve_hold_wait(struct serve_hold *h, unsigned ms)
{
    HOLD(&h->lock);
    struct timespec until;
    int r = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (ms % 1000) * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!all_left(h) && r == 0)
        r = pthread_cond_timedwait(&h->left, &h->lock, &until);
    return all_left(h);
}

struct serve_held *serve_hold_next(struct serve_hold *h)
{
    HOLD(&h->lock);
    struct serve_held *r = atomic_load(&h->state) != SHUT ? h->first : NULL;

    if (r != NULL)
        unlink_held(h, r);
    return r;
}

unsigned serve_hold_kept(struct serve_hold *h)
{
    HOLD(&h->lock);
    return h->n;
}
