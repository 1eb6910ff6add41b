/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The beginning and the end of a container in memory: where a header is made that must not be on
 * its medium yet. Between them there is nothing, requests there answer -EIO. */

#include "base/report.h"
#include "block/blk.h"

/* For a container of size bytes whose format keeps at most len before or behind the data. All
 * zeros. -ENOMEM, said. */
int vol_ends_open(struct blk **ret, uint64_t size, uint64_t len, struct report *rep);
/* Write what is here, as far as it is not zeros, to the same places of to. */
int vol_ends_write(struct blk *b, struct blk *to, struct report *rep);
/* -EIO when any of that is something else on to, said. */
int vol_ends_compare(struct blk *b, struct blk *to, struct report *rep);
