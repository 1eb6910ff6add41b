/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "crypto/sector.h"

/* Enciphers and deciphers runs of sectors of one volume, in whichever thread calls. The tweak of a
 * sector is its number from the start of the plaintext, 64-bit little-endian, zero-extended to 16
 * bytes (docs/format.md 9; "plain64" elsewhere). */
struct sector_engine;

/* The part of XTS that can be asked for: whole pieces of this many bytes. */
#define SECTOR_PIECE 512

struct sector_engine_spec {
    const struct cipher *cipher;
    uint32_t sector_size;
    uint64_t size;                 /* bytes of plaintext: how many chunks there are */
    const struct chunk_rule *keys; /* not looked at for a cipher without a key */
    unsigned n_lanes;              /* threads that may cipher at once; more wait */
};

/* -ENOMEM; -EINVAL a sector size the cipher does not do; -ENOSYS when the library has no such
 * cipher. */
int sector_engine_open(struct sector_engine **ret, const struct sector_engine_spec *spec,
                       struct report *rep);
/* The volume has this size now: as many more contexts and keys as a new engine of it would have.
 * Nobody may be inside. -ENOMEM, -EIO: it stays as good as it was. */
int sector_engine_resize(struct sector_engine *e, uint64_t size);
/* Wipe every key and what is computed from one. Nobody may be inside; who asks meanwhile gets -EIO.
 * NULL is fine. */
void sector_engine_forget(struct sector_engine *e);
/* After that, for a volume of so many bytes: as with this prk from the start. -ENOMEM, -EIO:
 * nothing is remembered. */
int sector_engine_rekey(struct sector_engine *e, const struct secret *prk, uint64_t size);
/* Wipes all keys. Nobody may be inside. NULL is fine. */
void sector_engine_close(struct sector_engine *e);

/* out and in: len bytes of the volume from off, multiples of SECTOR_PIECE; out may be in. Nothing
 * of in is kept. -EIO the library failed; -EKEYREJECTED a derived XTS key has equal halves. */
int sector_encrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off);
int sector_decrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off);
/* The same, but a piece of ciphertext that is all zero becomes zeros (docs/format.md 0). */
int sector_decrypt_zeros(struct sector_engine *e, unsigned char *out, const unsigned char *in,
                         size_t len, uint64_t off);

void sector_engine_stats(struct sector_engine *e, struct sector_stats *ret);
