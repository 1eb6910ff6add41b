/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the layers of this folder share: the engines of a volume, and a request as a batch. */

#include "base/buf.h"
#include "base/pool.h"
#include "crypto/engine.h"

/* The beginning of a layer's struct. */
struct sector_layer {
    struct blk blk;
    struct sector_engine *engine;
    struct sector_engine *old_engine; /* from boundary on; NULL when there is no boundary */
    uint64_t boundary;                /* bytes of plaintext; UINT64_MAX: all is engine's */
    uint64_t end;                     /* of the offsets that the engines know */
    struct pool *pool;
    struct bufs *bufs;
    uint64_t data_offset;
    uint32_t sector_size;
};

/* Open the engines; end as sector_engine_spec's size. */
int sector_layer_init(struct sector_layer *l, const struct sector_spec *spec, uint64_t end,
                      struct report *rep);
/* Fine on a half-made one. */
void sector_layer_done(struct sector_layer *l);

/* A request, cut at absolute multiples of piece so that pieces are whole sectors but at its ends.
 */
struct sector_request {
    struct sector_layer *layer;
    unsigned char *to;         /* reads */
    const unsigned char *from; /* writes; NULL: zeros */
    size_t len;
    uint64_t off;
    size_t piece; /* bytes, a power of two */
};
/* The bytes of a request that piece number i covers. */
void sector_request_piece(const struct sector_request *w, unsigned i, size_t *skip, size_t *len);
/* Run all pieces: here when the request is no longer than inline_max, else on the pool. */
int sector_request_run(struct sector_request *w, pool_fn *fn, size_t inline_max);
