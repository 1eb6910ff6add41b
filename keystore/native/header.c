/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/header.h"

/* Pure bytes and struct, so that a fuzzer can sit right on it. The stored parameter block is hashed
 * as it is, reserved bytes included: what a later version puts there binds its keys without this
 * version having to know. For the same reason encode leaves bytes alone that no field owns. */

#include "base/bytes.h"
#include "base/hkdf.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <string.h>

enum {
    AT_MAGIC = 0x000,
    AT_MAJOR = 0x008,
    AT_MINOR = 0x00a,
    AT_SIZE = 0x00c,
    AT_SEQ = 0x010,
    AT_UUID = 0x018,
    AT_INCOMPAT = 0x028,
    AT_RO_COMPAT = 0x02c,
    AT_COMPAT = 0x030,
    AT_PARAMS = 0x038,
    AT_FLAGS = 0x0b8,
    AT_CAPACITY = 0x0c0,
    AT_LABEL = 0x0c8,
    AT_SLOT_SEQ = 0x1b8,
    AT_MAC = 0x1c0,
    AT_SHA256 = 0x1e0,

    IN_MODE = 0x00,
    IN_CIPHER = 0x01,
    IN_KDF = 0x02,
    IN_NODEMAC = 0x03,
    IN_UNIT = 0x04,
    IN_LOGICAL_BLOCK = 0x08,
    IN_CHUNK_SHIFT = 0x0c,
    IN_DATA_OFFSET = 0x10,
    IN_LOG_OFFSET = 0x18,
    IN_LOG_BLOCKS = 0x20,
    IN_SALT = NATIVE_PARAMS_SALT,
};

#define UNIT_MIN 512
#define UNIT_MAX 65536
#define FIRST_DATA (NATIVE_COPY_STEP + NATIVE_BLOCK) /* behind the second copy */
#define DATA_ALIGN 4096
#define INCOMPAT_KNOWN NATIVE_INCOMPAT_REENCRYPT

const char native_magic[8] = "HUSHVOL"; /* the terminator is the eighth byte */

static const char *const cipher_names[] = {"null", "aes-256-xts", "aes-128-xts"};
#define N_CIPHERS (sizeof(cipher_names) / sizeof(cipher_names[0]))

const char *native_cipher_name(unsigned number)
{
    return number < N_CIPHERS ? cipher_names[number] : NULL;
}

int native_cipher_number(const char *name)
{
    for (unsigned i = 0; i < N_CIPHERS; i++)
        if (strcmp(cipher_names[i], name) == 0)
            return (int)i;
    return -1;
}

static int sha256(unsigned char out[32], const void *p, size_t len)
{
    return EVP_Q_digest(NULL, "SHA256", NULL, p, len, out, NULL) == 1 ? 0 : -EIO;
}

/* The checksum covers the block with its own field zero. */
static int block_sum(unsigned char out[32], const unsigned char block[NATIVE_BLOCK])
{
    unsigned char copy[NATIVE_BLOCK];

    memcpy(copy, block, sizeof(copy));
    memset(copy + AT_SHA256, 0, 32);
    return sha256(out, copy, sizeof(copy));
}

static int check_sum(const unsigned char *block, struct report *rep)
{
    unsigned char sum[32];
    int r = block_sum(sum, block);

    if (r < 0)
        return report_error(rep, -r, "the cryptographic library has no SHA-256");
    if (memcmp(sum, block + AT_SHA256, sizeof(sum)) != 0)
        return report_error(rep, EBADMSG, "the header is damaged: its checksum does not fit");
    return 0;
}

static void decode_params(struct native_header *h, const unsigned char *p)
{
    h->mode = p[IN_MODE];
    h->cipher = p[IN_CIPHER];
    h->kdf = p[IN_KDF];
    h->nodemac = p[IN_NODEMAC];
    h->unit = bytes_get_le32(p + IN_UNIT);
    h->logical_block = bytes_get_le32(p + IN_LOGICAL_BLOCK);
    h->chunk_shift = bytes_get_le32(p + IN_CHUNK_SHIFT);
    h->data_offset = bytes_get_le64(p + IN_DATA_OFFSET);
    h->log_offset = bytes_get_le64(p + IN_LOG_OFFSET);
    h->log_blocks = bytes_get_le64(p + IN_LOG_BLOCKS);
    memcpy(h->salt, p + IN_SALT, sizeof(h->salt));
}

int native_header_set_params(struct native_header *h, const unsigned char params[NATIVE_PARAMS])
{
    decode_params(h, params);
    return sha256(h->params_sha256, params, NATIVE_PARAMS);
}

static void decode_fields(struct native_header *h, const unsigned char *block)
{
    h->major = bytes_get_le16(block + AT_MAJOR);
    h->minor = bytes_get_le16(block + AT_MINOR);
    h->seq = bytes_get_le64(block + AT_SEQ);
    h->slot_seq = bytes_get_le64(block + AT_SLOT_SEQ);
    memcpy(h->uuid, block + AT_UUID, sizeof(h->uuid));
    h->incompat = bytes_get_le32(block + AT_INCOMPAT);
    h->ro_compat = bytes_get_le32(block + AT_RO_COMPAT);
    h->compat = bytes_get_le32(block + AT_COMPAT);
    decode_params(h, block + AT_PARAMS);
    h->flags = bytes_get_le32(block + AT_FLAGS);
    h->capacity = bytes_get_le64(block + AT_CAPACITY);
    memcpy(h->label, block + AT_LABEL, KEY_LABEL_MAX);
    h->label[KEY_LABEL_MAX] = '\0';
}

int native_header_parse(struct native_header *ret, const unsigned char block[NATIVE_BLOCK])
{
    decode_fields(ret, block);
    return sha256(ret->params_sha256, block + AT_PARAMS, NATIVE_PARAMS);
}

/* What a later version may have changed, so it is no damage. */
static int check_known(const struct native_header *h, struct report *rep)
{
    if (h->major != NATIVE_MAJOR)
        return report_error(rep, EOPNOTSUPP,
                            "the container has format version %u.%u, this program knows version %u",
                            h->major, h->minor, NATIVE_MAJOR);
    if (h->incompat & ~INCOMPAT_KNOWN)
        return report_error(rep, EOPNOTSUPP,
                            "the container uses features 0x%" PRIx32
                            " that are not supported by this version",
                            h->incompat);
    if (h->mode == NATIVE_MODE_AUTH)
        return report_error(rep, EOPNOTSUPP,
                            "the container is authenticated: not supported by this version");
    if (h->mode != NATIVE_MODE_PLAIN || native_cipher_name(h->cipher) == NULL ||
        h->kdf != NATIVE_KDF_HKDF || h->nodemac != 0)
        return report_error(rep, EOPNOTSUPP,
                            "mode %u with cipher %u, kdf %u, nodemac %u is not supported by this "
                            "version",
                            h->mode, h->cipher, h->kdf, h->nodemac);
    return 0;
}

static int check_sizes(const struct native_header *h, struct report *rep)
{
    if (h->unit < UNIT_MIN || h->unit > UNIT_MAX || !bytes_is_power_of_two(h->unit))
        return report_error(rep, EBADMSG, "the header claims sectors of %" PRIu32 " bytes",
                            h->unit);
    if (h->logical_block < UNIT_MIN || h->logical_block > UNIT_MAX ||
        !bytes_is_power_of_two(h->logical_block))
        return report_error(rep, EBADMSG, "the header claims logical blocks of %" PRIu32 " bytes",
                            h->logical_block);
    if (h->chunk_shift > 63 || UINT64_C(1) << h->chunk_shift < h->unit)
        return report_error(rep, EBADMSG, "the header claims key chunks of 2^%" PRIu32 " bytes",
                            h->chunk_shift);
    return 0;
}

/* Written so that no sum can overflow. */
static int check_areas(const struct native_header *h, struct report *rep)
{
    if (h->data_offset < FIRST_DATA || h->data_offset % DATA_ALIGN != 0 ||
        h->data_offset > INT64_MAX)
        return report_error(rep, EBADMSG, "the header claims data at byte %" PRIu64,
                            h->data_offset);
    if (h->log_offset != 0 || h->log_blocks != 0)
        return report_error(rep, EBADMSG, "the header claims a log in a container without one");
    if (h->capacity == 0 || h->capacity % h->unit != 0 || h->capacity > INT64_MAX - h->data_offset)
        return report_error(rep, EBADMSG, "the header claims a disk of %" PRIu64 " bytes",
                            h->capacity);
    if (h->seq == UINT64_MAX || h->slot_seq == UINT64_MAX)
        return report_error(rep, EBADMSG, "the header claims an impossible sequence number");
    return 0;
}

int native_header_decode(struct native_header *ret, const unsigned char block[NATIVE_BLOCK],
                         struct report *rep)
{
    int r = check_sum(block, rep);

    if (r < 0)
        return r;
    if (memcmp(block + AT_MAGIC, native_magic, sizeof(native_magic)) != 0)
        return report_error(rep, EBADMSG, "the header does not begin as one of ours");
    r = native_header_parse(ret, block);
    if (r == 0)
        r = check_known(ret, rep);
    if (r < 0)
        return r;
    if (bytes_get_le32(block + AT_SIZE) != NATIVE_BLOCK)
        return report_error(rep, EBADMSG, "the header claims to be %" PRIu32 " bytes long",
                            bytes_get_le32(block + AT_SIZE));
    r = check_sizes(ret, rep);
    return r < 0 ? r : check_areas(ret, rep);
}

static void encode_params(unsigned char *p, const struct native_header *h)
{
    p[IN_MODE] = h->mode;
    p[IN_CIPHER] = h->cipher;
    p[IN_KDF] = h->kdf;
    p[IN_NODEMAC] = h->nodemac;
    bytes_put_le32(p + IN_UNIT, h->unit);
    bytes_put_le32(p + IN_LOGICAL_BLOCK, h->logical_block);
    bytes_put_le32(p + IN_CHUNK_SHIFT, h->chunk_shift);
    bytes_put_le64(p + IN_DATA_OFFSET, h->data_offset);
    bytes_put_le64(p + IN_LOG_OFFSET, h->log_offset);
    bytes_put_le64(p + IN_LOG_BLOCKS, h->log_blocks);
    memcpy(p + IN_SALT, h->salt, sizeof(h->salt));
}

int native_header_encode(unsigned char block[NATIVE_BLOCK], struct native_header *h)
{
    memcpy(block + AT_MAGIC, native_magic, sizeof(native_magic));
    bytes_put_le16(block + AT_MAJOR, h->major);
    bytes_put_le16(block + AT_MINOR, h->minor);
    bytes_put_le32(block + AT_SIZE, NATIVE_BLOCK);
    bytes_put_le64(block + AT_SEQ, h->seq);
    bytes_put_le64(block + AT_SLOT_SEQ, h->slot_seq);
    memcpy(block + AT_UUID, h->uuid, sizeof(h->uuid));
    bytes_put_le32(block + AT_INCOMPAT, h->incompat);
    bytes_put_le32(block + AT_RO_COMPAT, h->ro_compat);
    bytes_put_le32(block + AT_COMPAT, h->compat);
    encode_params(block + AT_PARAMS, h);
    bytes_put_le32(block + AT_FLAGS, h->flags);
    bytes_put_le64(block + AT_CAPACITY, h->capacity);
    memcpy(block + AT_LABEL, h->label, KEY_LABEL_MAX);
    return sha256(h->params_sha256, block + AT_PARAMS, NATIVE_PARAMS);
}

int native_header_prk(struct secret *prk, const struct native_header *h,
                      const struct secret *master)
{
    int r = secret_make(prk, HKDF_PRK);

    return r < 0 ? r
                 : hkdf_extract(prk->bytes, h->salt, sizeof(h->salt), master->bytes, master->len);
}

/* HMAC-SHA256(K_hdr, everything before slot_seq) */
static int header_mac(unsigned char mac[32], const unsigned char *block,
                      const struct native_header *h, const struct secret *prk)
{
    static const char head[] = "hushvol v1 hdr";
    unsigned char info[sizeof(head) - 1 + sizeof(h->params_sha256)];
    AUTO_SECRET struct secret key = {0};
    int r = secret_make(&key, 32);

    if (r < 0)
        return r;
    memcpy(info, head, sizeof(head) - 1);
    memcpy(info + sizeof(head) - 1, h->params_sha256, sizeof(h->params_sha256));
    r = hkdf_expand(key.bytes, key.len, prk->bytes, info, sizeof(info));
    if (r < 0)
        return r;
    return EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key.bytes, key.len, block, AT_SLOT_SEQ,
                     mac, 32, NULL)
               ? 0
               : -EIO;
}

int native_header_sum(unsigned char block[NATIVE_BLOCK])
{
    return block_sum(block + AT_SHA256, block);
}

void native_header_touch(unsigned char block[NATIVE_BLOCK])
{
    uint64_t slot_seq = bytes_get_le64(block + AT_SLOT_SEQ);

    if (slot_seq < UINT64_MAX - 1)
        bytes_put_le64(block + AT_SLOT_SEQ, slot_seq + 1);
}

int native_header_seal(unsigned char block[NATIVE_BLOCK], const struct native_header *h,
                       const struct secret *prk)
{
    int r = header_mac(block + AT_MAC, block, h, prk);

    return r < 0 ? r : native_header_sum(block);
}

int native_header_verify(const unsigned char block[NATIVE_BLOCK], const struct native_header *h,
                         const struct secret *prk)
{
    unsigned char mac[32];
    int r = header_mac(mac, block, h, prk);

    if (r < 0)
        return r;
    return secret_equal(mac, block + AT_MAC, sizeof(mac)) ? 0 : -EBADMSG;
}
