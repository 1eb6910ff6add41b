/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The sector engine as the assembly of a stack sees it. Layers here turn whole granules of
 * plaintext into ciphertext below; none knows a header. */

#include "base/pool.h"
#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "crypto/cipher.h"

/* How keys follow from the volume's key; chunk c = offset >> shift. */
enum chunk_derivation {
    CHUNK_HKDF, /* HKDF-Expand-SHA256(prk, head || LE64(c) || tail, cipher's key length) (RFC 5869)
                 */
    CHUNK_HMAC, /* HMAC-SHA512(prk, head || LE64(c) || tail), its first bytes */
    CHUNK_SINGLE, /* one key for all: the first bytes of prk */
};
struct chunk_rule {
    const struct secret *prk; /* 32 bytes for HKDF, 64 for the others; copied */
    enum chunk_derivation derivation;
    uint32_t shift; /* not looked at when there is one key */
    unsigned char head[32];
    size_t head_len;
    unsigned char tail[32];
    size_t tail_len;
};

/* What follows from where a data unit lies. */
enum sector_iv {
    SECTOR_IV_NUMBER,          /* LE64(number of the sector), zeros: "plain64" */
    SECTOR_IV_OFFSET,          /* LE64(offset in bytes), zeros */
    SECTOR_IV_OFFSET_HASH,     /* the first bytes of SHA-256(iv_key || LE64(offset)) */
    SECTOR_IV_OFFSET_HASH_BIG, /* the same with BE64(offset) */
};
struct unit_rule {
    enum sector_iv iv;
    const struct secret *iv_key; /* for the last two of them; copied */
    /* "hmac-sha256": units have MACs, HMAC-hash(SHA-256(mac_key || LE64(offset)), ciphertext).
     * NULL: they have none. */
    const char *mac;
    const struct secret *mac_key; /* copied */
    bool mac_big_endian;          /* BE64(offset) in it */
};

/* Bytes of a MAC by our name of it; 0 when there is none of that name. */
uint32_t sector_mac_length(const char *name);

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
    uint64_t boundary; /* bytes of plaintext, a multiple of sector_size */
    struct unit_rule units;
    uint32_t mac_piece; /* bytes, a power of two: what a unit and its MAC fill below, where units
                           have MACs */
    struct pool *pool;  /* borrowed: outlives the layer; NULL: one thread */
    unsigned n_lanes;   /* threads that may cipher at once */
    unsigned n_callers; /* that may be inside at once, the pool's threads included: sizes buffers */
};

struct sector_stats {
    uint64_t cipher_ns; /* time spent enciphering and deciphering, over all threads */
    uint64_t bytes_enciphered, bytes_deciphered;
};

/* The plain, length-preserving layer over below; owns below if it succeeds. Granule: 512 bytes
 * where the cipher can do part of a sector, else a sector, or what below needs if that is more.
 * -EINVAL a geometry that does not fit below (says what), -ENOSYS the library has no such cipher,
 * -ENOMEM. */
int sector_plain_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                      struct report *rep);
/* The layer of sectors that carry their MACs: each lies below as ceil(sector_size / room) pieces of
 * mac_piece bytes, one behind the other, where room = (mac_piece - MAC) rounded down to a multiple
 * of 16; a piece is MAC || ciphertext || zeros, its ciphertext one data unit of room bytes, of what
 * is left in the last one. Offsets of chunks and units are those of pieces below, data_offset
 * included. Granule: a sector. A sector that does not verify cannot be read (-EBADMSG), until it is
 * written as a whole; it is named once to rep, which must outlive the layer. zero_pieces and
 * discard are not looked at: every zero is enciphered. Errors as above. */
int sector_hmac_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                     struct report *rep);

/* All that follows takes either layer. */

/* Wipe all keys, their schedules and the plaintext in buffers; the layer keeps its place in the
 * stack and answers -EIO. Nobody may be in it. */
void sector_forget(struct blk *b);
/* After that: go on, with these keys (as long as those of the start; copied). old_prk is for a
 * volume that is on the way from one key to another, iv_key and mac_key are for rules that need
 * them; else NULL. -ENOMEM, -EIO, -EINVAL: still forgotten. */
struct sector_secrets {
    const struct secret *prk, *old_prk, *iv_key, *mac_key;
};
int sector_rekey(struct blk *b, const struct sector_secrets *secrets);
void sector_stats(struct blk *b, struct sector_stats *ret);
