/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How values are spread, in few counters: four ranges for each power of two, so that whatever is
 * read from them is off by an eighth at most. Values below 256 share the first range, those from
 * 2^36 on the last; in nanoseconds that is a quarter of a microsecond to more than a minute.
 *
 * The counters are the owner's: plain, atomic, or many of them added up. */

#include <stdint.h>

#define HISTOGRAM_BUCKETS 114

/* The bucket of a value, 0 <= bucket < HISTOGRAM_BUCKETS. */
unsigned histogram_bucket(uint64_t value);
/* The smallest value in a bucket. */
uint64_t histogram_floor(unsigned bucket);
/* The middle of the bucket that holds the value which percent (1 to 100) of all values are not
 * above; 0 without values. */
uint64_t histogram_percentile(const uint64_t counts[HISTOGRAM_BUCKETS], unsigned percent);
