/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/unit.h"

/* A MAC binds ciphertext to its place by its key: HMAC-hash(SHA-256(key || LE64(off)), ciphertext).
 * An IV that is a hash is made in the same way, of another key (docs/geli-format.md 7, 8.2). */

#include "base/bytes.h"
#include "base/legacy.h"

#include <endian.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <string.h>

#define SHA256 32 /* bytes */

static const struct mac_kind {
    const char *name, *digest;
    uint32_t len;
} kinds[] = {
    {"hmac-md5", "MD5", 16},
    {"hmac-sha1", "SHA1", 20},
    {"hmac-ripemd160", "RIPEMD160", 20},
    {"hmac-sha256", "SHA256", 32},
    {"hmac-sha384", "SHA384", 48},
    {"hmac-sha512", "SHA512", 64},
    {NULL, NULL, 0},
};

static const struct mac_kind *kind_named(const char *name)
{
    for (const struct mac_kind *k = kinds; k->name != NULL; k++)
        if (strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

uint32_t sector_mac_length(const char *name)
{
    const struct mac_kind *k = kind_named(name);

    return k != NULL ? k->len : 0;
}

static EVP_MAC_CTX *new_mac(EVP_MAC *hmac, const char *digest)
{
    char name[16];
    const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string("digest", name, 0), OSSL_PARAM_END};
    EVP_MAC_CTX *ctx = EVP_MAC_CTX_new(hmac);

    strncpy(name, digest, sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    if (ctx != NULL && EVP_MAC_CTX_set_params(ctx, params) == 1)
        return ctx;
    EVP_MAC_CTX_free(ctx);
    return NULL;
}

/* HMAC from a context of the library that also has the hash. */
static EVP_MAC *fetch_hmac(OSSL_LIB_CTX *lib, const char *digest)
{
    EVP_MAC *hmac = EVP_MAC_fetch(lib, "HMAC", NULL);
    EVP_MAC_CTX *trial = hmac != NULL ? new_mac(hmac, digest) : NULL;
    bool works = trial != NULL && EVP_MAC_init(trial, (const unsigned char *)"", 1, NULL) == 1;

    EVP_MAC_CTX_free(trial);
    if (works)
        return hmac;
    EVP_MAC_free(hmac);
    return NULL;
}

static int open_mac(struct unit_rules *u, const char *name, struct report *rep)
{
    const struct mac_kind *k = kind_named(name);

    if (k == NULL)
        return report_error(rep, EINVAL, "there is no MAC %s", name);
    ERR_set_mark();
    u->hmac = fetch_hmac(NULL, k->digest);
    if (u->hmac == NULL && legacy_context() != NULL)
        u->hmac = fetch_hmac(legacy_context(), k->digest);
    ERR_pop_to_mark();
    if (u->hmac == NULL)
        return report_error(rep, ENOSYS, "this machine's OpenSSL does not offer HMAC with %s",
                            k->digest);
    u->digest = k->digest;
    u->mac_len = k->len;
    return 0;
}

static bool iv_is_hash(enum sector_iv iv)
{
    return iv == SECTOR_IV_OFFSET_HASH || iv == SECTOR_IV_OFFSET_HASH_BIG;
}

int unit_rules_init(struct unit_rules *u, const struct unit_rule *rule, uint32_t sector_size,
                    struct report *rep)
{
    int r = 0;

    u->iv = rule->iv;
    u->sector_size = sector_size;
    u->mac_big_endian = rule->mac_big_endian;
    if (rule->mac != NULL)
        r = open_mac(u, rule->mac, rep);
    if (r == 0 && (rule->mac != NULL || iv_is_hash(rule->iv))) {
        u->sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
        if (u->sha256 == NULL)
            r = report_error(rep, ENOSYS, "this machine's OpenSSL does not offer SHA256");
    }
    return r < 0 ? r : unit_rules_rekey(u, rule->iv_key, rule->mac_key);
}

void unit_rules_done(struct unit_rules *u)
{
    unit_rules_forget(u);
    EVP_MD_free(u->sha256);
    EVP_MAC_free(u->hmac);
}

void unit_rules_forget(struct unit_rules *u)
{
    secret_done(&u->iv_key);
    secret_done(&u->mac_key);
}

static int take_key(struct secret *to, const struct secret *key)
{
    return key == NULL || key->len == 0 ? -EINVAL : secret_copy(to, key->bytes, key->len);
}

int unit_rules_rekey(struct unit_rules *u, const struct secret *iv_key,
                     const struct secret *mac_key)
{
    int r = 0;

    if (iv_is_hash(u->iv))
        r = take_key(&u->iv_key, iv_key);
    if (r == 0 && u->hmac != NULL)
        r = take_key(&u->mac_key, mac_key);
    return r;
}

int unit_rules_equip(const struct unit_rules *u, struct lane *lane)
{
    if (u->sha256 != NULL && lane->hash == NULL) {
        lane->hash = EVP_MD_CTX_new();
        if (lane->hash == NULL || EVP_DigestInit_ex2(lane->hash, u->sha256, NULL) != 1)
            return -ENOMEM;
    }
    if (u->hmac != NULL && lane->mac == NULL) {
        lane->mac = new_mac(u->hmac, u->digest);
        if (lane->mac == NULL)
            return -ENOMEM;
    }
    return 0;
}

static int hash_place(struct lane *lane, unsigned char out[SHA256], const struct secret *key,
                      uint64_t off, bool big_endian)
{
    const uint64_t place = big_endian ? htobe64(off) : htole64(off);

    if (key->bytes == NULL)
        return -EIO; /* forgotten */
    return EVP_DigestInit_ex2(lane->hash, NULL, NULL) == 1 &&
                   EVP_DigestUpdate(lane->hash, key->bytes, key->len) == 1 &&
                   EVP_DigestUpdate(lane->hash, &place, sizeof(place)) == 1 &&
                   EVP_DigestFinal_ex(lane->hash, out, NULL) == 1
               ? 0
               : -EIO;
}

int unit_iv(const struct unit_rules *u, struct lane *lane, unsigned char iv[16], uint64_t off)
{
    unsigned char hash[SHA256];
    int r;

    memset(iv, 0, 16);
    if (!iv_is_hash(u->iv)) {
        bytes_put_le64(iv, u->iv == SECTOR_IV_NUMBER ? off / u->sector_size : off);
        return 0;
    }
    r = hash_place(lane, hash, &u->iv_key, off, u->iv == SECTOR_IV_OFFSET_HASH_BIG);
    if (r == 0)
        memcpy(iv, hash, 16);
    return r;
}

int unit_mac(const struct unit_rules *u, struct lane *lane, unsigned char *mac,
             const unsigned char *ciphertext, size_t len, uint64_t off)
{
    unsigned char key[SHA256];
    int r = hash_place(lane, key, &u->mac_key, off, u->mac_big_endian);

    if (r == 0 && (EVP_MAC_init(lane->mac, key, sizeof(key), NULL) != 1 ||
                   EVP_MAC_update(lane->mac, ciphertext, len) != 1 ||
                   EVP_MAC_final(lane->mac, mac, NULL, u->mac_len) != 1))
        r = -EIO;
    secret_wipe(key, sizeof(key));
    return r;
}
