/* SPDX-License-Identifier: BSD-2-Clause */

/* What a hostile container may say: every field of a native header, of a key slot and of the record
 * of a re-encryption at its extremes, as the whole format answers to it. Each row is tried three
 * times: as somebody writes it who only changes bytes; with a checksum that fits; and, as far as
 * somebody can who has the key, with all that is bound to it made anew, so that the check behind is
 * reached. Whatever a row says, nobody may take more than a MiB before the header is authenticated;
 * what a key derivation asks for is checked before. */

#include "base/bytes.h"
#include "block/memory.h"
#include "keystore/native/record.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SLOT = 0x200 + 2 * NATIVE_SLOT, OTHER_SLOT = 0x200 + 5 * NATIVE_SLOT, ROOM = 1 << 20 };

static const struct key_format *native;

static int start(void **state)
{
    native = key_format_named("native");
    return native == NULL ? -1 : test_start(state);
}

/* --- no large allocation --- */

/* From here on this process gets ROOM bytes more. Sanitizers take what they like. */
static void limit_memory(bool on)
{
#ifndef HUSHVOL_SANITIZED
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu", &pages), 1);
    fclose(f);
    assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
    limit.rlim_cur = on ? pages * (rlim_t)sysconf(_SC_PAGESIZE) + ROOM : limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#else
    (void)on;
#endif
}

static void the_limit_holds(void **state)
{
    void *volatile much;

    (void)state;
    limit_memory(true);
    much = malloc(2 * ROOM);
    limit_memory(false);
#ifndef HUSHVOL_SANITIZED
    assert_null(much);
#endif
    free(much);
}

/* --- rows --- */

/* Everything that is done with a container of somebody else's; the answer of the first step that
 * refuses. v says what was found behind. */
static int use(struct blk *b, struct key_volume *v)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    struct key_slot_info info[KEY_SLOTS_MAX];
    struct key_store *ks = NULL;
    int r;

    container_credential(&cred, "old horse", NULL);
    native->check(b, b, NULL);
    r = native->recognise(b) == 1 ? 0 : -ENOTUNIQ;
    if (r == 0)
        r = native->open(&ks, b, b, NULL);
    if (r < 0)
        return r;
    assert_true(native->slots(ks, info, KEY_SLOTS_MAX, NULL) <= (int)native->max_slots);
    r = native->unlock(ks, &cred, KEY_SLOT_ANY, v, NULL);
    native->close(ks);
    return r;
}

static int use_limited(struct blk *b)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    int r;

    limit_memory(true);
    r = use(b, &v);
    limit_memory(false);
    if (r == 0) { /* then it fits, whatever was claimed */
        assert_true(v.size > 0 && v.size <= b->size && v.data_offset <= b->size - v.size);
        assert_true(v.sector_size >= 512 && v.sector_size <= 65536 && v.size % v.sector_size == 0);
        assert_true(strlen(v.label) <= KEY_LABEL_MAX);
        assert_true(!v.mixed || (v.boundary <= v.size && v.zone <= v.size - v.boundary));
    }
    return r;
}

static void put_copies(struct blk *b, const unsigned char block[NATIVE_BLOCK])
{
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        memcpy(blk_memory_bytes(b) + i * NATIVE_COPY_STEP, block, NATIVE_BLOCK);
}

/* What a field belongs to says what happens to it when only the checksum is made anew. */
enum part {
    HEADER, /* under the MAC */
    PARAMS, /* also bound into every slot, like the uuid */
    LOOSE,  /* outside the MAC: what the row wants is wanted without a key too */
};

struct row {
    size_t at;
    unsigned len;
    uint64_t value;
    int want; /* with everything made anew */
    enum part part;
};

/* clang-format off */
static const struct row header_rows[] = {
    /* magic: not ours at all */
    {0x000, 1, 0, -ENOTUNIQ, HEADER}, {0x007, 1, 1, -ENOTUNIQ, HEADER},
    /* major, minor, size */
    {0x008, 2, 0, -EOPNOTSUPP, HEADER}, {0x008, 2, 2, -EOPNOTSUPP, HEADER},
    {0x008, 2, 0xffff, -EOPNOTSUPP, HEADER},
    {0x00a, 2, 1, 0, HEADER}, {0x00a, 2, 0xffff, 0, HEADER},
    {0x00c, 4, 0, -EBADMSG, HEADER}, {0x00c, 4, 4095, -EBADMSG, HEADER},
    {0x00c, 4, 4097, -EBADMSG, HEADER}, {0x00c, 4, UINT32_MAX, -EBADMSG, HEADER},
    /* seq, uuid */
    {0x010, 8, 0, 0, HEADER}, {0x010, 8, 1, 0, HEADER}, {0x010, 8, UINT64_MAX - 1, 0, HEADER},
    {0x010, 8, UINT64_MAX, -EBADMSG, HEADER},
    {0x018, 8, 0, 0, PARAMS}, {0x018, 8, UINT64_MAX, 0, PARAMS}, {0x020, 8, UINT64_MAX, 0, PARAMS},
    /* incompat: 1 is a re-encryption, which has no record here */
    {0x028, 4, 1, -EBADMSG, HEADER}, {0x028, 4, 2, -EOPNOTSUPP, HEADER},
    {0x028, 4, 3, -EOPNOTSUPP, HEADER}, {0x028, 4, 0x80000000, -EOPNOTSUPP, HEADER},
    {0x028, 4, UINT32_MAX, -EOPNOTSUPP, HEADER},
    /* ro_compat: b is open for writing; compat; reserved */
    {0x02c, 4, 1, -EOPNOTSUPP, HEADER}, {0x02c, 4, 0x80000000, -EOPNOTSUPP, HEADER},
    {0x02c, 4, UINT32_MAX, -EOPNOTSUPP, HEADER},
    {0x030, 4, 1, 0, HEADER}, {0x030, 4, UINT32_MAX, 0, HEADER}, {0x034, 4, UINT32_MAX, 0, HEADER},
    /* mode, cipher, kdf, nodemac */
    {0x038, 1, 0, -EOPNOTSUPP, PARAMS}, {0x038, 1, 2, -EOPNOTSUPP, PARAMS},
    {0x038, 1, 3, -EOPNOTSUPP, PARAMS}, {0x038, 1, 255, -EOPNOTSUPP, PARAMS},
    {0x039, 1, 0, 0, PARAMS}, {0x039, 1, 2, 0, PARAMS}, {0x039, 1, 3, -EOPNOTSUPP, PARAMS},
    {0x039, 1, 255, -EOPNOTSUPP, PARAMS},
    {0x03a, 1, 0, -EOPNOTSUPP, PARAMS}, {0x03a, 1, 2, -EOPNOTSUPP, PARAMS},
    {0x03a, 1, 255, -EOPNOTSUPP, PARAMS},
    {0x03b, 1, 1, -EOPNOTSUPP, PARAMS}, {0x03b, 1, 255, -EOPNOTSUPP, PARAMS},
    /* unit */
    {0x03c, 4, 0, -EBADMSG, PARAMS}, {0x03c, 4, 1, -EBADMSG, PARAMS},
    {0x03c, 4, 256, -EBADMSG, PARAMS}, {0x03c, 4, 511, -EBADMSG, PARAMS},
    {0x03c, 4, 512, 0, PARAMS}, {0x03c, 4, 513, -EBADMSG, PARAMS},
    {0x03c, 4, 32768, 0, PARAMS}, {0x03c, 4, 65535, -EBADMSG, PARAMS},
    {0x03c, 4, 65536, 0, PARAMS}, {0x03c, 4, 65537, -EBADMSG, PARAMS},
    {0x03c, 4, 131072, -EBADMSG, PARAMS}, {0x03c, 4, 0x80000000, -EBADMSG, PARAMS},
    {0x03c, 4, UINT32_MAX, -EBADMSG, PARAMS},
    /* logical block */
    {0x040, 4, 0, -EBADMSG, PARAMS}, {0x040, 4, 256, -EBADMSG, PARAMS},
    {0x040, 4, 513, -EBADMSG, PARAMS}, {0x040, 4, 65536, 0, PARAMS},
    {0x040, 4, 131072, -EBADMSG, PARAMS}, {0x040, 4, UINT32_MAX, -EBADMSG, PARAMS},
    /* chunk shift: at least a unit */
    {0x044, 4, 0, -EBADMSG, PARAMS}, {0x044, 4, 11, -EBADMSG, PARAMS}, {0x044, 4, 12, 0, PARAMS},
    {0x044, 4, 63, 0, PARAMS}, {0x044, 4, 64, -EBADMSG, PARAMS},
    {0x044, 4, UINT32_MAX, -EBADMSG, PARAMS},
    /* data offset: the disk of 64 KiB has to fit behind it */
    {0x048, 8, 0, -EBADMSG, PARAMS}, {0x048, 8, 4096, -EBADMSG, PARAMS},
    {0x048, 8, 0x80000, -EBADMSG, PARAMS}, {0x048, 8, 0x80fff, -EBADMSG, PARAMS},
    {0x048, 8, 0x81000, 0, PARAMS}, {0x048, 8, 0x81001, -EBADMSG, PARAMS},
    {0x048, 8, 0x100000 - 1, -EBADMSG, PARAMS}, {0x048, 8, 0x100000 + 1, -EBADMSG, PARAMS},
    {0x048, 8, 0x101000, -EBADMSG, PARAMS}, {0x048, 8, UINT64_C(1) << 40, -EBADMSG, PARAMS},
    {0x048, 8, UINT64_C(0x7ffffffffffff000), -EBADMSG, PARAMS},
    {0x048, 8, UINT64_C(1) << 63, -EBADMSG, PARAMS},
    {0x048, 8, UINT64_C(0xfffffffffffff000), -EBADMSG, PARAMS},
    {0x048, 8, UINT64_MAX, -EBADMSG, PARAMS},
    /* log, salt, reserved */
    {0x050, 8, 1, -EBADMSG, PARAMS}, {0x050, 8, UINT64_MAX, -EBADMSG, PARAMS},
    {0x058, 8, 1, -EBADMSG, PARAMS}, {0x058, 8, UINT64_MAX, -EBADMSG, PARAMS},
    {0x060, 8, 0, 0, PARAMS}, {0x078, 8, UINT64_MAX, 0, PARAMS},
    {0x080, 8, UINT64_MAX, 0, PARAMS}, {0x0b0, 8, UINT64_MAX, 0, PARAMS},
    /* flags: each bit, known or not; reserved */
    {0x0b8, 4, 0x1, 0, HEADER}, {0x0b8, 4, 0x2, 0, HEADER}, {0x0b8, 4, 0x4, 0, HEADER},
    {0x0b8, 4, 0x8, 0, HEADER}, {0x0b8, 4, 0x10, 0, HEADER}, {0x0b8, 4, 0x80000000, 0, HEADER},
    {0x0b8, 4, UINT32_MAX, 0, HEADER}, {0x0bc, 4, UINT32_MAX, 0, HEADER},
    /* capacity: whole sectors, and there */
    {0x0c0, 8, 0, -EBADMSG, HEADER}, {0x0c0, 8, 1, -EBADMSG, HEADER},
    {0x0c0, 8, 4095, -EBADMSG, HEADER}, {0x0c0, 8, 4096, 0, HEADER},
    {0x0c0, 8, 4097, -EBADMSG, HEADER}, {0x0c0, 8, CONTAINER_DISK - 1, -EBADMSG, HEADER},
    {0x0c0, 8, CONTAINER_DISK - 4096, 0, HEADER}, {0x0c0, 8, CONTAINER_DISK + 1, -EBADMSG, HEADER},
    {0x0c0, 8, CONTAINER_DISK + 4096, -EBADMSG, HEADER},
    {0x0c0, 8, UINT64_C(1) << 50, -EBADMSG, HEADER},
    {0x0c0, 8, UINT64_C(0x7ffffffffff00000), -EBADMSG, HEADER},
    {0x0c0, 8, UINT64_C(1) << 63, -EBADMSG, HEADER},
    {0x0c0, 8, UINT64_C(0xfffffffffffff000), -EBADMSG, HEADER},
    {0x0c0, 8, UINT64_MAX, -EBADMSG, HEADER},
    /* label without an end, what nobody owns */
    {0x0c8, 8, 0, 0, HEADER}, {0x0c8, 8, UINT64_MAX, 0, HEADER}, {0x0f0, 8, UINT64_MAX, 0, HEADER},
    {0x0f8, 8, UINT64_MAX, 0, HEADER}, {0x1b0, 8, UINT64_MAX, 0, HEADER},
    /* slot_seq */
    {0x1b8, 8, 0, 0, LOOSE}, {0x1b8, 8, UINT64_MAX - 1, 0, LOOSE},
    {0x1b8, 8, UINT64_MAX, -EBADMSG, LOOSE},
};

/* Offsets within the slot. */
static const struct row slot_rows[] = {
    /* state: the only one is gone; type: of other kinds; kdf; wrap */
    {0x00, 1, 0, -EKEYREJECTED, LOOSE}, {0x00, 1, 2, -EOPNOTSUPP, LOOSE},
    {0x00, 1, 255, -EOPNOTSUPP, LOOSE},
    {0x01, 1, 0, -EOPNOTSUPP, LOOSE}, {0x01, 1, 2, -EKEYREJECTED, LOOSE},
    {0x01, 1, 3, -EKEYREJECTED, LOOSE}, {0x01, 1, 4, -EOPNOTSUPP, LOOSE},
    {0x01, 1, 255, -EOPNOTSUPP, LOOSE},
    {0x02, 1, 0, -EOPNOTSUPP, LOOSE}, {0x02, 1, 2, -EOPNOTSUPP, LOOSE},
    {0x02, 1, 255, -EOPNOTSUPP, LOOSE},
    {0x03, 1, 0, -EOPNOTSUPP, LOOSE}, {0x03, 1, 2, -EOPNOTSUPP, LOOSE},
    {0x03, 1, 255, -EOPNOTSUPP, LOOSE},
    /* reserved, but under the tag */
    {0x04, 4, 1, -EKEYREJECTED, LOOSE}, {0x04, 4, UINT32_MAX, -EKEYREJECTED, LOOSE},
    {0x14, 4, 1, -EKEYREJECTED, LOOSE}, {0x14, 4, UINT32_MAX, -EKEYREJECTED, LOOSE},
    /* memory of the derivation, KiB: refused, or what it is not */
    {0x08, 4, 0, -EBADMSG, LOOSE}, {0x08, 4, 1, -EBADMSG, LOOSE}, {0x08, 4, 7, -EBADMSG, LOOSE},
    {0x08, 4, 9, -EKEYREJECTED, LOOSE}, {0x08, 4, 64, -EKEYREJECTED, LOOSE},
    {0x08, 4, 0x400001, -EBADMSG, LOOSE}, {0x08, 4, 0x80000000, -EBADMSG, LOOSE},
    {0x08, 4, UINT32_MAX, -EBADMSG, LOOSE},
    /* passes */
    {0x0c, 4, 0, -EBADMSG, LOOSE}, {0x0c, 4, 2, -EKEYREJECTED, LOOSE},
    {0x0c, 4, 64, -EKEYREJECTED, LOOSE}, {0x0c, 4, 65, -EBADMSG, LOOSE},
    {0x0c, 4, 0x80000000, -EBADMSG, LOOSE}, {0x0c, 4, UINT32_MAX, -EBADMSG, LOOSE},
    /* memory and passes, each allowed, together not: 1 GiB 64 times */
    {0x08, 8, UINT64_C(64) << 32 | 1 << 20, -EBADMSG, LOOSE},
    /* lanes */
    {0x10, 4, 0, -EBADMSG, LOOSE}, {0x10, 4, 2, -EBADMSG, LOOSE},
    {0x10, 4, 0x1000001, -EBADMSG, LOOSE}, {0x10, 4, UINT32_MAX, -EBADMSG, LOOSE},
    /* salts, wrapped key, tag */
    {0x18, 8, 0, -EKEYREJECTED, LOOSE}, {0x20, 8, UINT64_MAX, -EKEYREJECTED, LOOSE},
    {0x28, 8, 0, -EKEYREJECTED, LOOSE}, {0x30, 8, UINT64_MAX, -EKEYREJECTED, LOOSE},
    {0x38, 8, 0, -EKEYREJECTED, LOOSE}, {0x50, 8, UINT64_MAX, -EKEYREJECTED, LOOSE},
    {0x78, 8, 0, -EKEYREJECTED, LOOSE}, {0x90, 8, UINT64_MAX, -EKEYREJECTED, LOOSE},
    /* reserved, created, a label without an end, the rest */
    {0x58, 8, UINT64_MAX, 0, LOOSE}, {0x70, 8, UINT64_MAX, 0, LOOSE},
    {0x98, 8, 0, 0, LOOSE}, {0x98, 8, UINT64_C(1) << 63, 0, LOOSE}, {0x98, 8, UINT64_MAX, 0, LOOSE},
    {0xa0, 8, 0, 0, LOOSE}, {0xa0, 8, UINT64_MAX, 0, LOOSE}, {0xb8, 8, UINT64_MAX, 0, LOOSE},
    {0xc0, 8, UINT64_MAX, 0, LOOSE}, {0xf8, 8, UINT64_MAX, 0, LOOSE},
};
/* clang-format on */
#define N(rows) (sizeof(rows) / sizeof((rows)[0]))

enum how { AS_IT_IS, WITH_SUM, WITH_KEY };

/* The slot under what the header says now: its keys depend on that. */
static void rewrap(unsigned char block[NATIVE_BLOCK])
{
    AUTO_SECRET struct secret master = {0};
    AUTO_CREDENTIAL struct credential cred = {0};
    struct native_header h = {0};

    container_master(&master);
    container_credential(&cred, "old horse", NULL);
    assert_int_equal(native_header_parse(&h, block), 0);
    assert_int_equal(
        native_slot_wrap(block + SLOT, 2, &h, &container_cost, "slot", &cred, &master, NULL), 0);
}

static int wanted(const struct row *row, enum how how)
{
    if (row->want == -ENOTUNIQ) /* seen before the checksum */
        return row->want;
    if (how == AS_IT_IS)
        return -EBADMSG;
    if (how == WITH_KEY || row->want == -EOPNOTSUPP || row->part == LOOSE)
        return row->want;
    return row->part == PARAMS && row->want == 0 ? -EKEYREJECTED : -EBADMSG;
}

static void try_row(struct blk *b, const unsigned char before[NATIVE_BLOCK], const struct row *row,
                    size_t base, enum how how)
{
    unsigned char block[NATIVE_BLOCK], value[8];
    int r;

    memcpy(block, before, sizeof(block));
    bytes_put_le64(value, row->value);
    memcpy(block + base + row->at, value, row->len);
    if (memcmp(before, block, sizeof(block)) == 0)
        fail_msg("the row at 0x%zx changes nothing", base + row->at);
    if (how == WITH_KEY && row->part == PARAMS)
        rewrap(block);
    if (how != AS_IT_IS)
        container_reseal(block, how == WITH_KEY);
    put_copies(b, block);
    r = use_limited(b);
    if (r != wanted(row, how))
        fail_msg("%d instead of %d for 0x%" PRIx64 " at 0x%zx, %s", r, wanted(row, how), row->value,
                 base + row->at, (const char *[]){"as it is", "with its checksum", "sealed"}[how]);
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        assert_memory_equal(blk_memory_bytes(b) + i * NATIVE_COPY_STEP, block, NATIVE_BLOCK);
}

static void try_rows(const struct row *rows, size_t n, size_t base)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];
    AUTO_BLK struct blk *b = NULL;

    container_block(block, &h);
    b = container_open(block);
    for (size_t i = 0; i < n; i++)
        for (enum how how = AS_IT_IS; how <= WITH_KEY; how++)
            try_row(b, block, &rows[i], base, how);
}

static void every_header_field_at_its_extremes(void **state)
{
    (void)state;
    try_rows(header_rows, N(header_rows), 0);
}

static void every_slot_field_at_its_extremes(void **state)
{
    (void)state;
    try_rows(slot_rows, N(slot_rows), SLOT);
}

/* A changed bit in each byte, under a checksum that fits. */
static void no_byte_of_a_header_is_trusted(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK], good[NATIVE_BLOCK];
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    container_block(good, &h);
    b = container_open(good);
    for (size_t at = 0; at < 0x1c0; at++) {
        int r;

        memcpy(block, good, sizeof(block));
        block[at] ^= (unsigned char)(1u << at % 8);
        container_reseal(block, 0);
        put_copies(b, block);
        r = use_limited(b);
        if (r != 0 && at >= 0x1b8) /* slot_seq: of two equal copies either counts */
            fail_msg("%d with another slot_seq", r);
        if (r == 0 && at < 0x1b8)
            fail_msg("it opens with byte 0x%zx changed", at);
    }
}

/* --- slots elsewhere, and many --- */

static void a_slot_in_another_place_does_not_open(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    container_block(block, &h);
    memcpy(block + OTHER_SLOT, block + SLOT, NATIVE_SLOT);
    memset(block + SLOT, 0, NATIVE_SLOT);
    container_reseal(block, 0);

    AUTO_BLK struct blk *b = container_open(block);

    assert_int_equal(use_limited(b), -EKEYREJECTED);
}

/* All other slots as hostile as can be: the one that opens is found behind them. */
static void hostile_slots_do_not_hide_a_good_one(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK], good[NATIVE_BLOCK], value[8];
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    container_block(good, &h);
    b = container_open(good);
    for (size_t i = 0; i < N(slot_rows); i++) {
        memcpy(block, good, sizeof(block));
        bytes_put_le64(value, slot_rows[i].value);
        for (unsigned n = 0; n < NATIVE_SLOTS; n++) {
            if (n == 2)
                continue;
            memcpy(native_header_slot(block, n), block + SLOT, NATIVE_SLOT);
            memcpy(native_header_slot(block, n) + slot_rows[i].at, value, slot_rows[i].len);
        }
        container_reseal(block, 0);
        put_copies(b, block);
        assert_int_equal(use_limited(b), 0);
    }
}

/* --- the record of a re-encryption --- */

/* A container half-way under another key, with this record in the place of the first. */
static struct blk *half_way(const struct native_record *record, bool mac_fits)
{
    AUTO_SECRET struct secret master = {0}, prk = {0}, keys = {0};
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];
    struct blk *b;

    h.incompat = NATIVE_INCOMPAT_REENCRYPT;
    container_block(block, &h);
    b = container_open(block);
    container_master(&master);
    assert_int_equal(native_header_parse(&h, block), 0);
    assert_int_equal(native_header_prk(&prk, &h, &master), 0);
    assert_int_equal(native_record_keys(&keys, &h, &prk), 0);
    assert_int_equal(native_record_encode(blk_memory_bytes(b) + NATIVE_RECORD_AT, record, &keys),
                     0);
    blk_memory_bytes(b)[NATIVE_RECORD_AT + 0xc0] ^= mac_fits ? 0 : 1;
    return b;
}

/* As in the header, but for the salt. */
static struct native_record usual_record(void)
{
    struct native_header h = container_header();
    struct native_record r = {.seq = 1, .done = 8192, .zone = 4096};
    unsigned char block[NATIVE_BLOCK];

    h.salt[0] ^= 1;
    container_block(block, &h);
    memcpy(r.old_params, block + 0x38, NATIVE_PARAMS);
    return r;
}

static void every_field_of_a_record_at_its_extremes(void **state)
{
    static const struct {
        uint64_t seq, done;
        uint32_t zone;
        int want;
    } rows[] = {
        {1, 0, 0, 0},
        {1, 8192, 4096, 0},
        {1, CONTAINER_DISK, 0, 0},
        {1, CONTAINER_DISK - 4096, 4096, 0},
        {1, 0, CONTAINER_DISK, 0},
        {UINT64_MAX - 1, 0, 0, 0},
        {0, 0, 0, -EBADMSG},
        {UINT64_MAX, 0, 0, -EBADMSG},
        {1, 1, 0, -EBADMSG},
        {1, 4095, 0, -EBADMSG},
        {1, 512, 0, -EBADMSG},
        {1, CONTAINER_DISK + 4096, 0, -EBADMSG},
        {1, CONTAINER_DISK, 4096, -EBADMSG},
        {1, UINT64_C(1) << 63, 0, -EBADMSG},
        {1, UINT64_MAX - 4095, 4096, -EBADMSG},
        {1, UINT64_MAX, 0, -EBADMSG},
        {1, 0, 1, -EBADMSG},
        {1, 0, 4095, -EBADMSG},
        {1, 0, CONTAINER_DISK + 4096, -EBADMSG},
        {1, 0, NATIVE_ZONE_MAX, -EBADMSG},
        {1, 0, NATIVE_ZONE_MAX + 4096, -EBADMSG},
        {1, 0, 0x80000000, -EBADMSG},
        {1, 0, UINT32_MAX, -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < N(rows); i++) {
        struct native_record r = usual_record();
        AUTO_BLK struct blk *good = NULL, *forged = NULL;
        int got;

        r.seq = rows[i].seq;
        r.done = rows[i].done;
        r.zone = rows[i].zone;
        good = half_way(&r, true);
        forged = half_way(&r, false);
        got = use_limited(good);
        if (got != rows[i].want)
            fail_msg("%d instead of %d for record %zu", got, rows[i].want, i);
        assert_int_equal(use_limited(forged), -EBADMSG);
    }
}

/* The old parameters are the new ones but for the salt, or it is no record. */
static void a_record_cannot_bring_other_parameters(void **state)
{
    (void)state;
    for (size_t at = 0; at < NATIVE_PARAMS; at++) {
        struct native_record r = usual_record();
        bool salt = at >= 0x28 && at < 0x48;

        r.old_params[at] ^= 0x40;

        AUTO_BLK struct blk *b = half_way(&r, true);

        assert_int_equal(use_limited(b), salt ? 0 : -EBADMSG);
    }
}

/* A changed bit in each byte of what a record says, and of its MAC. */
static void no_byte_of_a_record_is_trusted(void **state)
{
    const struct native_record r = usual_record();
    AUTO_BLK struct blk *b = half_way(&r, true);

    (void)state;
    assert_int_equal(use_limited(b), 0);
    for (size_t at = 0; at < 0xe0; at++) {
        unsigned char *byte = blk_memory_bytes(b) + NATIVE_RECORD_AT + at;

        *byte ^= (unsigned char)(1u << at % 8);
        if (use_limited(b) != -EBADMSG)
            fail_msg("a record with byte 0x%zx changed", at);
        *byte ^= (unsigned char)(1u << at % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_limit_holds),
        cmocka_unit_test(every_header_field_at_its_extremes),
        cmocka_unit_test(every_slot_field_at_its_extremes),
        cmocka_unit_test(no_byte_of_a_header_is_trusted),
        cmocka_unit_test(a_slot_in_another_place_does_not_open),
        cmocka_unit_test(hostile_slots_do_not_hide_a_good_one),
        cmocka_unit_test(every_field_of_a_record_at_its_extremes),
        cmocka_unit_test(a_record_cannot_bring_other_parameters),
        cmocka_unit_test(no_byte_of_a_record_is_trusted),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
