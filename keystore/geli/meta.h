/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The metadata block of a GELI provider as bytes and as a struct: docs/geli-format.md 1 to 3. No
 * I/O. */

#include "base/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GELI_BLOCK 512 /* bytes that hold the metadata, the last of them unused */
#define GELI_VERSION_MAX 7
#define GELI_SLOTS 2
#define GELI_SLOT 192       /* bytes */
#define GELI_MASTER 128     /* bytes */
#define GELI_SALT 64        /* bytes */
#define GELI_SECTOR_MIN 512 /* bytes, of the provider and of the disk */
#define GELI_SECTOR_MAX 131072
#define GELI_NO_PASSPHRASE (-1) /* iterations: made with key files alone */

enum geli_flag {
    GELI_ONETIME = 0x001,
    GELI_BOOT = 0x002,
    GELI_WO_DETACH = 0x004,
    GELI_RW_DETACH = 0x008,
    GELI_AUTH = 0x010,
    GELI_RO = 0x020,
    GELI_NODELETE = 0x040,
    GELI_GELIBOOT = 0x080,
    GELI_DISPLAYPASS = 0x100,
    GELI_AUTORESIZE = 0x200,
    GELI_FLAGS = 0x3ff,
};

struct geli_meta {
    uint32_t version, flags;
    uint16_t ealgo, keylen, aalgo; /* keylen in bits */
    uint64_t provsize;             /* bytes */
    uint32_t sectorsize;           /* bytes */
    uint8_t keys; /* bit i: slot i is in use; other bits mean nothing, and are 0 here */
    int32_t iterations;
    unsigned char salt[GELI_SALT];
    unsigned char slot[GELI_SLOTS][GELI_SLOT];
};

/* A cipher as geli(8) knows it. */
struct geli_cipher {
    uint16_t number;
    const char *name;          /* geli(8)'s: "aes-xts" */
    const char *family, *mode; /* "aes", "xts": ours is "aes-128-xts"; no mode: just the family */
    const char *evp;           /* OpenSSL's for key slots, "AES" or whole; NULL: they lie open */
    uint16_t bits_default, bits_min, bits_max, bits_step;
    uint32_t version_min; /* that new containers need */
    bool legacy;          /* only in OpenSSL's legacy provider */
};
#define GELI_CIPHER_NAME 32 /* bytes of a name, terminated */
/* As crypto/ calls it, and what enciphers its key slots, with a key of so many bits. */
void geli_cipher_ours(char name[GELI_CIPHER_NAME], const struct geli_cipher *c, unsigned bits);
void geli_cipher_evp(char name[GELI_CIPHER_NAME], const struct geli_cipher *c, unsigned bits);
/* The table, closed by a row without a name. */
extern const struct geli_cipher geli_ciphers[];
/* NULL when there is none. A name is one of geli(8)'s, in any case ("AES", "camellia"). */
const struct geli_cipher *geli_cipher_numbered(unsigned number);
const struct geli_cipher *geli_cipher_named(const char *name);
/* By crypto/'s name, which says the bits too. NULL; then *bits stays. */
const struct geli_cipher *geli_cipher_of_ours(const char *name, uint32_t *bits);
bool geli_cipher_takes(const struct geli_cipher *c, unsigned bits);

struct geli_hash {
    uint16_t number;
    const char *name; /* "hmac-sha256" */
    uint16_t len;     /* bytes of a MAC */
};
/* The table, closed by a row without a name. */
extern const struct geli_hash geli_hashes[];
/* NULL when there is none. "hmac/sha256" is the same name, in any case. */
const struct geli_hash *geli_hash_numbered(unsigned number);
const struct geli_hash *geli_hash_named(const char *name);

/* Do these bytes (at least 16) begin like metadata? */
bool geli_meta_begins(const void *bytes);
/* Take a block apart, whatever is in it: what its version makes of the bytes. False when the
 * version is none that this program knows; all but version is 0 then. */
bool geli_meta_parse(struct geli_meta *ret, const unsigned char block[GELI_BLOCK]);
/* Check a block and take it apart, trusting nothing; what depends on where it lies is the
 * caller's. -EBADMSG damaged, or it says what cannot be; -EOPNOTSUPP a version or algorithm that
 * this program does not know; -EIO the library fails. */
int geli_meta_decode(struct geli_meta *ret, const unsigned char block[GELI_BLOCK],
                     struct report *rep);
/* Fill all of block. -EIO. */
int geli_meta_encode(unsigned char block[GELI_BLOCK], const struct geli_meta *m);

/* Bytes of the disk on a provider of m->provsize bytes whose sectors have sector; 0 when none is
 * left. */
uint64_t geli_meta_disk(const struct geli_meta *m, uint32_t sector);
/* Bytes of a provider that holds a disk of size, a multiple of m->sectorsize, and its metadata. */
uint64_t geli_meta_provider(const struct geli_meta *m, uint64_t size, uint32_t sector);
