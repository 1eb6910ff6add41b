/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/whole.h"

/* docs/geli-format.md 10: a new container is as geli(8) would make it. The data stays as it is, but
 * for its first mebibyte: a header of another format there would be found before the metadata. */

#include "base/bytes.h"
#include "keystore/geli/change.h"

#include <errno.h>
#include <inttypes.h>

#define HEAD (1u << 20) /* bytes */

/* What a request comes to, but for what is made by chance. The request was checked. */
static struct geli_meta new_meta(const struct key_create *req)
{
    const struct geli_cipher *c = geli_cipher_named(req->cipher);
    const struct geli_hash *h = req->integrity != NULL ? geli_hash_named(req->integrity) : NULL;
    struct geli_meta m = {
        .version = req->version != NULL ? (uint32_t)(req->version[0] - '0') : GELI_VERSION_MAX,
        .flags = GELI_AUTORESIZE | (h != NULL ? GELI_AUTH : 0),
        .ealgo = c->number,
        .keylen = req->key_bits != 0 ? (uint16_t)req->key_bits : c->bits_default,
        .aalgo = h != NULL ? h->number : 0,
        .sectorsize = req->sector_size,
        .keys = 1,
    };

    if (req->flags != NULL)
        geli_flag_words(&m.flags, req->flags, NULL);
    return m;
}

static int check_version(const struct key_create *req, const struct geli_cipher *c,
                         struct report *rep)
{
    unsigned version = GELI_VERSION_MAX;

    if (req->version != NULL) {
        if (req->version[0] < '0' || req->version[0] > '0' + GELI_VERSION_MAX ||
            req->version[1] != '\0')
            return report_error(rep, EINVAL, "GELI has no version \"%s\" (0 to %d)", req->version,
                                GELI_VERSION_MAX);
        version = (unsigned)(req->version[0] - '0');
    }
    if (version < c->version_min)
        return report_error(rep, EINVAL, "%s needs version %" PRIu32 " or later", c->name,
                            c->version_min);
    if (version == 0 && req->integrity != NULL)
        return report_error(rep, EINVAL, "authentication needs version 1 or later");
    return 0;
}

static int check_algorithms(const struct key_create *req, struct report *rep)
{
    const struct geli_cipher *c = geli_cipher_named(req->cipher);

    if (c == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "GELI has no cipher \"%s\" (aes-xts, aes-cbc, camellia-cbc, 3des-cbc, "
                            "blowfish-cbc, null)",
                            req->cipher);
    if (req->key_bits != 0 && (req->key_bits > UINT16_MAX || !geli_cipher_takes(c, req->key_bits)))
        return report_error(rep, EINVAL, "%s takes no key of %" PRIu32 " bits (%u to %u%s)",
                            c->name, req->key_bits, c->bits_min, c->bits_max,
                            c->bits_step == 64    ? " in steps of 64"
                            : c->bits_step == 32  ? " in steps of 32"
                            : c->bits_step == 128 ? ", and nothing between"
                                                  : "");
    if (req->integrity != NULL && geli_hash_named(req->integrity) == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "GELI has no integrity \"%s\" (hmac-md5, hmac-sha1, hmac-ripemd160, "
                            "hmac-sha256, hmac-sha384, hmac-sha512)",
                            req->integrity);
    return check_version(req, c, rep);
}

static int check_sectors(const struct key_create *req, struct report *rep)
{
    if (!bytes_is_power_of_two(req->medium_sector) || req->medium_sector < GELI_SECTOR_MIN ||
        req->medium_sector > GELI_SECTOR_MAX)
        return report_error(rep, EINVAL, "a provider has no sectors of %" PRIu32 " bytes",
                            req->medium_sector);
    if (!bytes_is_power_of_two(req->sector_size) || req->sector_size < req->medium_sector ||
        req->sector_size > GELI_SECTOR_MAX)
        return report_error(
            rep, EINVAL,
            "sectors of %" PRIu32 " bytes are not possible here (%" PRIu32 ", %" PRIu32 ", ... %d)",
            req->sector_size, req->medium_sector, 2 * req->medium_sector, GELI_SECTOR_MAX);
    return 0;
}

/* "aes-256-xts" is as good as "aes-xts" and 256. */
static void take_our_name(struct key_create *req)
{
    uint32_t bits = req->key_bits;
    const struct geli_cipher *c = geli_cipher_of_ours(req->cipher, &bits);

    if (c == NULL || (req->key_bits != 0 && req->key_bits != bits))
        return;
    req->cipher = c->name;
    req->key_bits = bits;
}

int geli_prepare(struct key_create *req, struct report *rep)
{
    uint32_t flags = 0;
    int r;

    if (req->cipher == NULL)
        req->cipher = geli_ciphers[0].name;
    take_our_name(req);
    if (req->medium_sector == 0)
        req->medium_sector = GELI_SECTOR_MIN;
    r = check_algorithms(req, rep);
    if (r == 0)
        r = check_sectors(req, rep);
    if (r == 0 && req->label != NULL && req->label[0] != '\0')
        r = report_error(rep, EOPNOTSUPP, "GELI containers have no label");
    if (r == 0 && req->discard)
        report_info(rep, "space that was taken is not given back in the geli format");
    req->discard = false;
    if (r == 0 && req->flags != NULL)
        r = geli_flag_words(&flags, req->flags, rep);
    if (r == 0)
        r = geli_check_kdf(&req->kdf, rep);
    if (r == 0)
        geli_cipher_ours(req->data_cipher, geli_cipher_named(req->cipher), new_meta(req).keylen);
    return r;
}

uint64_t geli_container_size(const struct key_create *req)
{
    const struct geli_meta m = new_meta(req);

    return geli_meta_provider(&m, req->size, req->medium_sector);
}

uint64_t geli_disk_size(const struct key_create *req, uint64_t container)
{
    struct geli_meta m = new_meta(req);

    m.provsize = bytes_round_down(container, req->medium_sector);
    return geli_meta_disk(&m, req->medium_sector);
}

int geli_check_create(const struct key_create *req, struct report *rep)
{
    /* authenticated sectors take less than four times their size, a tag of 64 in 512 bytes */
    if (req->size == 0 || req->size % req->sector_size != 0 || req->size > INT64_MAX / 4)
        return report_error(rep, EINVAL,
                            "a disk of %" PRIu64 " bytes is not possible with sectors of %" PRIu32,
                            req->size, req->sector_size);
    return 0;
}

/* The last sector of data has to be metadata, or nothing that looks like it. */
static int clear_places(struct blk *header, struct blk *data, uint32_t sector, struct report *rep)
{
    uint64_t len = data->size < HEAD ? data->size : HEAD;
    int r = blk_write_zeroes(data, len, 0);

    if (r == 0)
        r = blk_flush(data);
    if (r < 0)
        return report_errno(rep, -r, "cannot clear the beginning of the container");
    return header->size == data->size
               ? 0
               : geli_wipe(data, sector, geli_place(data, sector), 0, true, rep);
}

static int seal_first(struct geli_meta *m, const struct credential *cred, struct report *rep)
{
    AUTO_SECRET struct secret user_key = {0}, master = {0};
    int r = secret_make(&master, GELI_MASTER);

    if (r < 0)
        return report_errno(rep, -r, "cannot make a key");
    secret_random(m->salt, sizeof(m->salt));
    secret_random(m->slot, sizeof(m->slot));
    secret_random(master.bytes, master.len);
    r = geli_user_key(&user_key, m, cred, rep);
    return r < 0 ? r : geli_slot_wrap(m->slot[0], m, &user_key, &master, rep);
}

int geli_create(struct blk *header, struct blk *data, const struct key_create *req,
                const struct credential *cred, struct report *rep)
{
    struct geli_meta m = new_meta(req);
    uint32_t sector = req->medium_sector;
    int r = geli_check_create(req, rep);

    m.provsize = data->size;
    if (r == 0 && (data->size % sector != 0 || header->size < sector))
        r = report_error(rep, EINVAL, "the container is not a whole number of sectors of %" PRIu32,
                         sector);
    if (r == 0 && geli_meta_disk(&m, sector) < req->size)
        r = report_error(rep, EINVAL, "%" PRIu64 " bytes are too few for the container",
                         data->size);
    if (r == 0)
        r = geli_check_new(cred, rep);
    if (r == 0)
        r = geli_iterations(&m.iterations, cred, &req->kdf, rep);
    if (r == 0)
        r = seal_first(&m, cred, rep);
    if (r == 0)
        r = clear_places(header, data, sector, rep);
    return r < 0 ? r : geli_write(header, &m, sector, geli_place(header, sector), rep);
}
