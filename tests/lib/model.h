/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A layer against an array of bytes, which does the same without being clever. */

#include "block/blk.h"

/* n_ops random operations (reads, writes, discards, write_zeroes, extents, flushes) of up to max
 * bytes each on b and on an array that starts with b's present content; fails the test where they
 * differ, naming the operation. Offsets and lengths are multiples of b's granule; memory is aligned
 * to nothing. *state as in test_random(). */
void test_against_array(struct blk *b, uint64_t *state, unsigned n_ops, size_t max);
