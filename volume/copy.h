/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The content of one disk on another, and whether it has arrived. */

#include "base/progress.h"
#include "base/report.h"
#include "block/blk.h"

#include <stdbool.h>

struct vol_copy {
    struct blk *from, *to;     /* tops of stacks: any offset, any length */
    bool sparse;               /* pieces of zeros need not be written where to reads as zeros */
    struct progress *progress; /* counts what has to be moved; may be NULL */
};

/* Make to read as from does, as far as both reach, and as zeros behind that. What is a hole on both
 * sides is not touched; with sparse, zeros found in data are not written but discarded, which costs
 * nothing where a hole is already. Requests are large, several are under way at once, and each uses
 * all cores. Nothing else may use to meanwhile, or change from. Flushes nothing. -ENOMEM, -EINTR
 * when progress says so (no words), or what reading from and writing to gave, said with the
 * place. */
int vol_copy_run(const struct vol_copy *c, struct report *rep);

/* Read both and compare; where neither has anything both read as zeros, and that is not read. -EIO
 * they differ, said with the place; else as above. */
int vol_copy_compare(const struct vol_copy *c, struct report *rep);

/* As vol_is_zero(). */
int vol_copy_is_zero(struct blk *b, uint64_t off, struct progress *progress, struct report *rep);
