/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "block/blk.h"

/* size zero bytes in memory, any granule; tests and benchmarks put stacks on it. Reads and writes
 * are memcpy, so overlapping ones at once tear as a page cache may. -ENOMEM; -EINVAL a granule that
 * is no power of two, or a size that is not a multiple of it. */
int blk_memory_open(struct blk **ret, uint64_t size, uint32_t granule);

/* The bytes themselves (b's own, valid until it is closed or gets another size; new ones are
 * zeros).
 */
unsigned char *blk_memory_bytes(struct blk *b);
