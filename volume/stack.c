/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/stack.h"

/* The order of the layers, and the one place where what a keystore found becomes what the engine
 * needs: neither knows the other.
 *
 *     poison     a failed flush makes the volume read-only
 *     space      writes wait for room on the host
 *     align      any bytes become whole granules, overlaps are ordered
 *     readahead  what a sequential reader will want next is prepared by the workers
 *     plain      granules become ciphertext, on all cores; or
 *     hmac       the same, with a MAC in front of each piece
 *     file       ciphertext lies here
 */

#include "base/cpus.h"

#include "crypto/sector.h"
#include "volume/align.h"
#include "volume/poison.h"
#include "volume/readahead.h"
#include "volume/space.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define DEFAULT_CALLERS 16
/* Past the page cache a piece waits for the device, and a device wants several requests at once. */
#define DIRECT_THREADS 4 /* in the pool, for each that may cipher */
/* More threads than cores gain nothing from ciphering at once, but one that is stopped in the
 * middle of it must not stop another. */
#define LANES 2 /* for each core */

struct chunk_rule vol_chunk_rule(const struct key_rule *r)
{
    static const enum chunk_derivation derivations[] = {
        [KEY_DERIVE_HKDF] = CHUNK_HKDF,
        [KEY_DERIVE_HMAC] = CHUNK_HMAC,
        [KEY_DERIVE_SINGLE] = CHUNK_SINGLE,
    };
    struct chunk_rule c = {.prk = &r->prk,
                           .derivation = derivations[r->derivation],
                           .shift = r->chunk_shift,
                           .head_len = r->head_len,
                           .tail_len = r->tail_len};

    memcpy(c.head, r->head, r->head_len);
    memcpy(c.tail, r->tail, r->tail_len);
    return c;
}

/* Borrows key's secrets. */
static struct unit_rule unit_rule(const struct key_volume *key)
{
    static const enum sector_iv ivs[] = {
        [KEY_IV_SECTOR] = SECTOR_IV_NUMBER,
        [KEY_IV_OFFSET] = SECTOR_IV_OFFSET,
        [KEY_IV_OFFSET_HASH] = SECTOR_IV_OFFSET_HASH,
        [KEY_IV_OFFSET_HASH_BIG] = SECTOR_IV_OFFSET_HASH_BIG,
    };

    return (struct unit_rule){.iv = ivs[key->iv],
                              .iv_key = &key->iv_key,
                              .mac = key->auth.hash[0] != '\0' ? key->auth.hash : NULL,
                              .mac_key = &key->auth.key,
                              .mac_big_endian = key->auth.big_endian};
}

void vol_stack_fit(struct blk *container, const struct key_volume *key)
{
    if (key->size % container->granule != 0 || key->data_offset % container->granule != 0 ||
        key->auth.piece % container->granule != 0)
        blk_file_leave_direct(container);
}

/* *old must live as long as *ret. */
static int describe(struct sector_spec *ret, struct chunk_rule *old, const struct key_volume *key,
                    const struct vol_stack *s, const struct vol_spec *spec, struct report *rep)
{
    unsigned callers = spec->callers > 0 ? spec->callers : DEFAULT_CALLERS;

    *ret = (struct sector_spec){
        .cipher = cipher_named(key->cipher),
        .sector_size = key->sector_size,
        .data_offset = key->data_offset,
        .size = key->size,
        .zero_pieces = key->zero_pieces,
        .discard = s->discard,
        .keys = vol_chunk_rule(&key->rule),
        .old_keys = key->mixed ? old : NULL,
        .boundary = key->boundary,
        .units = unit_rule(key),
        .mac_piece = key->auth.piece,
        .pool = s->pool,
        .n_callers = callers + s->pool_threads,
        .n_lanes = spec->threads > 0 ? spec->threads : LANES * s->threads,
    };
    if (ret->cipher == NULL)
        return report_error(rep, EOPNOTSUPP, "this version has no cipher %s", key->cipher);
    *old = vol_chunk_rule(&key->old_rule);
    return 0;
}

/* What the user asks for and what the container allows. -EOPNOTSUPP. */
static int choose(struct vol_stack *s, const struct key_volume *key, const struct vol_spec *spec,
                  struct report *rep)
{
    if (spec->discard == VOL_YES && !key->zero_pieces)
        return report_error(rep, EOPNOTSUPP,
                            "a disk of the %s format cannot give space back: what was discarded "
                            "would not read as zeros (leave out -o discard)",
                            key->format);
    if (spec->discard == VOL_YES && !key->discard)
        report_warn(rep, "discard stays off: the container was preallocated, and giving its space "
                         "back would break what that promised (create it with --sparse)");
    s->discard = key->discard && spec->discard != VOL_NO;
    s->enospc_wait =
        spec->enospc_wait == VOL_YES || (spec->enospc_wait == VOL_DEFAULT && key->discard);
    s->threads = spec->threads > 0 ? spec->threads : cpus_usable();
    return 0;
}

int vol_stack_open(struct vol_stack *ret, struct blk *container, const struct key_volume *key,
                   const struct vol_spec *spec, struct report *rep)
{
    struct vol_stack s = {.container = container};
    bool direct = container->granule > 1;
    uint64_t readahead = spec->no_readahead     ? 0
                         : spec->readahead == 0 ? VOL_READAHEAD_DEFAULT
                                                : spec->readahead;
    struct sector_spec sector;
    struct chunk_rule old;
    int r;

    assert(key->zone == 0);
    r = choose(&s, key, spec, rep);
    if (r < 0)
        return r;
    s.pool_threads = s.threads > 1 && direct ? s.threads * DIRECT_THREADS : s.threads;
    r = pool_open(&s.pool, s.pool_threads, rep);
    if (r == 0)
        r = describe(&sector, &old, key, &s, spec, rep);
    if (r == 0)
        r = sector.units.mac != NULL ? sector_hmac_open(&s.sectors, container, &sector, rep)
                                     : sector_plain_open(&s.sectors, container, &sector, rep);
    s.top = s.sectors;
    if (r == 0 && s.pool != NULL && readahead > 0) {
        r = vol_readahead_open(&s.readahead, s.top, s.pool, readahead, rep);
        s.top = r == 0 ? s.readahead : s.top;
    }
    if (r == 0)
        r = vol_align_open(&s.align, s.top, sector.n_callers, rep);
    if (r == 0)
        r = vol_space_open(&s.space, s.top = s.align, s.enospc_wait, rep);
    if (r == 0)
        r = vol_poison_open(&s.poison, s.top = s.space, rep);
    if (r == 0)
        s.top = s.poison;
    if (r < 0) {
        vol_stack_release(&s);
        return r;
    }
    *ret = s;
    return 0;
}

struct blk *vol_stack_release(struct vol_stack *s)
{
    struct blk *container = s->container;

    if (s->sectors != NULL)
        s->sectors->below = NULL;
    vol_stack_close(s);
    return container;
}

void vol_stack_close(struct vol_stack *s)
{
    blk_close(s->top);
    pool_close(s->pool);
    *s = (struct vol_stack){0};
}
