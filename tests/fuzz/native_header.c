/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes what reads a native header before its key is known: recognise, check, open, slots, dump,
 * backup, and unlock where no slot asks for real work; first as a container's own header, then as a
 * detached one. Input: one byte of choices, then copy 0, copy 1, and 512 bytes for each of the two
 * records of a re-encryption, as far as there are bytes, zeros behind. The choices let a fuzzer
 * past the checksum and the MACs.
 *
 * What it must never find: a crash, a volume that does not fit its container, a backup that does
 * not open where its original did, a read that wrote. */

#include "base/bytes.h"
#include "block/memory.h"
#include "keystore/format.h"
#include "keystore/native/record.h"
#include "lib/container.h"

#include <stdlib.h>
#include <string.h>

enum {
    SEAL_SUM = 1,    /* checksums that fit */
    SEAL_MAC = 2,    /* and MACs, under the key of lib/container.c */
    SAME_COPIES = 4, /* copy 1 is copy 0 */
    READ_ONLY = 8,
    CUT_SHIFT = 4, /* the upper half: how much the container is cut, 0 not at all */
};

#define RECORD 512 /* bytes of the input for each */

static const uint64_t sizes[16] = {CONTAINER_SIZE,
                                   0,
                                   1,
                                   8,
                                   100,
                                   4095,
                                   4096,
                                   4097,
                                   0x80000,
                                   0x80001,
                                   0x80fff,
                                   0x81000,
                                   NATIVE_DATA,
                                   NATIVE_DATA + 1,
                                   CONTAINER_SIZE - 1,
                                   CONTAINER_SIZE - 512};

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static struct blk *memory(uint64_t size)
{
    struct blk *b;

    if (secret_start(NULL) < 0 || blk_memory_open(&b, size, 1) < 0)
        abort();
    return b;
}

/* What the target works on, made once. */
struct devices {
    struct blk *container, *data, *backup;
};

static struct devices *devices(void)
{
    static struct devices d;

    if (d.container == NULL)
        d = (struct devices){memory(CONTAINER_SIZE), memory(CONTAINER_SIZE), memory(NATIVE_DATA)};
    return &d;
}

/* As much of the input as there is, and the rest of it for what comes next. */
static void take(unsigned char *to, size_t room, const unsigned char **data, size_t *len)
{
    size_t n = *len < room ? *len : room;

    memcpy(to, *data, n);
    memset(to + n, 0, room - n);
    *data += n;
    *len -= n;
}

/* The records under the MAC that fits copy 0, as far as their bytes are fields. */
static void seal_records(unsigned char *container)
{
    AUTO_SECRET struct secret master = {0}, prk = {0}, keys = {0};
    struct native_header h;

    container_master(&master);
    if (native_header_parse(&h, container) < 0 || native_header_prk(&prk, &h, &master) < 0 ||
        native_record_keys(&keys, &h, &prk) < 0)
        abort();
    for (unsigned i = 0; i < 2; i++) {
        unsigned char *at = container + NATIVE_RECORD_AT + (size_t)i * NATIVE_BLOCK;
        struct native_record r = {.seq = bytes_get_le64(at + 0x08),
                                  .done = bytes_get_le64(at + 0x10),
                                  .zone = bytes_get_le32(at + 0x18)};

        memcpy(r.old_params, at + 0x20, sizeof(r.old_params));
        memcpy(r.wrapped, at + 0xa0, sizeof(r.wrapped));
        if (native_record_encode(at, &r, &keys) < 0)
            abort();
    }
}

static void lay_out(struct blk *b, unsigned choices, const unsigned char *data, size_t len)
{
    unsigned char *bytes = blk_memory_bytes(b);
    unsigned char *copy[NATIVE_COPIES] = {bytes, bytes + NATIVE_COPY_STEP};

    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        take(copy[i], NATIVE_BLOCK, &data, &len);
    for (unsigned i = 0; i < 2; i++)
        take(bytes + NATIVE_RECORD_AT + (size_t)i * NATIVE_BLOCK, RECORD, &data, &len);
    if (choices & SAME_COPIES)
        memcpy(copy[1], copy[0], NATIVE_BLOCK);
    for (unsigned i = 0; i < NATIVE_COPIES && choices & (SEAL_SUM | SEAL_MAC); i++)
        container_reseal(copy[i], (choices & SEAL_MAC) != 0);
    if (choices & SEAL_MAC)
        seal_records(bytes);
    b->read_only = (choices & READ_ONLY) != 0;
    b->size = sizes[choices >> CUT_SHIFT & 15];
}

/* Everything that a slot could ask for here is next to nothing. */
static bool slots_are_cheap(struct blk *b)
{
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        for (unsigned n = 0; n < NATIVE_SLOTS; n++) {
            struct native_slot s;

            native_slot_decode(
                &s, native_header_slot(blk_memory_bytes(b) + (size_t)i * NATIVE_COPY_STEP, n));
            if (s.used && s.cost.m_kib > 64 && s.cost.m_kib <= 4 * 1024 * 1024)
                return false;
            if (s.used && s.cost.t > 2 && s.cost.t <= 64)
                return false;
        }
    return true;
}

static void swallow_text(struct key_dump *d, const char *name, const char *value)
{
    (void)d;
    if (strlen(name) == 0 || strlen(value) > KEY_LABEL_MAX)
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
    (void)d, (void)name;
    if (len > 64 || (len > 0 && bytes[0] + bytes[len - 1] > 2 * 255))
        abort();
}

/* Groups nest as they should. */
struct depth {
    struct key_dump dump;
    unsigned n;
};

static void go_in(struct key_dump *d, const char *name)
{
    (void)name;
    container_of(d, struct depth, dump)->n++;
}

static void go_out(struct key_dump *d)
{
    if (container_of(d, struct depth, dump)->n-- == 0)
        abort();
}

static void dump(const struct key_format *f, struct key_store *ks)
{
    struct depth d = {.dump = {.text = swallow_text,
                               .number = swallow_number,
                               .flag = swallow_flag,
                               .bytes = swallow_bytes,
                               .begin = go_in,
                               .end = go_out}};

    f->dump(ks, &d.dump);
    if (d.n != 0)
        abort();
}

/* Opens a backup where the original opened, and finds in it what was there. */
static void back_up(const struct key_format *f, struct key_store *ks, struct blk *data, int slots)
{
    struct blk *to = devices()->backup;
    struct key_slot_info info[NATIVE_SLOTS];
    struct key_store *again = NULL;

    if (f->header_size(ks) != to->size)
        abort();
    if (f->backup(ks, to, NULL) < 0)
        return;
    if (f->open(&again, to, data, NULL) < 0 || f->slots(again, info, NATIVE_SLOTS, NULL) != slots ||
        f->restore_check(again, ks, NULL) < 0)
        abort();
    f->close(again);
}

static void use(const struct key_format *f, struct blk *header, struct blk *data)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_slot_info info[NATIVE_SLOTS];
    struct key_store *ks = NULL;
    int n;

    f->check(header, data, NULL);
    if (f->open(&ks, header, data, NULL) < 0)
        return;
    n = f->slots(ks, info, NATIVE_SLOTS, NULL);
    if (n > NATIVE_SLOTS)
        abort();
    dump(f, ks);
    back_up(f, ks, data, n);
    container_credential(&cred, "old horse", NULL);
    if (slots_are_cheap(header) && f->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL) == 0 &&
        (v.size == 0 || v.data_offset + v.size > data->size || v.sector_size < 512 ||
         (v.mixed && (v.boundary > v.size || v.zone > v.size - v.boundary))))
        abort();
    f->close(ks);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    unsigned char before[NATIVE_COPIES][NATIVE_BLOCK];
    struct blk *b = devices()->container;
    const struct key_format *f = NULL;

    if (len == 0)
        return 0;
    lay_out(b, data[0], data + 1, len - 1);
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        memcpy(before[i], blk_memory_bytes(b) + (size_t)i * NATIVE_COPY_STEP, NATIVE_BLOCK);
    if (key_recognise(&f, b, NULL) == 0) {
        use(f, b, b);
        use(f, b, devices()->data);
    }
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        if (memcmp(before[i], blk_memory_bytes(b) + (size_t)i * NATIVE_COPY_STEP, NATIVE_BLOCK))
            abort(); /* reading wrote */
    return 0;
}
