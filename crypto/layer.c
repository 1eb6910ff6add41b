/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/layer.h"

/* A batch of the pool runs the pieces of a request: each does its own transfer and its own cipher
 * work, so reading one piece overlaps deciphering another. What is too short is done by the caller
 * inline: a wake-up costs more than it would save. */

#include "base/bytes.h"

#include <errno.h>

void sector_request_piece(const struct sector_request *w, unsigned i, size_t *skip, size_t *len)
{
    uint64_t first = bytes_round_down(w->off, w->piece) + (uint64_t)i * w->piece;
    uint64_t start = first > w->off ? first : w->off;
    uint64_t end = first + w->piece < w->off + w->len ? first + w->piece : w->off + w->len;

    *skip = (size_t)(start - w->off);
    *len = (size_t)(end - start);
}

int sector_request_run(struct sector_request *w, pool_fn *fn, size_t inline_max)
{
    uint64_t first = w->off / w->piece;
    uint64_t last = (w->off + w->len - 1) / w->piece;

    if (w->len > inline_max && w->layer->pool != NULL)
        return pool_run(w->layer->pool, fn, w, (unsigned)(last - first + 1));
    for (unsigned i = 0; i <= last - first; i++) {
        int r = fn(w, i);

        if (r < 0)
            return r;
    }
    return 0;
}

int sector_layer_init(struct sector_layer *l, const struct sector_spec *spec, uint64_t end,
                      struct report *rep)
{
    struct sector_engine_spec engine = {.cipher = spec->cipher,
                                        .sector_size = spec->sector_size,
                                        .size = end,
                                        .keys = &spec->keys,
                                        .units = spec->units,
                                        .n_lanes = spec->n_lanes};
    int r;

    l->pool = spec->pool;
    l->data_offset = spec->data_offset;
    l->sector_size = spec->sector_size;
    l->boundary = spec->old_keys != NULL ? spec->boundary : UINT64_MAX;
    l->end = end;
    r = sector_engine_open(&l->engine, &engine, rep);
    engine.keys = spec->old_keys;
    if (r == 0 && spec->old_keys != NULL)
        r = sector_engine_open(&l->old_engine, &engine, rep);
    return r;
}

void sector_layer_done(struct sector_layer *l)
{
    sector_engine_close(l->engine);
    sector_engine_close(l->old_engine);
    bufs_close(l->bufs);
}

void sector_forget(struct blk *b)
{
    struct sector_layer *l = container_of(b, struct sector_layer, blk);

    sector_engine_forget(l->engine);
    sector_engine_forget(l->old_engine);
    bufs_wipe(l->bufs);
}

int sector_rekey(struct blk *b, const struct sector_secrets *secrets)
{
    struct sector_layer *l = container_of(b, struct sector_layer, blk);
    struct sector_secrets old = *secrets;
    int r;

    if ((secrets->old_prk != NULL) != (l->old_engine != NULL))
        return -EINVAL;
    old.prk = secrets->old_prk;
    r = sector_engine_rekey(l->engine, secrets, l->end);
    if (r == 0 && l->old_engine != NULL)
        r = sector_engine_rekey(l->old_engine, &old, l->end);
    if (r < 0)
        sector_forget(b);
    return r;
}

void sector_stats(struct blk *b, struct sector_stats *ret)
{
    struct sector_layer *l = container_of(b, struct sector_layer, blk);
    struct sector_stats old = {0};

    sector_engine_stats(l->engine, ret);
    if (l->old_engine != NULL)
        sector_engine_stats(l->old_engine, &old);
    ret->cipher_ns += old.cipher_ns;
    ret->bytes_enciphered += old.bytes_enciphered;
    ret->bytes_deciphered += old.bytes_deciphered;
}
