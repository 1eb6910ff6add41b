/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A block device against a byte array: random operations from several threads at once. */

#include "block/blk.h"

#include <stdint.h>

struct crowd_spec {
    struct blk *blk;
    uint64_t seed;
    unsigned n_threads;
    unsigned n_ops;   /* each thread's */
    size_t max_len;   /* bytes of one operation */
    uint32_t granule; /* offsets and lengths are multiples of this */
    int zeros;        /* discards and write_zeroes too */
};

/* Each thread owns every n-th stripe of odd length, so that neighbours of different threads share
 * granules, and knows exactly what is in its own. Asserts through cmocka in the calling thread. */
void crowd_run(const struct crowd_spec *spec);
