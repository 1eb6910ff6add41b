/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/pool.h"
#include "crypto/sector.h"
#include "volume/volume.h"

/* The layers of one volume. top owns all of them; the others are for asking. */
struct vol_stack {
    struct blk *top;
    struct blk *poison, *space, *align, *readahead, *sectors,
        *container; /* readahead may be NULL */
    struct pool *pool;
    unsigned threads;      /* that cipher at once */
    unsigned pool_threads; /* that work on one request, the caller included */
    bool discard, enospc_wait;
};

/* What a keystore says of keys, as the engine wants to hear it; borrows r's prk. */
struct chunk_rule vol_chunk_rule(const struct key_rule *r);

/* Does the disk end, or do pieces of sectors, between two units of container's direct I/O? Then the
 * page cache serves it, for who did not ask for direct I/O. container is a file layer. */
void vol_stack_fit(struct blk *container, const struct key_volume *key);

/* Build the layers over container, which *ret owns if this succeeds. rep must outlive the stack.
 * key has no zone that is not settled (volume/zone.h).
 * -EINVAL geometry, -EOPNOTSUPP cipher, -ENOMEM, -EAGAIN. */
int vol_stack_open(struct vol_stack *ret, struct blk *container, const struct key_volume *key,
                   const struct vol_spec *spec, struct report *rep);
/* Close the layers over the container, which is the caller's again, and the pool. */
struct blk *vol_stack_release(struct vol_stack *s);
/* Close all layers, then the pool. Fine on a zeroed struct. */
void vol_stack_close(struct vol_stack *s);
