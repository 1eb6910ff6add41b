/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/pool.h"
#include "base/report.h"
#include "block/blk.h"

/* Finds sequential readers and prepares what they will ask for next on the pool's workers, so that
 * one synchronous reader uses all cores. max: bytes prepared at most, for all streams together.
 * pool is borrowed and not NULL. Needs the align layer above: a read here must not run at once with
 * a change of what it reads. Owns below if it succeeds. -ENOMEM. */
int vol_readahead_open(struct blk **ret, struct blk *below, struct pool *pool, uint64_t max,
                       struct report *rep);

/* Drop all that is prepared and wipe it; workers that are at it are waited for, and streams are
 * found anew. No request may be inside. */
void vol_readahead_forget(struct blk *b);

#define VOL_READAHEAD_DEFAULT (4 * 1024 * 1024) /* bytes */

struct vol_readahead_stats {
    uint64_t prepared, used, wasted; /* bytes */
};
void vol_readahead_stats(struct blk *b, struct vol_readahead_stats *ret);
