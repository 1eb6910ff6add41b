/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What every crash may leave of a device that block/record recorded, shown to a test one by one. */

#include "block/record.h"

/* left is the device as one crash left it, in memory; what is written to it is gone afterwards.
 * Returns 0, or anything else when what is left is not good enough. */
typedef int test_crash_fn(struct blk *left, const struct blk_record_crash *crash, void *arg);

#define TEST_CRASH_SUBSETS 8 /* pieces: 256 subsets, what one header block comes to */

/* Call fn for crashes after every prefix of the log, from nothing to all of it: with all that no
 * flush covers there, with none, and with n_random chance choices (from *state, as in
 * test_random()) for pieces of 512 bytes and of 4096; where at most TEST_CRASH_SUBSETS pieces of
 * 512 are open, with every subset of them instead. When fn is not content the test fails, naming
 * the crash. */
void test_each_crash(struct blk *recorded, unsigned n_random, uint64_t *state, test_crash_fn *fn,
                     void *arg);
