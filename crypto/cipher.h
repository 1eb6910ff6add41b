/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Sector ciphers by name, on OpenSSL's EVP. A new cipher is a row in the table of cipher.c. */

#include "base/report.h"

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cipher {
    const char *name;    /* ours: "aes-256-xts" */
    const char *evp;     /* OpenSSL's: "AES-256-XTS"; NULL: data stays as it is */
    uint32_t key_len;    /* bytes */
    bool xts;            /* two keys in one: the halves must differ */
    uint32_t sector_max; /* bytes */
};

/* NULL when there is none of that name. */
const struct cipher *cipher_named(const char *name);
/* The table, closed by a row without a name. */
extern const struct cipher ciphers[];
