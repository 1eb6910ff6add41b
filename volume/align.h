/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"
#include "block/blk.h"

/* Any offset and length (granule 1) over below's granule, and the order of overlapping requests: a
 * write, discard or write_zeroes excludes everything that shares a granule with it, reads share.
 * Disjoint requests never wait for one another longer than it takes to find that out. n_threads:
 * how many may be inside at once. Owns below if it succeeds. -ENOMEM. */
int vol_align_open(struct blk **ret, struct blk *below, unsigned n_threads, struct report *rep);
/* Wipe the plaintext that edges left in its buffers. Nobody may be inside. */
void vol_align_forget(struct blk *b);
