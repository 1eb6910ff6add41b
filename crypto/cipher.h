/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Sector ciphers by name, on OpenSSL's EVP. A new cipher is a row in the table of cipher.c. */

#include "base/report.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cipher_mode {
    CIPHER_NULL, /* data stays as it is */
    CIPHER_XTS,  /* two keys in one; part of a sector can be had by itself */
    CIPHER_CBC,  /* only whole sectors */
};

struct cipher {
    const char *name; /* ours: "aes-256-xts" */
    enum cipher_mode mode;
    const char *evp;     /* OpenSSL's: "AES-256-XTS"; NULL without a key */
    uint32_t key_len;    /* bytes */
    uint32_t sector_max; /* bytes */
    bool legacy;         /* for old disks only: OpenSSL has it in its legacy provider or is about
                            to move it there */
};

/* NULL when there is none of that name. */
const struct cipher *cipher_named(const char *name);
/* The table, closed by a row without a name. */
extern const struct cipher ciphers[];

/* The library's cipher; the caller frees it. NULL when this machine's OpenSSL does not have it. */
EVP_CIPHER *cipher_fetch(const struct cipher *c);
/* A new context for it, without a key. NULL: no memory, or not that length of key. */
EVP_CIPHER_CTX *cipher_context(const struct cipher *c, EVP_CIPHER *evp, bool encrypt);
