/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The sector engine as the assembly of a stack sees it. Layers here turn whole granules of
 * plaintext into ciphertext below; none knows a header. */

#include "base/pool.h"
#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "crypto/cipher.h"

/* How keys follow from the volume's key: chunk c = plaintext offset >> shift has the key
 * HKDF-Expand-SHA256(prk, head || LE64(c) || tail, cipher's key length) (RFC 5869). */
struct chunk_rule {
    const struct secret *prk; /* 32 bytes; copied */
    uint32_t shift;
    unsigned char head[32];
    size_t head_len;
    unsigned char tail[32];
    size_t tail_len;
};

struct sector_spec {
    const struct cipher *cipher;
    uint32_t sector_size; /* bytes, a power of two: the cipher's data unit */
    uint64_t data_offset; /* bytes below where sector 0 lies */
    uint64_t size;        /* bytes of plaintext */
    bool zero_pieces;     /* a 512-byte piece of ciphertext that is all zero reads as zeros */
    bool discard; /* discard punches below; else, and without zero_pieces, it writes zeroes */
    struct chunk_rule keys;
    /* A volume that is on the way from one key to another: below boundary it is under keys, from
     * there on under old_keys. NULL: all of it is under keys. */
    const struct chunk_rule *old_keys;
    uint64_t boundary;  /* bytes of plaintext, a multiple of sector_size */
    struct pool *pool;  /* borrowed: outlives the layer; NULL: one thread */
    unsigned n_lanes;   /* threads that may cipher at once */
    unsigned n_callers; /* that may be inside at once, the pool's threads included: sizes buffers */
};

struct sector_stats {
    uint64_t cipher_ns; /* time spent enciphering and deciphering, over all threads */
    uint64_t bytes_enciphered, bytes_deciphered;
};

/* The plain, length-preserving layer over below; owns below if it succeeds. Granule: 512 bytes, or
 * what below needs if that is more. -EINVAL a geometry that does not fit below (says what),
 * -ENOMEM. */
int sector_plain_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                      struct report *rep);
/* Wipe all keys, their schedules and the plaintext in buffers of a plain layer; it keeps its place
 * in the stack and answers -EIO. Nobody may be in it. */
void sector_plain_forget(struct blk *b);
/* After that: go on, with these keys (32 bytes; copied), old_prk being for a volume that is on the
 * way from one key to another, else NULL. -ENOMEM, -EIO: still forgotten. */
int sector_plain_rekey(struct blk *b, const struct secret *prk, const struct secret *old_prk);
/* Counters of a plain layer. */
void sector_plain_stats(struct blk *b, struct sector_stats *ret);
