/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/hkdf.h"

#include <errno.h>
#include <openssl/core_names.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#define N_PARAMS 5

/* Both steps are one algorithm of OpenSSL's with another mode. */
static int derive(unsigned char *out, size_t len, OSSL_PARAM *params)
{
    EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_HKDF, NULL);
    EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
    int ok = ctx != NULL && EVP_KDF_derive(ctx, out, len, params) == 1;

    EVP_KDF_CTX_free(ctx); /* cleanses */
    EVP_KDF_free(kdf);
    return ok ? 0 : -EIO;
}

static OSSL_PARAM octets(const char *name, const void *p, size_t len)
{
    /* the library reads only, but its type is not const */
    return OSSL_PARAM_construct_octet_string(name, (void *)(size_t)p, len);
}

int hkdf_extract(unsigned char prk[HKDF_PRK], const void *salt, size_t salt_len, const void *ikm,
                 size_t ikm_len)
{
    int mode = EVP_KDF_HKDF_MODE_EXTRACT_ONLY;
    char digest[] = "SHA256";
    OSSL_PARAM params[N_PARAMS] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        octets(OSSL_KDF_PARAM_SALT, salt, salt_len),
        octets(OSSL_KDF_PARAM_KEY, ikm, ikm_len),
        OSSL_PARAM_construct_end(),
    };

    return derive(prk, HKDF_PRK, params);
}

int hkdf_expand(unsigned char *out, size_t len, const unsigned char prk[HKDF_PRK], const void *info,
                size_t info_len)
{
    int mode = EVP_KDF_HKDF_MODE_EXPAND_ONLY;
    char digest[] = "SHA256";
    OSSL_PARAM params[N_PARAMS] = {
        OSSL_PARAM_construct_int(OSSL_KDF_PARAM_MODE, &mode),
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest, 0),
        octets(OSSL_KDF_PARAM_KEY, prk, HKDF_PRK),
        octets(OSSL_KDF_PARAM_INFO, info, info_len),
        OSSL_PARAM_construct_end(),
    };

    return derive(out, len, params);
}
