/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/legacy.h"

/* A context of its own: a provider that is loaded into the default one is there for everybody, and
 * ends that the default provider is loaded by itself. Never freed: algorithms that were fetched
 * from it may be in use until the end. */

#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stddef.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *context;

static void make(void)
{
    OSSL_LIB_CTX *lib = OSSL_LIB_CTX_new();

    if (lib != NULL && OSSL_PROVIDER_load(lib, "default") != NULL &&
        OSSL_PROVIDER_load(lib, "legacy") != NULL)
        context = lib;
    else
        OSSL_LIB_CTX_free(lib);
}

OSSL_LIB_CTX *legacy_context(void)
{
    pthread_once(&once, make);
    return context;
}
