/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/key.h"

/* docs/geli-format.md 4 to 6. Everything is HMAC-SHA-512 with the whole of its output; a passphrase
 * goes through PBKDF2 first. Nothing in the metadata says what a slot opens with, so both slots are
 * tried with the one user key that the credential gives. */

#include "base/bytes.h"
#include "base/legacy.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <time.h>

#define DIGEST 64 /* bytes: SHA-512 */
#define SLOW_MS 10000
#define TRIAL 20000 /* iterations by which the speed is known */

/* HMAC-SHA-512 over two pieces. An empty key is one that is there and has no bytes. */
static int hmac2(unsigned char out[DIGEST], const void *key, size_t key_len, const void *a,
                 size_t a_len, const void *b, size_t b_len)
{
    char name[] = "SHA512";
    const OSSL_PARAM params[] = {OSSL_PARAM_utf8_string("digest", name, 0), OSSL_PARAM_END};
    EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    EVP_MAC_CTX *ctx = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;
    bool ok;

    ok = ctx != NULL &&
         EVP_MAC_init(ctx, key_len > 0 ? key : (const void *)"", key_len, params) == 1 &&
         (a_len == 0 || EVP_MAC_update(ctx, a, a_len) == 1) &&
         (b_len == 0 || EVP_MAC_update(ctx, b, b_len) == 1) &&
         EVP_MAC_final(ctx, out, NULL, DIGEST) == 1;
    EVP_MAC_CTX_free(ctx); /* cleanses */
    EVP_MAC_free(mac);
    return ok ? 0 : -EIO;
}

static int hmac(unsigned char out[DIGEST], const unsigned char key[DIGEST], const void *data,
                size_t len)
{
    return hmac2(out, key, DIGEST, data, len, NULL, 0);
}

/* The key that a byte stands for. */
static int hmac_byte(struct secret *ret, const unsigned char key[DIGEST], unsigned char byte)
{
    int r = secret_make(ret, DIGEST);

    return r < 0 ? r : hmac(ret->bytes, key, &byte, 1);
}

/* --- the user key --- */

static int pbkdf2(unsigned char out[DIGEST], const void *passphrase, size_t len,
                  const unsigned char salt[GELI_SALT], int32_t iterations)
{
    return PKCS5_PBKDF2_HMAC(len > 0 ? passphrase : "", (int)len, salt, GELI_SALT, iterations,
                             EVP_sha512(), DIGEST, out) == 1
               ? 0
               : -EIO;
}

static uint64_t cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* How long so many iterations of nothing take here. -EIO. */
static int64_t trial_ms(int32_t iterations)
{
    static const unsigned char salt[GELI_SALT];
    unsigned char out[DIGEST];
    uint64_t start = cpu_ms();
    int r = pbkdf2(out, "", 0, salt, iterations);

    return r < 0 ? r : (int64_t)(cpu_ms() - start);
}

int geli_calibrate(int32_t *ret, uint32_t time_ms)
{
    int64_t ms = 0, n = TRIAL;

    for (; n < INT32_MAX / 4; n *= 2) {
        ms = trial_ms((int32_t)n);
        if (ms < 0)
            return (int)ms;
        if (ms >= 100)
            break;
    }
    n = ms > 0 ? n * time_ms / ms : n;
    *ret = n < 1 ? 1 : n > INT32_MAX ? INT32_MAX : (int32_t)n;
    return 0;
}

/* A count that somebody forged is no reason to wait without a word. */
static void warn_slow(const struct geli_meta *m, struct report *rep)
{
    int64_t ms;

    if (m->iterations < 20 * TRIAL)
        return;
    ms = trial_ms(TRIAL);
    if (ms > 0)
        ms = ms * m->iterations / TRIAL;
    if (ms > SLOW_MS)
        report_warn(rep,
                    "the container asks for %" PRId32
                    " iterations of PBKDF2: that takes about %" PRId64 " s here (Ctrl-C gives up)",
                    m->iterations, ms / 1000);
}

/* Bytes of the passphrase that count: geli(8) keeps it as a string. */
static size_t passphrase_len(const struct credential *cred)
{
    const struct secret *p = &cred->passphrase;

    return p->len > 0 ? strnlen((const char *)p->bytes, p->len) : 0;
}

/* What the passphrase adds behind the key files. */
static int passphrase_part(struct secret *ret, const struct geli_meta *m,
                           const struct credential *cred, struct report *rep)
{
    size_t len = passphrase_len(cred);
    int r;

    if (m->iterations > 0) {
        r = secret_make(ret, DIGEST);
        if (r < 0)
            return r;
        warn_slow(m, rep);
        return pbkdf2(ret->bytes, cred->passphrase.bytes, len, m->salt, m->iterations);
    }
    r = secret_make(ret, GELI_SALT + len);
    if (r < 0)
        return r;
    memcpy(ret->bytes, m->salt, GELI_SALT);
    if (len > 0)
        memcpy(ret->bytes + GELI_SALT, cred->passphrase.bytes, len);
    return 0;
}

int geli_user_key(struct secret *ret, const struct geli_meta *m, const struct credential *cred,
                  struct report *rep)
{
    AUTO_SECRET struct secret part = {0}, key = {0};
    int r = 0;

    if (cred->has_passphrase && m->iterations == GELI_NO_PASSPHRASE)
        return report_error(rep, EKEYREJECTED,
                            "the container was made without a passphrase: it opens with key files "
                            "alone");
    if (cred->has_passphrase)
        r = passphrase_part(&part, m, cred, rep);
    if (r == 0)
        r = secret_make(&key, GELI_USER_KEY);
    if (r == 0)
        r = hmac2(key.bytes, NULL, 0, cred->keyfiles.bytes, cred->keyfiles.len, part.bytes,
                  part.len);
    if (r < 0)
        return report_errno(rep, -r, "cannot compute the key");
    *ret = key;
    key = (struct secret){0};
    return 0;
}

/* --- slots --- */

struct engine {
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *ctx;
};

static void engine_done(struct engine *e)
{
    EVP_CIPHER_CTX_free(e->ctx); /* cleanses */
    EVP_CIPHER_free(e->cipher);
}

static int engine_init(struct engine *e, const struct geli_cipher *c, unsigned bits,
                       struct report *rep)
{
    char name[GELI_CIPHER_NAME];
    OSSL_LIB_CTX *lib;

    geli_cipher_evp(name, c, bits);
    lib = c->legacy ? legacy_context() : NULL;
    if (!c->legacy || lib != NULL)
        e->cipher = EVP_CIPHER_fetch(lib, name, NULL);
    if (e->cipher == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "OpenSSL does not offer %s here, which the key slots need%s", name,
                            c->legacy ? " (its legacy provider has it)" : "");
    e->ctx = EVP_CIPHER_CTX_new();
    return e->ctx != NULL ? 0 : -ENOMEM;
}

/* CBC over a slot with a zero IV; bytes is changed in place. */
static int slot_crypt(unsigned char *bytes, const struct geli_meta *m, const struct secret *key,
                      int encrypt, struct report *rep)
{
    const struct geli_cipher *c = geli_cipher_numbered(m->ealgo);
    static const unsigned char iv[16];
    struct engine e = {0};
    int r, n = 0;

    if (c->evp == NULL)
        return 0;
    r = engine_init(&e, c, m->keylen, rep);
    if (r == 0) {
        bool ok = EVP_CipherInit_ex2(e.ctx, e.cipher, NULL, NULL, encrypt, NULL) == 1 &&
                  EVP_CIPHER_CTX_set_key_length(e.ctx, m->keylen / 8) == 1 &&
                  EVP_CipherInit_ex2(e.ctx, NULL, key->bytes, iv, encrypt, NULL) == 1 &&
                  EVP_CIPHER_CTX_set_padding(e.ctx, 0) == 1 &&
                  EVP_CipherUpdate(e.ctx, bytes, &n, bytes, GELI_SLOT) == 1 && n == GELI_SLOT;

        r = ok ? 0 : -EIO;
    }
    engine_done(&e);
    return r;
}

static int slot_mac(unsigned char mac[DIGEST], const struct secret *user_key,
                    const unsigned char master[GELI_MASTER])
{
    AUTO_SECRET struct secret key = {0};
    int r = hmac_byte(&key, user_key->bytes, 0x00);

    return r < 0 ? r : hmac(mac, key.bytes, master, GELI_MASTER);
}

int geli_slot_wrap(unsigned char slot[GELI_SLOT], const struct geli_meta *m,
                   const struct secret *user_key, const struct secret *master, struct report *rep)
{
    AUTO_SECRET struct secret key = {0}, plain = {0};
    int r = secret_make(&plain, GELI_SLOT);

    if (r == 0)
        memcpy(plain.bytes, master->bytes, GELI_MASTER);
    if (r == 0)
        r = slot_mac(plain.bytes + GELI_MASTER, user_key, master->bytes);
    if (r == 0)
        r = hmac_byte(&key, user_key->bytes, 0x01);
    if (r == 0)
        r = slot_crypt(plain.bytes, m, &key, 1, rep);
    if (r == 0)
        memcpy(slot, plain.bytes, GELI_SLOT);
    return r;
}

int geli_slot_unwrap(struct secret *master, const unsigned char slot[GELI_SLOT],
                     const struct geli_meta *m, const struct secret *user_key, struct report *rep)
{
    AUTO_SECRET struct secret key = {0}, plain = {0};
    unsigned char mac[DIGEST];
    int r = secret_copy(&plain, slot, GELI_SLOT);

    if (r == 0)
        r = hmac_byte(&key, user_key->bytes, 0x01);
    if (r == 0)
        r = slot_crypt(plain.bytes, m, &key, 0, rep);
    if (r == 0)
        r = slot_mac(mac, user_key, plain.bytes);
    if (r < 0)
        return r;
    if (!secret_equal(mac, plain.bytes + GELI_MASTER, DIGEST))
        return -EKEYREJECTED;
    return secret_copy(master, plain.bytes, GELI_MASTER);
}

/* --- the volume --- */

static unsigned log2_of(uint32_t power_of_two)
{
    return (unsigned)__builtin_ctz(power_of_two);
}

/* docs/geli-format.md 6: which key is the base of all others, and whether there are others. */
static int fill_rule(struct key_rule *rule, const struct geli_meta *m, uint32_t sector,
                     const struct secret *base, const unsigned char *iv_key)
{
    static const unsigned char first[12] = "ekey";
    bool auth = m->flags & GELI_AUTH;
    int r;

    rule->chunk_shift = 20 + log2_of(auth ? sector : m->sectorsize);
    rule->derivation = m->version < 5 ? KEY_DERIVE_SINGLE : KEY_DERIVE_HMAC;
    if (m->version == 5 && auth) { /* that version never came to the second key */
        rule->derivation = KEY_DERIVE_SINGLE;
        r = secret_make(&rule->prk, DIGEST);
        return r < 0 ? r : hmac(rule->prk.bytes, iv_key, first, sizeof(first));
    }
    if (rule->derivation == KEY_DERIVE_HMAC) {
        memcpy(rule->head, first, 4);
        rule->head_len = 4;
    }
    if (m->version == 5 || m->version == 6)
        return secret_copy(&rule->prk, iv_key, DIGEST);
    return secret_copy(&rule->prk, base->bytes, base->len);
}

static int fill_auth(struct key_auth *auth, struct secret *base, const struct geli_meta *m,
                     uint32_t sector, const unsigned char *data_key)
{
    int r;

    if (!(m->flags & GELI_AUTH))
        return secret_copy(base, data_key, DIGEST);
    strcpy(auth->hash, geli_hash_numbered(m->aalgo)->name);
    auth->piece = sector;
    r = hmac_byte(base, data_key, 0x10);
    return r < 0 ? r : hmac_byte(&auth->key, data_key, 0x11);
}

int geli_volume(struct key_volume *ret, const struct geli_meta *m, uint32_t sector,
                const struct secret *master)
{
    const unsigned char *iv_key = master->bytes, *data_key = master->bytes + DIGEST;
    const struct geli_cipher *c = geli_cipher_numbered(m->ealgo);
    bool cbc = c->mode != NULL && strcmp(c->mode, "cbc") == 0;
    AUTO_SECRET struct secret base = {0};
    AUTO_KEY_VOLUME struct key_volume v = {
        .format = "geli",
        .sector_size = m->sectorsize,
        .size = geli_meta_disk(m, sector),
        .iv = cbc ? KEY_IV_OFFSET_HASH : KEY_IV_OFFSET,
        .read_only = m->flags & GELI_RO,
    };
    int r = fill_auth(&v.auth, &base, m, sector, data_key);

    if (r == 0)
        r = fill_rule(&v.rule, m, sector, &base, iv_key);
    if (r == 0)
        r = secret_copy(&v.iv_key, iv_key, DIGEST);
    if (r < 0)
        return r;
    geli_cipher_ours(v.cipher, c, m->keylen);
    memcpy(v.uuid, m->salt, sizeof(v.uuid));
    *ret = v;
    v = (struct key_volume){0};
    return 0;
}

int geli_master_id(unsigned char id[GELI_MASTER_ID], const struct secret *master)
{
    static const char words[] = "the same master key";

    return hmac2(id, words, sizeof(words), master->bytes, master->len, NULL, 0);
}
