/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/slot.h"

/* Encrypt, then MAC, both keys from one derivation and the MAC whole: a slot opens under one
 * password only, so that "did it unlock?" answers about one guess, not about thousands
 * (docs/format.md 10.2). Every parameter of the derivation and the place of the slot go into the
 * keys. */

#include "base/bytes.h"
#include "base/hkdf.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <time.h>

enum {
    AT_STATE = 0x00,
    AT_TYPE = 0x01,
    AT_KDF = 0x02,
    AT_WRAP = 0x03,
    AT_M_KIB = 0x08,
    AT_T = 0x0c,
    AT_P = 0x10,
    AT_SALT_A = 0x18,
    AT_SALT_H = 0x28,
    AT_WRAPPED = 0x38,
    AT_TAG = 0x78,
    AT_CREATED = 0x98,
    AT_LABEL = 0xa0,
};

#define BOUND AT_WRAPPED /* bytes at the start that the keys and the tag cover */
#define STATE_EMPTY 0
#define STATE_USED 1
#define KDF_ARGON2ID 1
#define WRAP_CTR_HMAC 1
#define DIGEST 32 /* bytes: SHA-256, the tag, a key */

void native_slot_decode(struct native_slot *ret, const unsigned char slot[NATIVE_SLOT])
{
    *ret = (struct native_slot){
        .used = slot[AT_STATE] != STATE_EMPTY,
        .state = slot[AT_STATE],
        .type = slot[AT_TYPE],
        .kdf = slot[AT_KDF],
        .wrap = slot[AT_WRAP],
        .cost = {.m_kib = bytes_get_le32(slot + AT_M_KIB),
                 .t = bytes_get_le32(slot + AT_T),
                 .p = bytes_get_le32(slot + AT_P)},
        .created = bytes_get_le64(slot + AT_CREATED),
    };
    memcpy(ret->salt_a, slot + AT_SALT_A, NATIVE_SLOT_SALT);
    memcpy(ret->salt_h, slot + AT_SALT_H, NATIVE_SLOT_SALT);
    memcpy(ret->label, slot + AT_LABEL, NATIVE_SLOT_LABEL);
}

int native_slot_check(const struct native_slot *s, unsigned index, struct report *rep)
{
    if (s->state != STATE_USED || s->type < KEY_SLOT_PASSPHRASE || s->type > KEY_SLOT_BOTH ||
        s->kdf != KDF_ARGON2ID || s->wrap != WRAP_CTR_HMAC)
        return report_error(
            rep, EOPNOTSUPP,
            "key slot %u is of a kind that this version does not support (state %u, "
            "type %u, kdf %u, wrap %u)",
            index, s->state, s->type, s->kdf, s->wrap);
    return 0;
}

const unsigned char *native_slot_id(const unsigned char slot[NATIVE_SLOT])
{
    return slot + AT_SALT_A;
}

enum key_slot_kind native_slot_kind(const struct credential *cred)
{
    if (cred->n_keyfiles == 0)
        return KEY_SLOT_PASSPHRASE;
    return cred->has_passphrase ? KEY_SLOT_BOTH : KEY_SLOT_KEYFILE;
}

const char *native_slot_kind_words(enum key_slot_kind kind)
{
    switch (kind) {
    case KEY_SLOT_UNTOLD:
        break;
    case KEY_SLOT_PASSPHRASE:
        return "a passphrase";
    case KEY_SLOT_KEYFILE:
        return "key files";
    case KEY_SLOT_BOTH:
        return "a passphrase and key files together";
    }
    return "something unknown";
}

/* SHA-256("keyfile" || LE64(length) || the bytes of all key files) */
static int slot_keyfile_digest(struct secret *digest, const struct secret *keyfiles)
{
    unsigned char len[8];
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    int r = secret_make(digest, DIGEST), ok;

    bytes_put_le64(len, keyfiles->len);
    ok = r == 0 && ctx != NULL && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) == 1 &&
         EVP_DigestUpdate(ctx, "keyfile", 7) == 1 && EVP_DigestUpdate(ctx, len, 8) == 1 &&
         EVP_DigestUpdate(ctx, keyfiles->bytes, keyfiles->len) == 1 &&
         EVP_DigestFinal_ex(ctx, digest->bytes, NULL) == 1;
    EVP_MD_CTX_free(ctx); /* cleanses */
    return r < 0 ? r : ok ? 0 : -EIO;
}

/* X || the digest where the kind is both: what HKDF extracts from. */
static int slot_input(struct secret *input, const struct native_slot *s, const unsigned char *slot,
                      const struct credential *cred, struct report *rep)
{
    AUTO_SECRET struct secret digest = {0};
    const struct secret *password = s->type == KEY_SLOT_KEYFILE ? &digest : &cred->passphrase;
    size_t len = s->type == KEY_SLOT_BOTH ? 2 * DIGEST : DIGEST;
    int r = secret_make(input, len);

    if (r == 0 && s->type != KEY_SLOT_PASSPHRASE)
        r = slot_keyfile_digest(&digest, &cred->keyfiles);
    if (r < 0)
        return r;
    if (s->type == KEY_SLOT_BOTH)
        memcpy(input->bytes + DIGEST, digest.bytes, DIGEST);
    return kdf_argon2id(input->bytes, password, slot + AT_SALT_A, &s->cost, rep);
}

/* keys: Ke || Km */
static int slot_keys(struct secret *keys, const unsigned char *slot, unsigned index,
                     const struct native_header *h, const struct credential *cred,
                     struct report *rep)
{
    static const char head[] = "slot v1";
    unsigned char info[sizeof(head) - 1 + sizeof(h->uuid) + 4 + BOUND + DIGEST], *at = info;
    AUTO_SECRET struct secret input = {0}, prk = {0};
    struct native_slot s;
    int r;

    native_slot_decode(&s, slot);
    r = slot_input(&input, &s, slot, cred, rep);
    if (r == 0)
        r = secret_make(&prk, HKDF_PRK);
    if (r == 0)
        r = secret_make(keys, 2 * DIGEST);
    if (r == 0)
        r = hkdf_extract(prk.bytes, slot + AT_SALT_H, NATIVE_SLOT_SALT, input.bytes, input.len);
    if (r < 0)
        return r;
    at = mempcpy(at, head, sizeof(head) - 1);
    at = mempcpy(at, h->uuid, sizeof(h->uuid));
    bytes_put_le32(at, index);
    at = mempcpy(at + 4, slot, BOUND);
    memcpy(at, h->params_sha256, DIGEST);
    return hkdf_expand(keys->bytes, keys->len, prk.bytes, info, sizeof(info));
}

static int slot_tag(unsigned char tag[DIGEST], const unsigned char *slot,
                    const struct native_header *h, const struct secret *keys)
{
    unsigned char text[BOUND + sizeof(h->uuid) + DIGEST + NATIVE_MASTER], *at = text;

    at = mempcpy(at, slot, BOUND);
    at = mempcpy(at, h->uuid, sizeof(h->uuid));
    at = mempcpy(at, h->params_sha256, DIGEST);
    memcpy(at, slot + AT_WRAPPED, NATIVE_MASTER);
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, keys->bytes + DIGEST, DIGEST, text,
                     sizeof(text), tag, DIGEST, NULL)
               ? 0
               : -EIO;
}

/* AES-256-CTR with IV 0: Ke is used for these 32 bytes only. Its own inverse. */
static int slot_crypt(unsigned char *out, const unsigned char *in, const struct secret *keys)
{
    static const unsigned char iv[16];
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, ok;

    ok = ctx != NULL && EVP_EncryptInit_ex2(ctx, EVP_aes_256_ctr(), keys->bytes, iv, NULL) == 1 &&
         EVP_EncryptUpdate(ctx, out, &n, in, NATIVE_MASTER) == 1 && n == NATIVE_MASTER;
    EVP_CIPHER_CTX_free(ctx); /* cleanses */
    return ok ? 0 : -EIO;
}

int native_slot_wrap(unsigned char slot[NATIVE_SLOT], unsigned index, const struct native_header *h,
                     const struct kdf_cost *cost, const char *label, const struct credential *cred,
                     const struct secret *master, struct report *rep)
{
    AUTO_SECRET struct secret keys = {0};
    int r;

    memset(slot, 0, NATIVE_SLOT);
    slot[AT_STATE] = STATE_USED;
    slot[AT_TYPE] = (unsigned char)native_slot_kind(cred);
    slot[AT_KDF] = KDF_ARGON2ID;
    slot[AT_WRAP] = WRAP_CTR_HMAC;
    bytes_put_le32(slot + AT_M_KIB, cost->m_kib);
    bytes_put_le32(slot + AT_T, cost->t);
    bytes_put_le32(slot + AT_P, cost->p);
    secret_random(slot + AT_SALT_A, NATIVE_SLOT_SALT);
    secret_random(slot + AT_SALT_H, NATIVE_SLOT_SALT);
    bytes_put_le64(slot + AT_CREATED, (uint64_t)time(NULL));
    if (label != NULL)
        memcpy(slot + AT_LABEL, label, strnlen(label, NATIVE_SLOT_LABEL));
    r = slot_keys(&keys, slot, index, h, cred, rep);
    if (r == 0)
        r = slot_crypt(slot + AT_WRAPPED, master->bytes, &keys);
    return r < 0 ? r : slot_tag(slot + AT_TAG, slot, h, &keys);
}

void native_slot_destroy(unsigned char slot[NATIVE_SLOT])
{
    secret_random(slot, NATIVE_SLOT);
    slot[AT_STATE] = STATE_EMPTY;
}

int native_slot_unwrap(struct secret *master, const unsigned char slot[NATIVE_SLOT], unsigned index,
                       const struct native_header *h, const struct credential *cred,
                       struct report *rep)
{
    AUTO_SECRET struct secret keys = {0};
    unsigned char tag[DIGEST];
    int r = slot_keys(&keys, slot, index, h, cred, rep);

    if (r == 0)
        r = slot_tag(tag, slot, h, &keys);
    if (r < 0)
        return r;
    if (!secret_equal(tag, slot + AT_TAG, DIGEST))
        return -EKEYREJECTED;
    r = secret_make(master, NATIVE_MASTER);
    return r < 0 ? r : slot_crypt(master->bytes, slot + AT_WRAPPED, &keys);
}
