/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/chunkkey.h"

/* A direct-mapped cache: 256 chunks of 4 GiB are a terabyte without one derivation twice. It is
 * asked only when a thread's own contexts (engine.c) do not have the key, so one mutex serves. */

#include "base/auto.h"
#include "base/bytes.h"
#include "base/hkdf.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>

#define CACHED 256 /* chunks, a power of two */
#define NO_CHUNK UINT64_MAX

struct chunk_keys {
    pthread_mutex_t lock;
    struct chunk_rule rule;
    struct secret prk;
    uint32_t key_len;
    uint64_t chunk[CACHED];
    struct secret keys; /* CACHED of CHUNK_KEY_MAX bytes */
};

/* The lock is held, or nobody knows k yet. */
static void forget(struct chunk_keys *k)
{
    secret_done(&k->keys);
    secret_done(&k->prk);
    for (unsigned i = 0; i < CACHED; i++)
        k->chunk[i] = NO_CHUNK;
}

static int remember(struct chunk_keys *k, const struct secret *prk)
{
    forget(k);
    if (secret_copy(&k->prk, prk->bytes, prk->len) < 0 ||
        secret_make(&k->keys, CACHED * CHUNK_KEY_MAX) < 0) {
        forget(k);
        return -ENOMEM;
    }
    return 0;
}

static bool prk_fits(const struct chunk_rule *rule, const struct secret *prk)
{
    return prk->len == (rule->derivation == CHUNK_HKDF ? HKDF_PRK : CHUNK_KEY_MAX);
}

int chunk_keys_open(struct chunk_keys **ret, const struct chunk_rule *rule, uint32_t key_len)
{
    struct chunk_keys *k;

    if (rule->prk == NULL || !prk_fits(rule, rule->prk) || key_len > CHUNK_KEY_MAX ||
        rule->head_len > sizeof(rule->head) || rule->tail_len > sizeof(rule->tail))
        return -EINVAL;
    k = calloc(1, sizeof(*k));
    if (k == NULL)
        return -ENOMEM;
    pthread_mutex_init(&k->lock, NULL);
    k->rule = *rule;
    k->key_len = key_len;
    if (remember(k, rule->prk) < 0) {
        chunk_keys_close(k);
        return -ENOMEM;
    }
    k->rule.prk = &k->prk;
    *ret = k;
    return 0;
}

void chunk_keys_close(struct chunk_keys *k)
{
    if (k == NULL)
        return;
    forget(k);
    pthread_mutex_destroy(&k->lock);
    free(k);
}

void chunk_keys_forget(struct chunk_keys *k)
{
    HOLD(&k->lock);

    forget(k);
}

int chunk_keys_rekey(struct chunk_keys *k, const struct secret *prk)
{
    HOLD(&k->lock);

    return prk_fits(&k->rule, prk) ? remember(k, prk) : -EINVAL;
}

static int hmac_sha512(unsigned char *key, uint32_t len, const struct secret *prk,
                       const unsigned char *info, size_t info_len)
{
    unsigned char all[CHUNK_KEY_MAX];
    size_t n = 0;
    bool done = EVP_Q_mac(NULL, "HMAC", NULL, "SHA512", NULL, prk->bytes, prk->len, info, info_len,
                          all, sizeof(all), &n) != NULL &&
                n == sizeof(all);

    if (done)
        memcpy(key, all, len);
    secret_wipe(all, sizeof(all));
    return done ? 0 : -EIO;
}

/* docs/format.md 5.1: label || LE64(chunk) || SHA256(parameters) */
static int derive(const struct chunk_rule *rule, uint64_t chunk, unsigned char *key, uint32_t len)
{
    unsigned char info[sizeof(rule->head) + 8 + sizeof(rule->tail)];
    size_t info_len = rule->head_len + 8 + rule->tail_len;

    memcpy(info, rule->head, rule->head_len);
    bytes_put_le64(info + rule->head_len, chunk);
    memcpy(info + rule->head_len + 8, rule->tail, rule->tail_len);
    switch (rule->derivation) {
    case CHUNK_HMAC:
        return hmac_sha512(key, len, rule->prk, info, info_len);
    case CHUNK_SINGLE:
        memcpy(key, rule->prk->bytes, len);
        return 0;
    case CHUNK_HKDF:
    default:
        return hkdf_expand(key, len, rule->prk->bytes, info, info_len);
    }
}

int chunk_keys_get(struct chunk_keys *k, uint64_t chunk, unsigned char *key)
{
    HOLD(&k->lock);
    unsigned at = (unsigned)(chunk % CACHED);
    unsigned char *cached;

    if (k->keys.bytes == NULL)
        return -EIO; /* forgotten */
    cached = k->keys.bytes + at * CHUNK_KEY_MAX;
    if (k->chunk[at] != chunk) {
        int r = derive(&k->rule, chunk, cached, k->key_len);

        k->chunk[at] = r < 0 ? NO_CHUNK : chunk;
        if (r < 0)
            return r;
    }
    memcpy(key, cached, k->key_len);
    return 0;
}

int chunk_keys_warm(struct chunk_keys *k, uint64_t n)
{
    unsigned char key[CHUNK_KEY_MAX];
    int r = 0;

    for (uint64_t chunk = 0; chunk < n && chunk < CACHED && r == 0; chunk++)
        r = chunk_keys_get(k, chunk, key);
    secret_wipe(key, sizeof(key));
    return r;
}
