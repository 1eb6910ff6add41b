/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"
#include "block/blk.h"

/* Writes (and write_zeroes, discards) that find no room below (-ENOSPC, -EDQUOT) wait here and are
 * tried again until there is some, saying so once at the start and once at the end. Owns below if
 * it succeeds. rep must outlive the layer. */
int vol_space_open(struct blk **ret, struct blk *below, bool wait, struct report *rep);
/* From now on pass the error on: those waiting now get it at once. With wait true again, go back.
 */
void vol_space_set_wait(struct blk *b, bool wait);
/* How many requests are waiting for room. */
unsigned vol_space_waiting(struct blk *b);
