/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"
#include "block/blk.h"

/* After a failed flush nobody knows what is on the medium, and asking again may answer "all well"
 * about data that is gone. So the first failure is said loudly, and from then on writes answer
 * -EROFS and flushes -EIO; reads go on. Owns below if it succeeds. rep must outlive the layer. */
int vol_poison_open(struct blk **ret, struct blk *below, struct report *rep);
bool vol_poison_struck(struct blk *b);
