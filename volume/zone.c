/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/zone.h"

/* A zone passes through here as one buffer of ciphertext, in pieces that the pool works on: read
 * and digest; then, when the digests are durable, recipher and write. Settling a zone that somebody
 * else began is the same with one more question for each 512 bytes: are they old?
 *
 * Zeros are not written: they read as zeros under either key, and a hole shall stay one. */

#include "base/buf.h"
#include "base/bytes.h"
#include "base/cpus.h"
#include "base/pool.h"
#include "block/overlay.h"
#include "volume/stack.h"

#include "crypto/recipher.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 128 * 1024, /* bytes that one thread does at a time: whole sectors of any size */
    BLOCK = 4096,       /* bytes: what is skipped when it is all zero, if granules allow */
};

struct zone_worker {
    struct key_container *c;
    struct key_volume *key;
    struct pool *pool;
    struct sector_engine *from, *to;
    struct bufs *bufs;
    struct buf *buf; /* the ciphertext of a zone */
    uint64_t off;    /* of the disk: the zone that is loaded */
    uint32_t len;
    bool settling; /* only pieces that have the digest noted for them are old */
    unsigned char digests[KEY_DIGESTS_MAX], noted[KEY_DIGESTS_MAX];
};

static int open_engine(struct sector_engine **ret, const struct key_volume *key,
                       const struct key_rule *rule, unsigned n_lanes, struct report *rep)
{
    const struct chunk_rule keys = vol_chunk_rule(rule);
    const struct sector_engine_spec spec = {.cipher = cipher_named(key->cipher),
                                            .sector_size = key->sector_size,
                                            .size = key->size,
                                            .keys = &keys,
                                            .n_lanes = n_lanes};

    if (spec.cipher == NULL)
        return report_error(rep, EOPNOTSUPP, "this version has no cipher %s", key->cipher);
    return sector_engine_open(ret, &spec, rep);
}

int zone_worker_open(struct zone_worker **ret, struct key_container *c, struct key_volume *key,
                     unsigned threads, struct report *rep)
{
    struct zone_worker *w = calloc(1, sizeof(*w));
    unsigned n = threads > 0 ? threads : cpus_usable();
    int r = w != NULL ? pool_open(&w->pool, n, rep) : -ENOMEM;

    if (r == 0)
        r = open_engine(&w->from, key, &key->old_rule, n, rep);
    if (r == 0)
        r = open_engine(&w->to, key, &key->rule, n, rep);
    if (r == 0)
        r = bufs_open(&w->bufs, 1, c->format->reencrypt->zone_max);
    if (r < 0) {
        zone_worker_close(w);
        return r == -ENOMEM ? report_errno(rep, -r, "cannot re-encrypt") : r;
    }
    w->buf = buf_take(w->bufs);
    w->c = c;
    w->key = key;
    *ret = w;
    return 0;
}

void zone_worker_close(struct zone_worker *w)
{
    if (w == NULL)
        return;
    if (w->buf != NULL)
        buf_drop(w->buf);
    bufs_close(w->bufs);
    sector_engine_close(w->from);
    sector_engine_close(w->to);
    pool_close(w->pool);
    free(w);
}

/* Where the zone's byte at lies in the container. */
static uint64_t zone_place(const struct zone_worker *w, size_t at)
{
    return w->key->data_offset + w->off + at;
}

static size_t piece_end(const struct zone_worker *w, unsigned i)
{
    size_t end = (size_t)(i + 1) * PIECE;

    return end < w->len ? end : w->len;
}

static int run_pieces(struct zone_worker *w, pool_fn *fn)
{
    return pool_run(w->pool, fn, w, (w->len + PIECE - 1) / PIECE);
}

static int load_piece(void *arg, unsigned i)
{
    struct zone_worker *w = arg;
    size_t at = (size_t)i * PIECE, len = piece_end(w, i) - at;
    unsigned char *bytes = w->buf->bytes + at;
    int r = blk_read(w->c->blk, bytes, len, zone_place(w, at));

    if (r == 0)
        w->c->format->reencrypt->digest(w->c->store, w->digests + at / KEY_PIECE * KEY_DIGEST,
                                        bytes, len, w->off + at);
    return r;
}

int zone_load(struct zone_worker *w, uint64_t off, uint32_t len, bool *zero, struct report *rep)
{
    int r;

    w->off = off;
    w->len = len;
    w->settling = false;
    r = run_pieces(w, load_piece);
    if (r < 0)
        return report_errno(rep, -r, "cannot read the disk at byte %" PRIu64, off);
    *zero = bytes_are_zero(w->buf->bytes, len);
    return 0;
}

static bool is_old(const struct zone_worker *w, size_t at)
{
    size_t digest = at / KEY_PIECE * KEY_DIGEST;

    return !w->settling || memcmp(w->digests + digest, w->noted + digest, KEY_DIGEST) == 0;
}

/* How many bytes from at on are all old, or none of them is. */
static size_t same_age(const struct zone_worker *w, size_t at, size_t end)
{
    bool old = is_old(w, at);
    size_t n = KEY_PIECE;

    while (at + n < end && is_old(w, at + n) == old)
        n += KEY_PIECE;
    return n;
}

static int recipher_piece(void *arg, unsigned i)
{
    struct zone_worker *w = arg;
    size_t end = piece_end(w, i), n;
    int r = 0;

    for (size_t at = (size_t)i * PIECE; r == 0 && at < end; at += n) {
        n = same_age(w, at, end);
        if (is_old(w, at))
            r = sector_recipher(w->from, w->to, w->buf->bytes + at, n, w->off + at);
    }
    return r;
}

/* What is written or left out as a whole. */
static size_t block_len(const struct zone_worker *w, size_t at, size_t end)
{
    size_t block = w->c->blk->granule > BLOCK ? w->c->blk->granule : BLOCK;

    return end - at < block ? end - at : block;
}

static bool is_zero(const struct zone_worker *w, size_t at, size_t end)
{
    return bytes_are_zero(w->buf->bytes + at, block_len(w, at, end));
}

/* How many bytes from at on are blocks of zeros, or none of them is one. */
static size_t same_kind(const struct zone_worker *w, size_t at, size_t end)
{
    bool zero = is_zero(w, at, end);
    size_t n = block_len(w, at, end);

    while (at + n < end && is_zero(w, at + n, end) == zero)
        n += block_len(w, at + n, end);
    return n;
}

static int write_piece(void *arg, unsigned i)
{
    struct zone_worker *w = arg;
    size_t end = piece_end(w, i), n;
    int r = recipher_piece(arg, i);

    for (size_t at = (size_t)i * PIECE; r == 0 && at < end; at += n) {
        n = same_kind(w, at, end);
        if (!is_zero(w, at, end))
            r = blk_write(w->c->blk, w->buf->bytes + at, n, zone_place(w, at));
    }
    return r;
}

/* The zone is begun: write what is old with the new key, and say in the header that it is done.
 * What is new already is written once more: after a flush that failed it may be in a cache only. */
static int write_zone(struct zone_worker *w, struct report *rep)
{
    int r = run_pieces(w, write_piece);

    if (r == 0)
        r = blk_flush(w->c->blk);
    if (r < 0)
        return report_errno(rep, -r, "cannot write the disk at byte %" PRIu64, w->off);
    r = w->c->format->reencrypt->zone_end(w->c->store, rep);
    if (r == 0)
        w->key->boundary = w->off + w->len;
    return r;
}

int zone_turn(struct zone_worker *w, struct report *rep)
{
    int r = w->c->format->reencrypt->zone_begin(w->c->store, w->off, w->len, w->digests, rep);

    return r < 0 ? r : write_zone(w, rep);
}

/* In memory what write_zone() does on the medium. */
static int show_zone(struct zone_worker *w, struct report *rep)
{
    int r = run_pieces(w, recipher_piece);

    if (r == 0)
        r = blk_overlay_open(&w->c->blk, w->c->blk, w->buf->bytes, w->len, zone_place(w, 0));
    if (r < 0)
        return report_errno(rep, -r, "cannot settle the zone at byte %" PRIu64, w->off);
    w->key->boundary = w->off + w->len;
    return 0;
}

static int settle(struct zone_worker *w, struct report *rep)
{
    bool zero;
    int r = zone_load(w, w->key->boundary, w->key->zone, &zero, rep);

    if (r == 0)
        r = w->c->format->reencrypt->zone_digests(w->c->store, w->noted, rep);
    w->settling = true;
    if (r == 0 && !w->c->blk->read_only)
        r = w->c->format->reencrypt->zone_begin(w->c->store, w->off, w->len, w->noted, rep);
    if (r == 0)
        r = w->c->blk->read_only ? show_zone(w, rep) : write_zone(w, rep);
    if (r == 0)
        w->key->zone = 0;
    return r;
}

int zone_settle(struct key_container *c, struct key_volume *key, struct report *rep)
{
    struct zone_worker *w = NULL;
    int r;

    if (key->zone == 0)
        return 0;
    r = zone_worker_open(&w, c, key, 0, rep);
    if (r == 0)
        r = settle(w, rep);
    zone_worker_close(w);
    return r;
}
