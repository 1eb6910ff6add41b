/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How far a re-encryption is, as bytes and as a struct, and the keys that guard it: docs/format.md
 * 10.4. No I/O. */

#include "base/report.h"
#include "base/secret.h"
#include "keystore/native/header.h"

#define NATIVE_RECORD_AT 0x20000   /* of two records, each in a block of NATIVE_BLOCK bytes */
#define NATIVE_DIGESTS_AT 0x30000  /* bytes */
#define NATIVE_DIGESTS_LEN 0x40000 /* bytes */
#define NATIVE_ZONE_MAX (NATIVE_DIGESTS_LEN / KEY_DIGEST * KEY_PIECE) /* bytes */

struct native_record {
    uint64_t seq;  /* the valid record with the higher one counts; from 1 */
    uint64_t done; /* bytes of the disk that are under the new key */
    uint32_t zone; /* bytes behind them whose pieces may be under either; 0: none */
    unsigned char old_params[NATIVE_PARAMS];
    unsigned char wrapped[32]; /* the old master key under the new one */
};

/* The keys of a re-encryption, one behind the other. */
enum {
    NATIVE_WRAP_KEY = 0,
    NATIVE_RECORD_KEY = 32,
    NATIVE_DIGEST_KEY = 64,
    NATIVE_RECORD_KEYS = 96,
};

/* Derive them: h is the header that refers to the records, prk its own. -ENOMEM, -EIO. */
int native_record_keys(struct secret *keys, const struct native_header *h,
                       const struct secret *prk);
/* Fill all of block. -EIO. */
int native_record_encode(unsigned char block[NATIVE_BLOCK], const struct native_record *r,
                         const struct secret *keys);
/* What the bytes claim; nothing is checked. */
void native_record_parse(struct native_record *ret, const unsigned char block[NATIVE_BLOCK]);
/* Check block, of which nothing is trusted, and take it apart. params is the parameter block of the
 * header h that refers to it. -EBADMSG, in silence, when it is no record of this re-encryption, or
 * one that says what cannot be; -EIO. */
int native_record_decode(struct native_record *ret, const unsigned char block[NATIVE_BLOCK],
                         const struct native_header *h, const unsigned char params[NATIVE_PARAMS],
                         const struct secret *keys);

/* Wrap a master key of 32 bytes, or unwrap it: its own inverse. -EIO. */
int native_record_wrap(unsigned char out[32], const unsigned char in[32],
                       const struct secret *keys);

/* The digests of len bytes of ciphertext from off of the disk, KEY_DIGEST for each KEY_PIECE. From
 * many threads. */
void native_record_digest(unsigned char *out, const unsigned char *ciphertext, size_t len,
                          uint64_t off, const struct secret *keys);
