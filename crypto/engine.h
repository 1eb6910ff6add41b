/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "crypto/sector.h"

/* Enciphers and deciphers data units of one volume, in whichever thread calls: runs of sectors, or
 * units that have MACs. A sector's offset is that from the start of the plaintext. */
struct sector_engine;

/* The part of XTS that can be asked for: whole pieces of this many bytes. */
#define SECTOR_PIECE 512

struct sector_engine_spec {
    const struct cipher *cipher;
    uint32_t sector_size;
    uint64_t size;                 /* end of all offsets: how many chunks there are */
    const struct chunk_rule *keys; /* not looked at for a cipher without a key */
    struct unit_rule units;
    unsigned n_lanes; /* threads that may cipher at once; more wait */
};

/* -ENOMEM; -EINVAL a sector size the cipher does not do, or rules that do not fit together; -ENOSYS
 * when the library has no such cipher. */
int sector_engine_open(struct sector_engine **ret, const struct sector_engine_spec *spec,
                       struct report *rep);
/* What requests must be multiples of: bytes. */
uint32_t sector_engine_granule(const struct sector_engine *e);
/* Bytes of a MAC; 0 when units have none. */
uint32_t sector_engine_mac_len(const struct sector_engine *e);
/* The volume has this size now: as many more contexts and keys as a new engine of it would have.
 * Nobody may be inside. -ENOMEM, -EIO: it stays as good as it was. */
int sector_engine_resize(struct sector_engine *e, uint64_t size);
/* Wipe every key and what is computed from one. Nobody may be inside; who asks meanwhile gets -EIO.
 * NULL is fine. */
void sector_engine_forget(struct sector_engine *e);
/* After that, for a volume of so many bytes: as with these keys from the start (old_prk is not
 * looked at). -ENOMEM, -EIO, -EINVAL: nothing is remembered. */
int sector_engine_rekey(struct sector_engine *e, const struct sector_secrets *secrets,
                        uint64_t size);
/* Wipes all keys. Nobody may be inside. NULL is fine. */
void sector_engine_close(struct sector_engine *e);

/* out and in: len bytes of the volume from off, multiples of the granule; out may be in. Nothing
 * of in is kept. -EIO the library failed; -EKEYREJECTED a derived XTS key has equal halves. */
int sector_encrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off);
int sector_decrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off);
/* The same, but a piece of ciphertext that is all zero becomes zeros (docs/format.md 0). */
int sector_decrypt_zeros(struct sector_engine *e, unsigned char *out, const unsigned char *in,
                         size_t len, uint64_t off);

/* One data unit and its MAC. */
struct sector_unit {
    unsigned char *out;
    const unsigned char *in; /* may be out */
    unsigned char *mac;      /* written by seal, read by unseal */
    size_t len;              /* bytes, a multiple of 16 */
    uint64_t off;
};
/* Of an engine whose units have MACs: encipher n units and authenticate their ciphertext. Errors as
 * above. */
int sector_seal(struct sector_engine *e, const struct sector_unit *units, unsigned n);
/* Verify all, then decipher all. -EBADMSG: *bad is the first unit whose MAC does not fit, and
 * nothing was deciphered; else as above. */
int sector_unseal(struct sector_engine *e, const struct sector_unit *units, unsigned n,
                  unsigned *bad);

void sector_engine_stats(struct sector_engine *e, struct sector_stats *ret);
