/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Locks on ranges of bytes: exclusive ones wait for everything they overlap, shared ones for
 * exclusive ones; first come, first served, so nobody starves. Disjoint ranges do not wait for each
 * other. */
struct range_lock;

#define RANGE_SHARDS 64

struct range_entry {
    uint64_t off, end;
    bool exclusive;
    struct range_entry *before, *after;
};

/* A range that is held; lives on the holder's stack. */
struct range_held {
    struct range_lock *lock;
    unsigned first, n; /* shards, round the circle */
    struct range_entry entries[RANGE_SHARDS];
};

/* -ENOMEM. */
int range_lock_open(struct range_lock **ret);
/* Nothing may be held. NULL is fine. */
void range_lock_close(struct range_lock *l);

/* Take [off, end), off < end. A thread that holds one range must not take another. */
void range_take(struct range_lock *l, struct range_held *held, uint64_t off, uint64_t end,
                bool exclusive);
void range_drop(struct range_held *held);
#define AUTO_RANGE __attribute__((cleanup(range_drop)))
