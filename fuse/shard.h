/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What many threads count at once is spread over shards on cache lines of their own, so that cores
 * do not fight for one. */

#include <stdatomic.h>

#define SERVE_SHARDS 16

/* The shard of this thread: the same one for its whole life. */
static inline unsigned serve_own_shard(void)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned mine; /* 0: not numbered yet */

    if (mine == 0)
        mine = atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) % SERVE_SHARDS + 1;
    return mine - 1;
}
