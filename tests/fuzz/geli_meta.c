/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes what reads GELI metadata before a key is known: recognise, check, open, slots, dump,
 * flags, backup, and unlock where no stretching asks for real work; as a container's own, as a
 * detached header, and as one that lies where the container ended before. Input: one byte of
 * choices, then the block, zeros behind.
 *
 * What it must never find: a crash, a volume that does not fit its container, a block that encodes
 * to something else, a read that wrote. */

#include "base/bytes.h"
#include "block/memory.h"
#include "keystore/geli/store.h"
#include "lib/container.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEAL = 1, /* a checksum that fits */
    FIT = 2,  /* the size is the container's */
    READ_ONLY = 4,
    LARGE_ROOM = 8,  /* a container of a mebibyte */
    SECTOR_SHIFT = 4 /* the upper half: the provider's sectors are 512 << this */
};

#define SMALL (65536 + 512)
#define LARGE (1 << 20)

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static struct blk *memory(uint64_t size)
{
    struct blk *b;

    if (secret_start(NULL) < 0 || blk_memory_open(&b, size, 1) < 0)
        abort();
    return b;
}

/* Made once: the container, another with nothing in it, and the file of a header. */
struct devices {
    struct blk *container, *data, *header;
};

static struct devices *devices(void)
{
    static struct devices d;

    if (d.container == NULL)
        d = (struct devices){memory(LARGE), memory(LARGE), memory(GELI_BLOCK)};
    return &d;
}

/* Where the fields begin that version 0 has two bytes lower. */
static size_t low(const unsigned char *block)
{
    return bytes_get_le32(block + 16) == 0 ? 2 : 0;
}

static void seal(unsigned char *block, unsigned choices, uint64_t size)
{
    if (choices & FIT)
        bytes_put_le64(block + 30 - low(block), size);
    if (choices & SEAL &&
        EVP_Digest(block, 495 - low(block), block + 495 - low(block), NULL, EVP_md5(), NULL) != 1)
        abort();
}

static void lay_out(struct blk *b, unsigned choices, const unsigned char *data, size_t len)
{
    uint32_t sector = 512u << (choices >> SECTOR_SHIFT & 15);
    unsigned char *block;

    b->size = choices & LARGE_ROOM ? LARGE : SMALL;
    memset(blk_memory_bytes(b), 0, LARGE);
    if (sector > b->size)
        sector = 512;
    block = blk_memory_bytes(b) + b->size - sector;
    memcpy(block, data, len < GELI_BLOCK ? len : GELI_BLOCK);
    seal(block, choices, b->size);
    memcpy(blk_memory_bytes(devices()->header), block, GELI_BLOCK);
    b->read_only = (choices & READ_ONLY) != 0;
}

static void swallow_text(struct key_dump *d, const char *name, const char *value)
{
    (void)d;
    if (strlen(name) == 0 || strlen(value) > 255)
        abort();
}

static void swallow_number(struct key_dump *d, const char *name, uint64_t value)
{
    (void)d, (void)name, (void)value;
}

static void swallow_flag(struct key_dump *d, const char *name, bool value)
{
    (void)d, (void)name, (void)value;
}

static void swallow_bytes(struct key_dump *d, const char *name, const unsigned char *bytes,
                          size_t len)
{
    (void)d, (void)name, (void)bytes;
    if (len > GELI_SALT)
        abort();
}

static void check_same(struct key_store *ks)
{
    unsigned char block[GELI_BLOCK];
    struct geli_meta again;

    if (geli_meta_encode(block, &ks->meta) < 0 || geli_meta_decode(&again, block, NULL) < 0 ||
        again.provsize != ks->meta.provsize || again.iterations != ks->meta.iterations ||
        memcmp(again.slot, ks->meta.slot, sizeof(again.slot)) != 0)
        abort();
}

static void check_volume(const struct key_volume *v, const struct blk *data)
{
    if (v->size == 0 || v->size > data->size || v->size % v->sector_size != 0 ||
        v->sector_size < 512 || v->sector_size > GELI_SECTOR_MAX || v->rule.prk.len != 64 ||
        v->rule.chunk_shift < 29 || v->rule.chunk_shift > 37)
        abort();
}

static void use(const struct key_format *f, struct blk *header, struct blk *data)
{
    struct key_dump dump = {.text = swallow_text,
                            .number = swallow_number,
                            .flag = swallow_flag,
                            .bytes = swallow_bytes};
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_slot_info info[GELI_SLOTS];
    struct key_store *ks = NULL;

    f->check(header, data, NULL);
    if (f->open(&ks, header, data, NULL) < 0)
        return;
    if (f->slots(ks, info, GELI_SLOTS, NULL) > GELI_SLOTS || f->header_size(ks) > GELI_SECTOR_MAX)
        abort();
    f->dump(ks, &dump);
    check_same(ks);
    container_credential(&cred, "correct horse", NULL);
    if (ks->meta.iterations <= 16 && f->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL) == 0)
        check_volume(&v, data);
    f->close(ks);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    static unsigned char before[LARGE];
    const struct key_format *geli = key_format_named("geli"), *f = NULL;
    struct devices *d = devices();

    if (len == 0)
        return 0;
    lay_out(d->container, data[0], data + 1, len - 1);
    memcpy(before, blk_memory_bytes(d->container), LARGE);
    if (key_recognise(&f, d->container, NULL) == 0)
        use(f, d->container, d->container);
    d->data->size = d->container->size;
    use(geli, d->header, d->data);
    if (memcmp(before, blk_memory_bytes(d->container), LARGE) != 0)
        abort();                    /* reading wrote */
    if (!d->container->read_only) { /* as if it had grown by what is behind half of it */
        geli->relocate(d->container, d->container->size / 2, NULL);
        geli->destroy(d->container, NULL);
    }
    return 0;
}
