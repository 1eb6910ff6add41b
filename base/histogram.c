/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/histogram.h"

/* Bucket 0 is all below 2^FIRST; bucket 1 + 4 * (e - FIRST) + s is the quarter s of 2^e ...
 * 2^(e+1); the last one begins at 2^LAST and has no end. A percentile is the middle of a bucket
 * because both of its ends would lean to one side. */

#define FIRST 8
#define LAST 36

_Static_assert(HISTOGRAM_BUCKETS == 1 + 4 * (LAST - FIRST) + 1, "the last bucket begins at 2^LAST");

unsigned histogram_bucket(uint64_t value)
{
    unsigned e;

    if (value < UINT64_C(1) << FIRST)
        return 0;
    if (value >= UINT64_C(1) << LAST)
        return HISTOGRAM_BUCKETS - 1;
    e = 63 - (unsigned)__builtin_clzll(value);
    return 1 + 4 * (e - FIRST) + (unsigned)(value >> (e - 2) & 3);
}

uint64_t histogram_floor(unsigned bucket)
{
    if (bucket == 0)
        return 0;
    return (uint64_t)(4 + (bucket - 1) % 4) << (FIRST + (bucket - 1) / 4 - 2);
}

static uint64_t middle(unsigned bucket)
{
    uint64_t floor = histogram_floor(bucket);

    if (bucket == HISTOGRAM_BUCKETS - 1)
        return floor;
    return floor + (histogram_floor(bucket + 1) - floor) / 2;
}

uint64_t histogram_percentile(const uint64_t counts[HISTOGRAM_BUCKETS], unsigned percent)
{
    uint64_t total = 0, rank, below = 0;
    unsigned bucket = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        total += counts[i];
    if (total == 0)
        return 0;
    rank = total / 100 * percent + (total % 100 * percent + 99) / 100; /* from 1, rounded up */
    while ((below += counts[bucket]) < rank)
        bucket++;
    return middle(bucket);
}
