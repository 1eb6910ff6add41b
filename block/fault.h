/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "block/blk.h"

/* A layer that fails on purpose, for tests. */
enum blk_fault_op {
    BLK_FAULT_READ = 1,
    BLK_FAULT_WRITE = 2,
    BLK_FAULT_FLUSH = 4,
    BLK_FAULT_DISCARD = 8, /* discard and write_zeroes */
};

struct blk_fault {
    unsigned ops;      /* which calls, BLK_FAULT_* or-ed */
    uint64_t off, len; /* only requests that touch this range; len 0: all, flushes too */
    uint64_t after;    /* let so many matching requests pass first */
    uint64_t times;    /* then strike so often; 0: for ever */
    int err;           /* positive errno to fail with; 0: only delay */
    bool partial;      /* a write stores its first half (whole granules) before it fails */
    unsigned delay_us; /* wait so long first */
};

#define BLK_FAULT_RULES 8

/* Owns below if it succeeds. -ENOMEM. */
int blk_fault_open(struct blk **ret, struct blk *below);
/* Add a rule, at any time from any thread; the first that matches strikes. A rule that lets a
 * request pass (after, times) leaves it to the next. A failed read fills buf with junk. Returns its
 * number or -ENOSPC when BLK_FAULT_RULES are in use. */
int blk_fault_add(struct blk *b, const struct blk_fault *rule);
void blk_fault_clear(struct blk *b);
/* How often rules struck so far. */
uint64_t blk_fault_count(struct blk *b);
/* From now on as a medium with so many bytes free: writes and write_zeroes that touch blocks of
 * 4096 bytes never written through this layer use it up, then store what still fits and answer
 * -ENOSPC; discards of whole blocks give back. UINT64_MAX: no limit. */
void blk_fault_room(struct blk *b, uint64_t bytes);
