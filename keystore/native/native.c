/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/native.h"

/* What the format offers to the rest, put together from the copies on the medium (store), the
 * unlock (unlock), the changes of slots (change) and the bytes (header, slot). */

#include "base/bytes.h"
#include "keystore/native/backup.h"
#include "keystore/native/change.h"
#include "keystore/native/header.h"
#include "keystore/native/reencrypt.h"
#include "keystore/native/slot.h"
#include "keystore/native/store.h"
#include "keystore/native/unlock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int native_recognise(struct blk *b)
{
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    size_t len = b->granule > sizeof(native_magic) ? b->granule : sizeof(native_magic);
    int error = 0;

    for (unsigned i = 0; i < NATIVE_COPIES && len <= sizeof(block); i++) {
        int r;

        if (native_copy_off(i) > b->size || len > b->size - native_copy_off(i))
            break;
        r = blk_read(b, block, len, native_copy_off(i));
        if (r == 0 && memcmp(block, native_magic, sizeof(native_magic)) == 0)
            return 1;
        error = r < 0 ? r : error;
    }
    return error;
}

static uint64_t native_container_size(const struct key_create *req)
{
    return req->size + NATIVE_DATA;
}

static uint64_t native_disk_size(const struct key_create *req, uint64_t container)
{
    return container < NATIVE_DATA ? 0
                                   : bytes_round_down(container - NATIVE_DATA, req->sector_size);
}

/* What belongs to other formats. */
static int native_check_words(const struct key_create *req, struct report *rep)
{
    const char *word = req->key_bits != 0         ? "--key-size (the cipher's name says it)"
                       : req->version != NULL     ? "--geli-version"
                       : req->flags != NULL       ? "--flags"
                       : req->medium_sector > 512 ? "--provider-sector"
                                                  : NULL;

    if (req->integrity != NULL)
        return report_error(rep, EOPNOTSUPP,
                            "a native container has no integrity \"%s\" (there is: none)",
                            req->integrity);
    return word != NULL ? report_error(rep, EOPNOTSUPP, "a native container has no %s", word) : 0;
}

static int native_prepare(struct key_create *req, struct report *rep)
{
    int r = native_check_words(req, rep);

    if (r < 0)
        return r;
    if (req->cipher == NULL)
        req->cipher = native_format.default_cipher;
    if (native_cipher_number(req->cipher) < 0)
        return report_error(
            rep, EOPNOTSUPP,
            "a native container cannot use cipher \"%s\" (aes-256-xts, aes-128-xts)", req->cipher);
    snprintf(req->data_cipher, sizeof(req->data_cipher), "%s", req->cipher);
    return kdf_request_check(&req->kdf, rep);
}

static int native_check_create(const struct key_create *req, struct report *rep)
{
    if (req->sector_size < 512 || req->sector_size > 65536 ||
        !bytes_is_power_of_two(req->sector_size))
        return report_error(rep, EINVAL,
                            "sectors of %" PRIu32 " bytes are not possible (512, 1024, ... 65536)",
                            req->sector_size);
    if (req->size == 0 || req->size % req->sector_size != 0 || req->size > INT64_MAX - NATIVE_DATA)
        return report_error(rep, EINVAL,
                            "a disk of %" PRIu64 " bytes is not possible with sectors of %" PRIu32,
                            req->size, req->sector_size);
    if (req->label != NULL && strlen(req->label) > KEY_LABEL_MAX)
        return report_error(rep, EINVAL, "a label has at most %u bytes", KEY_LABEL_MAX);
    return 0;
}

static struct native_header native_new_header(const struct key_create *req)
{
    struct native_header h = {
        .major = NATIVE_MAJOR,
        .minor = NATIVE_MINOR,
        .seq = 1,
        .slot_seq = 1,
        .mode = NATIVE_MODE_PLAIN,
        .cipher = (uint8_t)native_cipher_number(req->cipher),
        .kdf = NATIVE_KDF_HKDF,
        .unit = req->sector_size,
        .logical_block = 512,
        .chunk_shift = 32,
        .data_offset = NATIVE_DATA,
        .flags = req->discard ? NATIVE_FLAG_DISCARD : 0,
        .capacity = req->size,
    };

    if (req->label != NULL)
        memcpy(h.label, req->label, strlen(req->label));
    secret_random(h.salt, sizeof(h.salt));
    secret_random(h.uuid, sizeof(h.uuid));
    h.uuid[6] = (unsigned char)((h.uuid[6] & 0x0f) | 0x40); /* RFC 4122: random */
    h.uuid[8] = (unsigned char)((h.uuid[8] & 0x3f) | 0x80);
    return h;
}

/* What a detached header leaves in its container is zeros: an old header there would open it. */
static int native_clear_place(struct blk *header, struct blk *data, struct report *rep)
{
    int r = 0;

    if (header != data)
        r = blk_write_zeroes(data, NATIVE_DATA, 0);
    if (header != data && r == 0)
        r = blk_flush(data);
    return r < 0 ? report_errno(rep, -r, "cannot clear the beginning of the container") : 0;
}

static int native_create(struct blk *header, struct blk *data, const struct key_create *req,
                         const struct credential *cred, struct report *rep)
{
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN))) = {0};
    struct native_header h;
    struct kdf_cost cost;
    AUTO_SECRET struct secret master = {0}, prk = {0};
    int r = native_check_create(req, rep);

    if (r == 0)
        r = kdf_request_check(&req->kdf, rep);
    if (r == 0 && data->size < native_container_size(req))
        r = report_error(rep, EINVAL, "%" PRIu64 " bytes are too few for the container",
                         data->size);
    if (r == 0 && header->size < NATIVE_DATA)
        r = report_error(rep, EINVAL, "%" PRIu64 " bytes are too few for a header", header->size);
    if (r == 0)
        r = kdf_choose(&cost, &req->kdf, rep);
    if (r == 0)
        r = secret_make(&master, NATIVE_MASTER);
    if (r < 0)
        return r;
    secret_random(master.bytes, master.len);
    h = native_new_header(req);
    r = native_header_encode(block, &h);
    if (r == 0)
        r = native_slot_wrap(native_header_slot(block, 0), 0, &h, &cost, NULL, cred, &master, rep);
    if (r == 0)
        r = native_header_prk(&prk, &h, &master);
    if (r == 0)
        r = native_header_seal(block, &h, &prk);
    if (r == 0)
        r = native_clear_place(header, data, rep);
    return r < 0 ? r : native_store_create(header, block, rep);
}

/* Slots of an unknown kind are named and left out; that there are only such is no empty list. */
static int native_slots(struct key_store *ks, struct key_slot_info *out, unsigned max,
                        struct report *rep)
{
    unsigned n = 0;
    int unknown = 0;

    for (unsigned i = 0; i < NATIVE_SLOTS && n < max; i++) {
        struct native_slot s;
        int r;

        native_slot_decode(&s, native_header_slot(ks->copy[ks->current].block, i));
        r = s.used ? native_slot_check(&s, i, NULL) : -ENOENT;
        if (r == -EOPNOTSUPP) {
            report_warn(rep, "key slot %u is of a kind that this version does not support", i);
            unknown = r;
        }
        if (r < 0)
            continue;
        out[n] = (struct key_slot_info){
            .index = i, .kind = s.type, .cost = s.cost, .created = s.created};
        memcpy(out[n++].label, s.label, sizeof(s.label));
    }
    return n > 0 ? (int)n : unknown;
}

static int check_capacity(const struct native_header *h, uint64_t size, struct report *rep)
{
    if (size == 0 || size % h->unit != 0 || size > INT64_MAX - h->data_offset)
        return report_error(rep, EINVAL,
                            "a disk of %" PRIu64 " bytes is not possible with sectors of %" PRIu32,
                            size, h->unit);
    return 0;
}

static int native_resize(struct key_store *ks, uint64_t size, struct report *rep)
{
    const struct native_header *h = &ks->copy[ks->current].header;
    int r = check_capacity(h, size, rep);

    if (r == 0)
        r = native_reencrypt_none(ks, "resizing", rep);
    if (r == 0 && ks->prk.bytes == NULL)
        r = report_error(rep, ENOKEY, "the key of the container is not in memory");
    if (r == 0 && size == h->capacity)
        return 0;
    if (r == 0)
        r = native_store_ready(ks, rep);
    return r < 0 ? r : native_store_set_capacity(ks, size, rep);
}

const struct key_format native_format = {
    .name = "native",
    .default_cipher = "aes-256-xts",
    .recognise = native_recognise,
    .prepare = native_prepare,
    .container_size = native_container_size,
    .disk_size = native_disk_size,
    .check_create = native_check_create,
    .create = native_create,
    .open = native_store_open,
    .close = native_store_close,
    .unlock = native_unlock,
    .repair = native_store_repair,
    .slots = native_slots,
    .seal = native_seal,
    .apply = native_apply,
    .destroy = native_store_destroy,
    .export = native_export,
    .import = native_import,
    .forget = native_store_forget,
    .resize = native_resize,
    .uuid = native_uuid,
    .header_size = native_header_size,
    .backup = native_backup,
    .restore = native_restore,
    .restore_check = native_restore_check,
    .dump = native_dump,
    .check = native_check,
    .reencrypt = &native_reencrypt,
    .max_slots = NATIVE_SLOTS,
    .detachable = true,
};
