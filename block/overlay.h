/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "block/blk.h"

/* below, for reading only, with len bytes from off as they are in bytes (copied): what would be
 * there if writing were allowed. Multiples of below's granule. Owns below if it succeeds. -ENOMEM,
 * -EINVAL. */
int blk_overlay_open(struct blk **ret, struct blk *below, const unsigned char *bytes, size_t len,
                     uint64_t off);
