/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/rangelock.h"

/* The disk is cut into regions of 1 MiB, dealt round to 64 shards, each with a mutex and a list of
 * the ranges that touch it, in order of arrival. A request is in one or two of them; only a long
 * discard is in all. An entry waits until nothing before it in its list conflicts.
 *
 * No deadlock: within a list an entry waits only for earlier ones, and shards are entered in the
 * order of their numbers, so whoever waits in one holds entries only in lower ones.
 *
 * Rejected: one tree under one mutex (every request of every thread would meet there), and a table
 * of hashed reader-writer locks (neighbouring small writes, the usual load, would wait for each
 * other). */

#include "base/auto.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#define REGION_SHIFT 20

struct shard {
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t gone;
    struct range_entry *first, *last;
    unsigned n_waiting;
};

struct range_lock {
    struct shard shards[RANGE_SHARDS];
};

int range_lock_open(struct range_lock **ret)
{
    struct range_lock *l = aligned_alloc(64, sizeof(*l));

    if (l == NULL)
        return -ENOMEM;
    memset(l, 0, sizeof(*l));
    for (unsigned i = 0; i < RANGE_SHARDS; i++) {
        pthread_mutex_init(&l->shards[i].lock, NULL);
        pthread_cond_init(&l->shards[i].gone, NULL);
    }
    *ret = l;
    return 0;
}

void range_lock_close(struct range_lock *l)
{
    if (l == NULL)
        return;
    for (unsigned i = 0; i < RANGE_SHARDS; i++) {
        pthread_cond_destroy(&l->shards[i].gone);
        pthread_mutex_destroy(&l->shards[i].lock);
    }
    free(l);
}

static bool conflicts_with_earlier(const struct range_entry *e)
{
    for (const struct range_entry *o = e->before; o != NULL; o = o->before)
        if (o->off < e->end && e->off < o->end && (o->exclusive || e->exclusive))
            return true;
    return false;
}

static void shard_enter(struct shard *s, struct range_entry *e)
{
    HOLD(&s->lock);
    e->before = s->last;
    e->after = NULL;
    if (s->last != NULL)
        s->last->after = e;
    else
        s->first = e;
    s->last = e;
    s->n_waiting++;
    while (conflicts_with_earlier(e))
        pthread_cond_wait(&s->gone, &s->lock);
    s->n_waiting--;
}

static void shard_leave(struct shard *s, struct range_entry *e)
{
    HOLD(&s->lock);
    if (e->before != NULL)
        e->before->after = e->after;
    else
        s->first = e->after;
    if (e->after != NULL)
        e->after->before = e->before;
    else
        s->last = e->before;
    if (s->n_waiting > 0)
        pthread_cond_broadcast(&s->gone);
}

/* Is this shard one of the n after first, round the circle? */
static bool concerned(const struct range_held *held, unsigned shard)
{
    return (shard + RANGE_SHARDS - held->first) % RANGE_SHARDS < held->n;
}

void range_take(struct range_lock *l, struct range_held *held, uint64_t off, uint64_t end,
                bool exclusive)
{
    uint64_t n = ((end - 1) >> REGION_SHIFT) - (off >> REGION_SHIFT) + 1;

    held->lock = l;
    held->first = (off >> REGION_SHIFT) % RANGE_SHARDS;
    held->n = n < RANGE_SHARDS ? (unsigned)n : RANGE_SHARDS;
    for (unsigned i = 0; i < RANGE_SHARDS; i++) {
        if (!concerned(held, i))
            continue;
        held->entries[i].off = off;
        held->entries[i].end = end;
        held->entries[i].exclusive = exclusive;
        shard_enter(&l->shards[i], &held->entries[i]);
    }
}

void range_drop(struct range_held *held)
{
    for (unsigned i = 0; i < RANGE_SHARDS; i++)
        if (concerned(held, i))
            shard_leave(&held->lock->shards[i], &held->entries[i]);
}
