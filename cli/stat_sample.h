/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What "hushvol stat" shows: the counters of a mount at one moment, and what happened between two
 * of these. */

#include "base/histogram.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Counters since the mount, as the answer to "counters" has them. */
struct stat_kind {
    uint64_t n, bytes, ns;
    uint64_t latency[HISTOGRAM_BUCKETS];
};
struct stat_sample {
    pid_t pid;       /* who counted; another one began at 0 */
    uint64_t age_ns; /* since the mount */
    struct stat_kind read, write;
    uint64_t flushes, errors;
    uint64_t cipher_ns, pieces, pieces_by_workers;
    uint64_t readahead_prepared, readahead_used, readahead_wasted; /* bytes */
    uint64_t waiting_for_space;                                    /* requests, now */
};
/* pid is whose answer this is. -EBADMSG a counter is missing or of another type. */
int stat_sample_decode(struct stat_sample *ret, struct json_object *answer, pid_t pid);

/* Of the requests of one kind between two samples. */
struct stat_flow {
    uint64_t n, bytes;
    double n_per_s, mb_per_s;      /* 10^6 bytes */
    double avg_us, p50_us, p99_us; /* 0 without requests */
};
struct stat_interval {
    bool since_mount; /* it began with the mount */
    double seconds;
    struct stat_flow read, write;
    uint64_t flushes, errors;
    double flushes_per_s;
    double cipher_cores; /* how many of them the cipher kept busy */
    /* Shares of 1, negative when there is nothing to have a share of: of the bytes read, those that
     * had been prepared; of the bytes prepared, those that nobody wanted; of the pieces of batches,
     * those that a worker did. */
    double readahead_hit, readahead_waste, by_workers;
    uint64_t waiting_for_space;
};
/* before may be NULL: all since the mount. That is also what is meant when before is from another
 * daemon or from a later moment: the volume was mounted anew in between. */
void stat_difference(struct stat_interval *ret, const struct stat_sample *before,
                     const struct stat_sample *now);
/* One object, null where there is no share; the caller's to put. */
struct json_object *stat_interval_json(const struct stat_interval *i);
