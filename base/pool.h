/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Worker threads that share one caller's batch. The caller works too, so a batch always ends, even
 * with no worker at all; n_threads is what works on one batch at most, the caller included. */

#include "base/report.h"

#include <stdbool.h>

struct pool;

/* One piece of a batch, 0 <= piece < n_pieces. Returns 0 or -errno. Runs in any thread. */
typedef int pool_fn(void *arg, unsigned piece);

/* *ret is NULL (a valid pool) for n_threads <= 1. -ENOMEM, -EAGAIN. */
int pool_open(struct pool **ret, unsigned n_threads, struct report *rep);
/* No batch may be running. NULL is fine. */
void pool_close(struct pool *p);

/* Run all pieces and wait for them; returns the first error by piece number. Pieces start in order.
 * After a failed piece the ones not yet started are left out. From many threads at once. */
int pool_run(struct pool *p, pool_fn *fn, void *arg, unsigned n_pieces);

/* Work that nobody waits for yet: a worker does it when no batch has a piece to start. Lives with
 * its owner, who sets fn and arg; the rest is the pool's. */
struct pool_job {
    void (*fn)(void *arg); /* in a worker's thread; the job may be submitted again, or released,
                              from here on */
    void *arg;
    struct pool_job *before, *after;
    bool queued;
};

/* Queue job, which is not queued. p is not NULL. */
void pool_submit(struct pool *p, struct pool_job *job);
/* Take job back: true when it was queued and now will not run. */
bool pool_cancel(struct pool *p, struct pool_job *job);

/* Run one queued job in this thread, for who would only wait otherwise (pool_run() does when its
 * last pieces are with others). False when there is none. A job must not need what the thread that
 * calls either of them holds. */
bool pool_help(struct pool *p);

/* Workers running and sleeping, for the counters. */
struct pool_stats {
    unsigned n_threads;                 /* as opened, the caller included */
    unsigned long long n_batches;       /* handed to workers */
    unsigned long long n_pieces;        /* run by anyone in those */
    unsigned long long n_pieces_worker; /* of these, by a worker */
};
void pool_get_stats(struct pool *p, struct pool_stats *ret);
