/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/meta.h"

/* docs/geli-format.md 1 to 3, 9. The MD5 over a block is a checksum against accidents, nothing
 * more: whoever can write the container can set any field, so each is checked for what it could
 * mean to those who use it. */

#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <strings.h>

#define MD5_LEN 16

enum {
    AT_MAGIC = 0,
    AT_VERSION = 16,
    AT_FLAGS = 20,
    AT_EALGO = 24,
    AT_KEYLEN = 26,
    AT_AALGO = 28, /* from version 1 on; what follows lies two bytes lower in version 0 */
    AT_PROVSIZE = 30,
    AT_SECTORSIZE = 38,
    AT_KEYS = 42,
    AT_ITERATIONS = 43,
    AT_SALT = 47,
    AT_SLOTS = 111,
    AT_MD5 = 495,
};

static const char magic[16] = "GEOM::ELI";

/* clang-format off */
const struct geli_cipher geli_ciphers[] = {
    /*                       ours              EVP         bits: usual, min, max, step; version */
    {22, "aes-xts",      "aes", "xts",      "AES",          128, 128, 256, 128, 5, false},
    {11, "aes-cbc",      "aes", "cbc",      "AES",          128, 128, 256,  64, 0, false},
    {21, "camellia-cbc", "camellia", "cbc", "CAMELLIA",     128, 128, 256,  64, 4, false},
    { 2, "3des-cbc",     "3des", "cbc",     "DES-EDE3-CBC", 192, 192, 192,   1, 0, false},
    { 3, "blowfish-cbc", "blowfish", "cbc", "BF-CBC",       128, 128, 448,  32, 0, true},
    {16, "null",         "null", NULL,      NULL,           512,   1, 512,   1, 0, false},
    {0, NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0, false},
};
/* clang-format on */

const struct geli_hash geli_hashes[] = {
    {6, "hmac-md5", 16},
    {7, "hmac-sha1", 20},
    {8, "hmac-ripemd160", 20},
    {18, "hmac-sha256", 32},
    {19, "hmac-sha384", 48},
    {20, "hmac-sha512", 64},
    {0},
};

const struct geli_cipher *geli_cipher_numbered(unsigned number)
{
    for (const struct geli_cipher *c = geli_ciphers; c->name != NULL; c++)
        if (c->number == number)
            return c;
    return NULL;
}

const struct geli_cipher *geli_cipher_named(const char *name)
{
    static const char *const others[][2] = {{"aes", "aes-xts"},
                                            {"camellia", "camellia-cbc"},
                                            {"blowfish", "blowfish-cbc"},
                                            {"3des", "3des-cbc"},
                                            {"null-cbc", "null"}};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        if (strcasecmp(name, others[i][0]) == 0)
            name = others[i][1];
    for (const struct geli_cipher *c = geli_ciphers; c->name != NULL; c++)
        if (strcasecmp(c->name, name) == 0)
            return c;
    return NULL;
}

void geli_cipher_ours(char name[GELI_CIPHER_NAME], const struct geli_cipher *c, unsigned bits)
{
    if (c->mode == NULL)
        snprintf(name, GELI_CIPHER_NAME, "%s", c->family);
    else
        snprintf(name, GELI_CIPHER_NAME, "%s-%u-%s", c->family, bits, c->mode);
}

const struct geli_cipher *geli_cipher_of_ours(const char *name, uint32_t *bits)
{
    for (const struct geli_cipher *c = geli_ciphers; c->name != NULL; c++)
        for (unsigned n = c->bits_min; c->mode != NULL && n <= c->bits_max; n += c->bits_step) {
            char ours[GELI_CIPHER_NAME];

            geli_cipher_ours(ours, c, n);
            if (strcmp(ours, name) == 0) {
                *bits = n;
                return c;
            }
        }
    return NULL;
}

/* The slots of XTS volumes are under CBC. */
void geli_cipher_evp(char name[GELI_CIPHER_NAME], const struct geli_cipher *c, unsigned bits)
{
    if (strchr(c->evp, '-') != NULL)
        snprintf(name, GELI_CIPHER_NAME, "%s", c->evp);
    else
        snprintf(name, GELI_CIPHER_NAME, "%s-%u-CBC", c->evp, bits);
}

bool geli_cipher_takes(const struct geli_cipher *c, unsigned bits)
{
    return bits >= c->bits_min && bits <= c->bits_max && (bits - c->bits_min) % c->bits_step == 0;
}

const struct geli_hash *geli_hash_numbered(unsigned number)
{
    for (const struct geli_hash *h = geli_hashes; h->name != NULL; h++)
        if (h->number == number)
            return h;
    return NULL;
}

const struct geli_hash *geli_hash_named(const char *name)
{
    static const char head[] = "hmac";
    const size_t len = sizeof(head) - 1;

    if (strncasecmp(name, head, len) != 0 || (name[len] != '/' && name[len] != '-'))
        return NULL;
    for (const struct geli_hash *h = geli_hashes; h->name != NULL; h++)
        if (strcasecmp(name + len + 1, h->name + len + 1) == 0)
            return h;
    return NULL;
}

bool geli_meta_begins(const void *bytes)
{
    return memcmp(bytes, magic, strlen(magic) + 1) == 0;
}

/* How much lower the fields behind AT_AALGO lie. */
static size_t shift_of(uint32_t version)
{
    return version == 0 ? AT_PROVSIZE - AT_AALGO : 0;
}

bool geli_meta_parse(struct geli_meta *ret, const unsigned char block[GELI_BLOCK])
{
    const unsigned char *low;

    *ret = (struct geli_meta){.version = bytes_get_le32(block + AT_VERSION)};
    if (ret->version > GELI_VERSION_MAX)
        return false;
    low = block - shift_of(ret->version);
    ret->flags = bytes_get_le32(block + AT_FLAGS);
    ret->ealgo = bytes_get_le16(block + AT_EALGO);
    ret->keylen = bytes_get_le16(block + AT_KEYLEN);
    ret->aalgo = ret->version == 0 ? 0 : bytes_get_le16(block + AT_AALGO);
    ret->provsize = bytes_get_le64(low + AT_PROVSIZE);
    ret->sectorsize = bytes_get_le32(low + AT_SECTORSIZE);
    ret->keys = low[AT_KEYS] & ((1u << GELI_SLOTS) - 1);
    ret->iterations = (int32_t)bytes_get_le32(low + AT_ITERATIONS);
    memcpy(ret->salt, low + AT_SALT, sizeof(ret->salt));
    memcpy(ret->slot, low + AT_SLOTS, sizeof(ret->slot));
    return true;
}

static int md5(unsigned char out[MD5_LEN], const unsigned char *block, size_t len)
{
    return EVP_Digest(block, len, out, NULL, EVP_md5(), NULL) == 1 ? 0 : -EIO;
}

/* Flags that exist only in the memory of a running kernel would choose other keys there; no tool
 * writes them. */
static int check_flags(const struct geli_meta *m, struct report *rep)
{
    if (m->flags & ~0xffffu || m->flags & GELI_ONETIME)
        return report_error(rep, EBADMSG,
                            "the metadata is damaged or forged: its flags 0x%" PRIx32
                            " are never stored",
                            m->flags);
    if (m->flags & ~(uint32_t)GELI_FLAGS)
        return report_error(rep, EOPNOTSUPP,
                            "the metadata has flags that this version does not know: 0x%" PRIx32,
                            m->flags);
    return 0;
}

static int check_algorithms(const struct geli_meta *m, struct report *rep)
{
    const struct geli_cipher *c = geli_cipher_numbered(m->ealgo);

    if (c == NULL)
        return report_error(rep, EOPNOTSUPP, "the metadata asks for an unknown cipher (%u)",
                            m->ealgo);
    if (!geli_cipher_takes(c, m->keylen))
        return report_error(rep, EBADMSG, "the metadata asks for %s with a key of %u bits", c->name,
                            m->keylen);
    if (!(m->flags & GELI_AUTH))
        return 0;
    if (m->version == 0)
        return report_error(rep, EBADMSG,
                            "the metadata asks for authentication, which version 0 has not");
    if (geli_hash_numbered(m->aalgo) == NULL)
        return report_error(rep, EOPNOTSUPP, "the metadata asks for an unknown authentication (%u)",
                            m->aalgo);
    return 0;
}

static int check_numbers(const struct geli_meta *m, struct report *rep)
{
    if (!bytes_is_power_of_two(m->sectorsize) || m->sectorsize < GELI_SECTOR_MIN)
        return report_error(rep, EBADMSG, "the metadata claims sectors of %" PRIu32 " bytes",
                            m->sectorsize);
    if (m->sectorsize > GELI_SECTOR_MAX)
        return report_error(rep, EOPNOTSUPP,
                            "sectors of %" PRIu32 " bytes are more than this version supports (%d)",
                            m->sectorsize, GELI_SECTOR_MAX);
    if (m->iterations < GELI_NO_PASSPHRASE)
        return report_error(rep, EBADMSG, "the metadata claims %" PRId32 " iterations",
                            m->iterations);
    if (m->provsize > INT64_MAX)
        return report_error(rep, EBADMSG, "the metadata claims a container of %" PRIu64 " bytes",
                            m->provsize);
    return 0;
}

int geli_meta_decode(struct geli_meta *ret, const unsigned char block[GELI_BLOCK],
                     struct report *rep)
{
    unsigned char sum[MD5_LEN];
    struct geli_meta m;
    size_t len;
    int r;

    if (!geli_meta_begins(block))
        return report_error(rep, EBADMSG, "there is no GELI metadata");
    if (!geli_meta_parse(&m, block))
        return report_error(rep, EOPNOTSUPP,
                            "the metadata is of version %" PRIu32
                            ", and this program knows 0 to %d",
                            m.version, GELI_VERSION_MAX);
    len = AT_MD5 - shift_of(m.version);
    r = md5(sum, block, len);
    if (r < 0)
        return report_error(rep, -r, "the library cannot compute MD5, the checksum of metadata");
    if (memcmp(sum, block + len, MD5_LEN) != 0)
        return report_error(rep, EBADMSG, "the metadata is damaged: its checksum is wrong");
    r = check_flags(&m, rep);
    if (r == 0)
        r = check_algorithms(&m, rep);
    if (r == 0)
        r = check_numbers(&m, rep);
    if (r < 0)
        return r;
    *ret = m;
    return 0;
}

int geli_meta_encode(unsigned char block[GELI_BLOCK], const struct geli_meta *m)
{
    unsigned char *low = block - shift_of(m->version);
    size_t len = AT_MD5 - shift_of(m->version);

    memset(block, 0, GELI_BLOCK);
    memcpy(block + AT_MAGIC, magic, sizeof(magic));
    bytes_put_le32(block + AT_VERSION, m->version);
    bytes_put_le32(block + AT_FLAGS, m->flags);
    bytes_put_le16(block + AT_EALGO, m->ealgo);
    bytes_put_le16(block + AT_KEYLEN, m->keylen);
    if (m->version != 0)
        bytes_put_le16(block + AT_AALGO, m->aalgo);
    bytes_put_le64(low + AT_PROVSIZE, m->provsize);
    bytes_put_le32(low + AT_SECTORSIZE, m->sectorsize);
    low[AT_KEYS] = m->keys;
    bytes_put_le32(low + AT_ITERATIONS, (uint32_t)m->iterations);
    memcpy(low + AT_SALT, m->salt, sizeof(m->salt));
    memcpy(low + AT_SLOTS, m->slot, sizeof(m->slot));
    return md5(block + len, block, len);
}

/* Bytes of the provider that one sector of the disk takes. */
static uint64_t stored_sector(const struct geli_meta *m, uint32_t sector)
{
    const struct geli_hash *h = geli_hash_numbered(m->aalgo);
    uint32_t room;

    if (!(m->flags & GELI_AUTH) || h == NULL)
        return m->sectorsize;
    room = (sector - h->len) & ~15u;
    return (uint64_t)((m->sectorsize + room - 1) / room) * sector;
}

uint64_t geli_meta_disk(const struct geli_meta *m, uint32_t sector)
{
    if (m->provsize < sector)
        return 0;
    return (m->provsize - sector) / stored_sector(m, sector) * m->sectorsize;
}

uint64_t geli_meta_provider(const struct geli_meta *m, uint64_t size, uint32_t sector)
{
    return size / m->sectorsize * stored_sector(m, sector) + sector;
}
