/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/cipher.h"

#include "base/legacy.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <string.h>

#define SECTOR_MAX 131072

#define XTS(ours, theirs, bytes)                                                                   \
    {                                                                                              \
        .name = (ours), .mode = CIPHER_XTS, .evp = (theirs), .key_len = (bytes),                   \
        .sector_max = SECTOR_MAX                                                                   \
    }
#define CBC(ours, theirs, bytes, old)                                                              \
    {                                                                                              \
        .name = (ours), .mode = CIPHER_CBC, .evp = (theirs), .key_len = (bytes),                   \
        .sector_max = SECTOR_MAX, .legacy = (old)                                                  \
    }
#define BLOWFISH(bits) CBC("blowfish-" #bits "-cbc", "BF-CBC", (bits) / 8, true)

/* SP 800-38E limits an XTS data unit to 2^20 blocks; the engine's buffers limit it sooner. */
const struct cipher ciphers[] = {
    XTS("aes-256-xts", "AES-256-XTS", 64),
    XTS("aes-128-xts", "AES-128-XTS", 32),
    {.name = "null", .mode = CIPHER_NULL, .sector_max = SECTOR_MAX},
    CBC("aes-128-cbc", "AES-128-CBC", 16, false),
    CBC("aes-192-cbc", "AES-192-CBC", 24, false),
    CBC("aes-256-cbc", "AES-256-CBC", 32, false),
    CBC("camellia-128-cbc", "CAMELLIA-128-CBC", 16, false),
    CBC("camellia-192-cbc", "CAMELLIA-192-CBC", 24, false),
    CBC("camellia-256-cbc", "CAMELLIA-256-CBC", 32, false),
    CBC("3des-192-cbc", "DES-EDE3-CBC", 24, true),
    BLOWFISH(128),
    BLOWFISH(160),
    BLOWFISH(192),
    BLOWFISH(224),
    BLOWFISH(256),
    BLOWFISH(288),
    BLOWFISH(320),
    BLOWFISH(352),
    BLOWFISH(384),
    BLOWFISH(416),
    BLOWFISH(448),
    {.name = NULL},
};

const struct cipher *cipher_named(const char *name)
{
    for (const struct cipher *c = ciphers; c->name != NULL; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

EVP_CIPHER *cipher_fetch(const struct cipher *c)
{
    EVP_CIPHER *evp;

    ERR_set_mark();
    evp = EVP_CIPHER_fetch(NULL, c->evp, NULL);
    if (evp == NULL && c->legacy && legacy_context() != NULL)
        evp = EVP_CIPHER_fetch(legacy_context(), c->evp, NULL);
    ERR_pop_to_mark();
    return evp;
}

/* No padding, told to the cipher itself: a context that knows tells it again with every IV. */
static bool without_padding(EVP_CIPHER_CTX *ctx)
{
    unsigned none = 0;
    const OSSL_PARAM params[] = {OSSL_PARAM_uint(OSSL_CIPHER_PARAM_PADDING, &none), OSSL_PARAM_END};

    return EVP_CIPHER_CTX_set_params(ctx, params) == 1;
}

EVP_CIPHER_CTX *cipher_context(const struct cipher *c, EVP_CIPHER *evp, bool encrypt)
{
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

    if (ctx == NULL)
        return NULL;
    if (EVP_CipherInit_ex2(ctx, evp, NULL, NULL, encrypt, NULL) == 1 &&
        (c->mode == CIPHER_XTS ||
         (EVP_CIPHER_CTX_set_key_length(ctx, (int)c->key_len) == 1 && without_padding(ctx))))
        return ctx;
    EVP_CIPHER_CTX_free(ctx);
    return NULL;
}
