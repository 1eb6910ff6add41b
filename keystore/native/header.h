/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The header block of a native container as bytes and as a struct: docs/format.md 10.1. No I/O. */

#include "base/report.h"
#include "base/secret.h"
#include "keystore/format.h"

#include <stdint.h>

#define NATIVE_BLOCK 4096        /* bytes of a header copy */
#define NATIVE_COPIES 2          /* at 0 and at NATIVE_COPY_STEP */
#define NATIVE_COPY_STEP 0x80000 /* bytes */
#define NATIVE_DATA 0x100000     /* data_offset of a new container, bytes */
#define NATIVE_SLOTS 14
#define NATIVE_PARAMS 128       /* bytes of the parameter block */
#define NATIVE_PARAMS_SALT 0x28 /* where its salt is, 32 bytes */
#define NATIVE_SLOT 256         /* bytes */

#define NATIVE_MAJOR 1
#define NATIVE_MINOR 0
#define NATIVE_MODE_PLAIN 1
#define NATIVE_MODE_AUTH 2
#define NATIVE_KDF_HKDF 1
#define NATIVE_INCOMPAT_REENCRYPT 1u
#define NATIVE_FLAG_DISCARD 1u

extern const char native_magic[8];

struct native_header {
    uint16_t major, minor;
    uint64_t seq, slot_seq;
    unsigned char uuid[16];
    uint32_t incompat, ro_compat, compat;

    /* the parameter block: never changes, and is bound into every key */
    uint8_t mode, cipher, kdf, nodemac;
    uint32_t unit, logical_block; /* bytes */
    uint32_t chunk_shift;
    uint64_t data_offset, log_offset; /* bytes */
    uint64_t log_blocks;
    unsigned char salt[32];
    unsigned char params_sha256[32]; /* of the block as it is stored */

    uint32_t flags;
    uint64_t capacity; /* bytes */
    char label[KEY_LABEL_MAX + 1];
};

/* Our name for a cipher number and the other way round; NULL and -1 when unknown. */
const char *native_cipher_name(unsigned number);
int native_cipher_number(const char *name);

/* Take a block apart, whatever is in it. -EIO. */
int native_header_parse(struct native_header *ret, const unsigned char block[NATIVE_BLOCK]);
/* Check a block and take it apart, in the order of docs/format.md 10.1, trusting nothing.
 * -EBADMSG damaged; -EOPNOTSUPP a version, feature or algorithm that this program does not know
 * (then seq and slot_seq are valid, for finding the newest copy); -EIO the library fails. */
int native_header_decode(struct native_header *ret, const unsigned char block[NATIVE_BLOCK],
                         struct report *rep);
/* Write all fields but the slots, the MAC and the checksum; bytes that no field owns stay. Sets
 * h->params_sha256. -EIO. */
int native_header_encode(unsigned char block[NATIVE_BLOCK], struct native_header *h);

/* PRK of the key schedule (docs/format.md 5.1). -ENOMEM, -EIO. */
int native_header_prk(struct secret *prk, const struct native_header *h,
                      const struct secret *master);
/* Set the MAC and the checksum. -ENOMEM, -EIO. */
int native_header_seal(unsigned char block[NATIVE_BLOCK], const struct native_header *h,
                       const struct secret *prk);
/* Set the checksum alone: after a change behind the MAC, which needs no key. -EIO. */
int native_header_sum(unsigned char block[NATIVE_BLOCK]);
/* 0 when the MAC fits, -EBADMSG when not (silent); -ENOMEM, -EIO. */
int native_header_verify(const unsigned char block[NATIVE_BLOCK], const struct native_header *h,
                         const struct secret *prk);

/* Raise slot_seq in the bytes, as far as it goes. For blocks that decode cannot take apart. */
void native_header_touch(unsigned char block[NATIVE_BLOCK]);

/* Take a whole parameter block into h, params_sha256 included; nothing is checked. -EIO. */
int native_header_set_params(struct native_header *h, const unsigned char params[NATIVE_PARAMS]);

/* The parameter block in a header block. */
static inline const unsigned char *native_header_params(const unsigned char *block)
{
    return block + 0x038;
}

static inline unsigned char *native_header_slot(unsigned char *block, unsigned index)
{
    return block + 0x200 + index * NATIVE_SLOT;
}
