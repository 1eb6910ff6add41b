/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/record.h"

/* Pure bytes and struct, like the header. All keys come from the new volume key: only who can open
 * the container as it will be can say how far it is, or what was under the old key. The wrapping
 * key serves one value in its life, the old master key of this re-encryption, whose salt it comes
 * from; so the counter may start at zero.
 *
 * The digests are not part of the MAC. Whoever changes one makes noise of its piece, which he could
 * have done to the piece itself; and without that a record need not wait for its digests to be
 * read. */

#include "base/bytes.h"
#include "base/hkdf.h"

#include <errno.h>
#include <openssl/evp.h>
#include <sodium.h>

enum {
    AT_MAGIC = 0x000,
    AT_SEQ = 0x008,
    AT_DONE = 0x010,
    AT_ZONE = 0x018,
    AT_OLD_PARAMS = 0x020,
    AT_WRAPPED = 0x0a0,
    AT_MAC = 0x0c0,
};

static const char record_magic[8] = "HUSHREC"; /* the terminator is the eighth byte */

int native_record_keys(struct secret *keys, const struct native_header *h, const struct secret *prk)
{
    static const char head[] = "hushvol v1 reencrypt";
    unsigned char info[sizeof(head) - 1 + sizeof(h->params_sha256)];
    int r = secret_make(keys, NATIVE_RECORD_KEYS);

    if (r < 0)
        return r;
    memcpy(info, head, sizeof(head) - 1);
    memcpy(info + sizeof(head) - 1, h->params_sha256, sizeof(h->params_sha256));
    return hkdf_expand(keys->bytes, keys->len, prk->bytes, info, sizeof(info));
}

static int record_mac(unsigned char mac[32], const unsigned char *block, const struct secret *keys)
{
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, keys->bytes + NATIVE_RECORD_KEY, 32, block,
                     AT_MAC, mac, 32, NULL)
               ? 0
               : -EIO;
}

int native_record_encode(unsigned char block[NATIVE_BLOCK], const struct native_record *r,
                         const struct secret *keys)
{
    memset(block, 0, NATIVE_BLOCK);
    memcpy(block + AT_MAGIC, record_magic, sizeof(record_magic));
    bytes_put_le64(block + AT_SEQ, r->seq);
    bytes_put_le64(block + AT_DONE, r->done);
    bytes_put_le32(block + AT_ZONE, r->zone);
    memcpy(block + AT_OLD_PARAMS, r->old_params, NATIVE_PARAMS);
    memcpy(block + AT_WRAPPED, r->wrapped, sizeof(r->wrapped));
    return record_mac(block + AT_MAC, block, keys);
}

void native_record_parse(struct native_record *ret, const unsigned char block[NATIVE_BLOCK])
{
    *ret = (struct native_record){.seq = bytes_get_le64(block + AT_SEQ),
                                  .done = bytes_get_le64(block + AT_DONE),
                                  .zone = bytes_get_le32(block + AT_ZONE)};
    memcpy(ret->old_params, block + AT_OLD_PARAMS, NATIVE_PARAMS);
    memcpy(ret->wrapped, block + AT_WRAPPED, sizeof(ret->wrapped));
}

/* A new key is all that changes: the disk stays where it is, in sectors of the same size. */
static bool params_match(const unsigned char *a, const unsigned char *b)
{
    const size_t behind = NATIVE_PARAMS_SALT + 32;

    return memcmp(a, b, NATIVE_PARAMS_SALT) == 0 &&
           memcmp(a + behind, b + behind, NATIVE_PARAMS - behind) == 0;
}

/* Written so that no sum can overflow. */
static bool record_sane(const struct native_record *r, const struct native_header *h)
{
    return r->seq != 0 && r->seq != UINT64_MAX && r->done <= h->capacity &&
           r->done % h->unit == 0 && r->zone % h->unit == 0 && r->zone <= NATIVE_ZONE_MAX &&
           r->zone <= h->capacity - r->done;
}

int native_record_decode(struct native_record *ret, const unsigned char block[NATIVE_BLOCK],
                         const struct native_header *h, const unsigned char params[NATIVE_PARAMS],
                         const struct secret *keys)
{
    unsigned char mac[32];
    int r = record_mac(mac, block, keys);

    if (r < 0)
        return r;
    if (memcmp(block + AT_MAGIC, record_magic, sizeof(record_magic)) != 0 ||
        !secret_equal(mac, block + AT_MAC, sizeof(mac)))
        return -EBADMSG;
    native_record_parse(ret, block);
    return record_sane(ret, h) && params_match(ret->old_params, params) ? 0 : -EBADMSG;
}

/* AES-256-CTR with IV 0. */
int native_record_wrap(unsigned char out[32], const unsigned char in[32], const struct secret *keys)
{
    static const unsigned char iv[16];
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    int n = 0, ok;

    ok =
        ctx != NULL &&
        EVP_EncryptInit_ex2(ctx, EVP_aes_256_ctr(), keys->bytes + NATIVE_WRAP_KEY, iv, NULL) == 1 &&
        EVP_EncryptUpdate(ctx, out, &n, in, 32) == 1 && n == 32;
    EVP_CIPHER_CTX_free(ctx); /* cleanses */
    return ok ? 0 : -EIO;
}

/* BLAKE2b because its salt takes the place of the piece into the hash at no cost: the digest of one
 * place says nothing about another. */
void native_record_digest(unsigned char *out, const unsigned char *ciphertext, size_t len,
                          uint64_t off, const struct secret *keys)
{
    static const unsigned char person[crypto_generichash_blake2b_PERSONALBYTES] = "hushvol digest";
    unsigned char salt[crypto_generichash_blake2b_SALTBYTES] = {0};

    for (size_t at = 0; at < len; at += KEY_PIECE, out += KEY_DIGEST) {
        bytes_put_le64(salt, off + at);
        crypto_generichash_blake2b_salt_personal(out, KEY_DIGEST, ciphertext + at, KEY_PIECE,
                                                 keys->bytes + NATIVE_DIGEST_KEY, 32, salt, person);
    }
}
