/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The zones of a volume that is on the way to a new key (keystore/format.h, struct key_reencrypt):
 * the ciphertext's side of it. From one thread; it uses all cores inside. */

#include "base/report.h"
#include "block/blk.h"
#include "keystore/unlock.h"

struct zone_worker;

/* c stays open, key alive, until it is closed. threads: 0 as many as CPUs. -ENOMEM, -EAGAIN,
 * -EOPNOTSUPP a cipher or a format that this version does not do. */
int zone_worker_open(struct zone_worker **ret, struct key_container *c, struct key_volume *key,
                     unsigned threads, struct report *rep);
/* NULL is fine. */
void zone_worker_close(struct zone_worker *w);

/* Read len bytes from off of the disk, at most the format's zone_max. *zero: there is nothing to
 * do. */
int zone_load(struct zone_worker *w, uint64_t off, uint32_t len, bool *zero, struct report *rep);
/* What was loaded, all of it under the old key, gets the new one; key->boundary moves behind it.
 * When it fails the zone is begun and not finished, or not begun, and the container opens. */
int zone_turn(struct zone_worker *w, struct report *rep);

/* c was unlocked as key, which may have a zone that was begun: finish it, and move key->boundary.
 * Of a container that is open for reading only c->blk gets a layer that shows the zone finished.
 * After it key->zone is 0. */
int zone_settle(struct key_container *c, struct key_volume *key, struct report *rep);
