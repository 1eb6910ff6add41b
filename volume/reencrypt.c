/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/reencrypt.h"

/* From one zone to the next, over what is a hole or all zero: that reads the same under either key.
 * Nothing notes such steps; whoever goes on later walks them again. */

#include "base/bytes.h"
#include "volume/stack.h"
#include "volume/zone.h"

#include <errno.h>
#include <time.h>

enum {
    ALIGN = 4096,            /* bytes: where zones begin, at least */
    THROTTLED = 64 * 1024,   /* bytes: a zone is at least this, */
    ZONES_A_SECOND = 4,      /* and else so small that so many of them are a second's */
    NAP_NS = 100 * 1000000L, /* progress is asked that often while nothing may be done */
};

struct run {
    const struct vol_reencrypt *r;
    struct zone_worker *worker;
    uint32_t align, zone; /* bytes */
    int64_t started_ns;
    uint64_t turned; /* bytes */
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int step(const struct run *run, uint64_t done)
{
    return progress_step(run->r->progress, done, run->r->key->size);
}

/* Wait until the bytes of this run are no more than the throttle allows. */
static int wait_for_rate(const struct run *run, uint64_t done)
{
    const struct timespec nap = {.tv_nsec = NAP_NS};
    int r = 0;

    while (r == 0 && run->r->throttle > 0 &&
           (double)run->turned / (double)run->r->throttle * 1e9 >
               (double)(now_ns() - run->started_ns)) {
        nanosleep(&nap, NULL);
        r = step(run, done);
    }
    return r;
}

/* The first place from off on that is not known to be a hole. */
static uint64_t skip_hole(const struct run *run, uint64_t off)
{
    const struct key_volume *key = run->r->key;
    struct blk_extent e;
    uint64_t end;

    if (blk_extent(run->r->container->blk, key->data_offset + off, &e) < 0 || !e.hole)
        return off; /* not knowing is no failure: it is read then */
    end = e.end - key->data_offset;
    if (end >= key->size)
        return key->size;
    end = bytes_round_down(end, run->align);
    return end > off ? end : off;
}

static int turn_zone(struct run *run, uint64_t off, uint32_t len, struct report *rep)
{
    bool zero;
    int r = zone_load(run->worker, off, len, &zero, rep);

    if (r < 0 || zero)
        return r;
    r = zone_turn(run->worker, rep);
    run->turned += len;
    return r;
}

static int turn_all(struct run *run, struct report *rep)
{
    uint64_t size = run->r->key->size, off = run->r->key->boundary;
    int r = step(run, off);

    while (r == 0 && (off = skip_hole(run, off)) < size) {
        uint32_t len = size - off < run->zone ? (uint32_t)(size - off) : run->zone;

        r = turn_zone(run, off, len, rep);
        off += len;
        if (r == 0)
            r = step(run, off);
        if (r == 0)
            r = wait_for_rate(run, off);
    }
    return r;
}

/* All that a zone may be, or with a throttle less, so that it is kept evenly. */
static uint32_t zone_size(const struct vol_reencrypt *r, uint32_t align)
{
    uint64_t max = r->container->format->reencrypt->zone_max;
    uint64_t even = r->throttle / ZONES_A_SECOND;

    if (r->zone > 0)
        return r->zone;
    if (r->throttle == 0 || even > max)
        return (uint32_t)max;
    return (uint32_t)bytes_round_down(even > THROTTLED ? even : THROTTLED, align);
}

int vol_reencrypt(const struct vol_reencrypt *r, uint64_t *turned, struct report *rep)
{
    struct run run = {.r = r, .started_ns = now_ns()};
    int ret;

    vol_stack_fit(r->container->blk, r->key);
    ret = zone_settle(r->container, r->key, rep);
    run.align = r->key->sector_size > ALIGN ? r->key->sector_size : ALIGN;
    run.zone = zone_size(r, run.align);
    if (ret == 0)
        ret = zone_worker_open(&run.worker, r->container, r->key, r->threads, rep);
    if (ret == 0)
        ret = turn_all(&run, rep);
    zone_worker_close(run.worker);
    *turned = run.turned;
    return ret < 0 ? ret : r->container->format->reencrypt->finish(r->container->store, rep);
}
