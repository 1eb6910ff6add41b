/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/cipher.h"

#include <string.h>

/* SP 800-38E limits an XTS data unit to 2^20 blocks; the engine's buffers limit it sooner. */
const struct cipher ciphers[] = {
    {.name = "aes-256-xts", .evp = "AES-256-XTS", .key_len = 64, .xts = true, .sector_max = 131072},
    {.name = "aes-128-xts", .evp = "AES-128-XTS", .key_len = 32, .xts = true, .sector_max = 131072},
    {.name = "null", .evp = NULL, .key_len = 0, .xts = false, .sector_max = 131072},
    {.name = NULL},
};

const struct cipher *cipher_named(const char *name)
{
    for (const struct cipher *c = ciphers; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}
