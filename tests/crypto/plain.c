/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves crypto/plain.c: random operations against an array at every sector size, with and without
 * the pool; what lies below is ciphertext at the right place; zeros and errors. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "crypto/sector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { OFFSET = 1024 * 1024, SIZE = 4 * 1024 * 1024 };

static struct secret prk;
static const uint32_t sectors[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
#define N_SECTORS (sizeof(sectors) / sizeof(sectors[0]))

static int start(void **state)
{
    (void)state;
    if (secret_start(NULL) < 0 || secret_make(&prk, 32) < 0)
        return -1;
    memset(prk.bytes, 7, 32);
    return 0;
}

static int end(void **state)
{
    (void)state;
    secret_done(&prk);
    return 0;
}

static struct sector_spec spec_for(uint32_t sector, struct pool *pool)
{
    struct sector_spec s = {.cipher = cipher_named("aes-256-xts"),
                            .sector_size = sector,
                            .data_offset = OFFSET,
                            .size = SIZE,
                            .zero_pieces = true,
                            .keys = {.prk = &prk, .shift = 21, .head_len = 4, .tail_len = 32},
                            .pool = pool,
                            .n_lanes = 8,
                            .n_callers = 8};

    return s;
}

static struct blk *open_over(struct blk *below, const struct sector_spec *spec)
{
    struct blk *b = NULL;

    assert_int_equal(sector_plain_open(&b, below, spec, NULL), 0);
    return b;
}

static struct blk *memory(void)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, OFFSET + SIZE, 1), 0);
    return b;
}

static void any_operations_equal_an_array(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned threads = 1; threads <= 3; threads += 2) {
        struct pool *pool = NULL;

        assert_int_equal(pool_open(&pool, threads, NULL), 0);
        for (unsigned i = 0; i < N_SECTORS; i++) {
            struct sector_spec spec = spec_for(sectors[i], pool);
            struct blk *b = open_over(memory(), &spec);
            struct crowd_spec m = {.blk = b,
                                   .seed = seed + i,
                                   .n_threads = 4,
                                   .n_ops = 60,
                                   .max_len = 600 * 1024,
                                   .granule = 512,
                                   .zeros = 1};

            crowd_run(&m);
            blk_close(b);
        }
        pool_close(pool);
    }
}

/* Ciphers that only do whole sectors, sectors whose IVs are hashes, one key for all. */
static void any_operations_equal_an_array_in_other_modes(void **state)
{
    static const struct {
        const char *cipher;
        uint32_t sector;
        enum sector_iv iv;
        enum chunk_derivation keys;
    } kinds[] = {
        {"aes-256-xts", 131072, SECTOR_IV_OFFSET, CHUNK_HMAC},
        {"aes-128-xts", 512, SECTOR_IV_OFFSET, CHUNK_HMAC},
        {"aes-128-cbc", 512, SECTOR_IV_OFFSET_HASH, CHUNK_SINGLE},
        {"camellia-192-cbc", 4096, SECTOR_IV_OFFSET_HASH, CHUNK_HMAC},
        {"3des-192-cbc", 8192, SECTOR_IV_OFFSET_HASH, CHUNK_HMAC},
        {"blowfish-320-cbc", 131072, SECTOR_IV_OFFSET_HASH, CHUNK_SINGLE},
        {"aes-256-cbc", 65536, SECTOR_IV_NUMBER, CHUNK_HMAC},
    };
    AUTO_SECRET struct secret base = {0};
    uint64_t seed = test_seed();
    struct pool *pool = NULL;

    (void)state;
    assert_int_equal(secret_make(&base, 64), 0);
    test_random_bytes(&seed, base.bytes, 64);
    assert_int_equal(pool_open(&pool, 3, NULL), 0);
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct sector_spec spec = spec_for(kinds[i].sector, pool);
        uint32_t granule;
        struct blk *b;

        spec.cipher = cipher_named(kinds[i].cipher);
        spec.zero_pieces = false;
        spec.keys.prk = &base;
        spec.keys.derivation = kinds[i].keys;
        spec.units = (struct unit_rule){.iv = kinds[i].iv, .iv_key = &base};
        granule = spec.cipher->mode == CIPHER_CBC ? spec.sector_size : 512;
        b = open_over(memory(), &spec);
        assert_int_equal(b->granule, granule);
        crowd_run(&(struct crowd_spec){.blk = b,
                                       .seed = seed + i,
                                       .n_threads = 4,
                                       .n_ops = 20,
                                       .max_len = 600 * 1024,
                                       .granule = granule,
                                       .zeros = 1});
        blk_close(b);
    }
    pool_close(pool);
}

/* The whole disk as one of the keys shows it. */
static void read_all(unsigned char *to, struct blk *mem, const struct chunk_rule *keys)
{
    struct sector_spec spec = spec_for(4096, NULL);
    struct blk *b;

    spec.keys = *keys;
    b = open_over(mem, &spec);
    assert_int_equal(blk_read(b, to, SIZE, 0), 0);
    b->below = NULL; /* stays */
    blk_close(b);
}

/* Requests of any length across the boundary are the disk's; what lies below it is the new key's,
 * what lies above the old one's. */
static void two_keys_meet_at_the_boundary(void **state)
{
    static const uint64_t boundaries[] = {0, 4096, 1048576 + 8192, SIZE - 4096, SIZE};
    uint64_t seed = test_seed();
    AUTO_FREE unsigned char *disk = malloc(SIZE), *under_new = malloc(SIZE),
                            *under_old = malloc(SIZE);
    struct chunk_rule old = spec_for(4096, NULL).keys;
    struct pool *pool = NULL;

    (void)state;
    memset(old.tail, 1, sizeof(old.tail));
    assert_int_equal(pool_open(&pool, 3, NULL), 0);
    for (unsigned i = 0; i < sizeof(boundaries) / sizeof(boundaries[0]); i++) {
        struct sector_spec spec = spec_for(4096, pool);
        struct blk *mem = memory(), *b;
        uint64_t at = boundaries[i];

        spec.old_keys = &old;
        spec.boundary = at;
        b = open_over(mem, &spec);
        crowd_run(&(struct crowd_spec){.blk = b,
                                       .seed = seed + i,
                                       .n_threads = 4,
                                       .n_ops = 60,
                                       .max_len = 600 * 1024,
                                       .granule = 512,
                                       .zeros = 1});
        test_random_bytes(&seed, disk, SIZE);
        assert_int_equal(blk_write(b, disk, SIZE, 0), 0);
        read_all(under_new, mem, &spec.keys);
        read_all(under_old, mem, &old);
        assert_memory_equal(under_new, disk, at);
        assert_memory_equal(under_old + at, disk + at, SIZE - at);
        assert_true(at == 0 || memcmp(under_old, disk, at) != 0);
        assert_true(at == SIZE || memcmp(under_new + at, disk + at, SIZE - at) != 0);
        blk_close(b);
    }
    pool_close(pool);
}

static void a_boundary_inside_a_sector_is_refused(void **state)
{
    struct sector_spec spec = spec_for(4096, NULL);
    struct chunk_rule old = spec.keys;
    struct blk *mem = memory(), *b = NULL;

    (void)state;
    spec.old_keys = &old;
    spec.boundary = 512;
    assert_int_equal(sector_plain_open(&b, mem, &spec, NULL), -EINVAL);
    spec.boundary = SIZE + 4096;
    assert_int_equal(sector_plain_open(&b, mem, &spec, NULL), -EINVAL);
    blk_close(mem);
}

static void below_lies_no_plaintext(void **state)
{
    struct sector_spec spec = spec_for(4096, NULL);
    struct blk *mem = memory();
    struct blk *b = open_over(mem, &spec);
    const unsigned char *bytes = blk_memory_bytes(mem);
    unsigned char *buf = malloc(65536);

    (void)state;
    memset(buf, 'A', 65536);
    assert_int_equal(blk_write(b, buf, 65536, 131072), 0);
    assert_true(bytes_are_zero(bytes, OFFSET + 131072));
    assert_true(bytes_are_zero(bytes + OFFSET + 131072 + 65536, SIZE - 131072 - 65536));
    for (unsigned i = 0; i < 65536; i += 16)
        assert_memory_not_equal(bytes + OFFSET + 131072 + i, buf, 16);
    free(buf);
    blk_close(b);
}

static void zeros_below_read_as_zeros_and_come_from_discard(void **state)
{
    static const unsigned char zeros[8192];
    struct sector_spec spec = spec_for(65536, NULL);
    struct blk *mem = memory();
    unsigned char buf[8192];
    struct blk *b;

    (void)state;
    spec.discard = true;
    b = open_over(mem, &spec);
    assert_int_equal(blk_read(b, buf, sizeof(buf), 512), 0);
    assert_memory_equal(buf, zeros, sizeof(buf));
    memset(buf, 0x11, sizeof(buf));
    assert_int_equal(blk_write(b, buf, sizeof(buf), 512), 0);
    assert_int_equal(blk_discard(b, 512, 1024), 0);
    assert_int_equal(blk_read(b, buf, sizeof(buf), 512), 0);
    assert_int_equal(buf[511], 0x11);
    assert_memory_equal(buf + 512, zeros, 512);
    assert_int_equal(buf[1024], 0x11);
    assert_true(bytes_are_zero(blk_memory_bytes(mem) + OFFSET + 1024, 512));
    blk_close(b);
}

static void without_zero_pieces_zeros_are_enciphered(void **state)
{
    static unsigned char zeros[200 * 1024], buf[200 * 1024];
    struct sector_spec spec = spec_for(4096, NULL);
    struct blk *mem = memory();
    struct blk_extent extent;
    struct blk *b;

    (void)state;
    spec.zero_pieces = false;
    spec.discard = true;
    b = open_over(mem, &spec);
    assert_int_equal(blk_discard(b, sizeof(zeros), 4096), 0);
    assert_int_equal(blk_read(b, buf, sizeof(buf), 4096), 0);
    assert_memory_equal(buf, zeros, sizeof(buf));
    assert_false(bytes_are_zero(blk_memory_bytes(mem) + OFFSET + 4096, 512));
    assert_int_equal(blk_extent(b, 0, &extent), 0);
    assert_false(extent.hole);
    assert_int_equal(extent.end, SIZE);
    blk_close(b);
}

static void an_error_below_comes_up_as_it_is(void **state)
{
    struct sector_spec spec = spec_for(512, NULL);
    struct blk *fault = NULL;
    struct blk_fault rule = {
        .ops = BLK_FAULT_READ, .off = OFFSET + 300 * 1024, .len = 512, .err = EIO};
    unsigned char *buf = malloc(SIZE);
    struct pool *pool = NULL;
    struct blk *b;

    (void)state;
    assert_int_equal(pool_open(&pool, 3, NULL), 0);
    spec.pool = pool;
    assert_int_equal(blk_fault_open(&fault, memory()), 0);
    b = open_over(fault, &spec);
    blk_fault_add(fault, &rule);
    assert_int_equal(blk_read(b, buf, SIZE, 0), -EIO);
    assert_int_equal(blk_read(b, buf, 512, 300 * 1024), -EIO);
    assert_int_equal(blk_read(b, buf, 300 * 1024, 0), 0);
    blk_fault_clear(fault);
    rule.ops = BLK_FAULT_WRITE;
    rule.err = ENOSPC;
    blk_fault_add(fault, &rule);
    assert_int_equal(blk_write(b, buf, SIZE, 0), -ENOSPC);
    blk_close(b);
    pool_close(pool);
    free(buf);
}

static void a_geometry_that_does_not_fit_is_refused(void **state)
{
    static const struct {
        uint64_t offset, size;
        uint32_t sector;
        const char *words;
    } bad[] = {
        {OFFSET, SIZE + 4096, 4096, "does not fit"},
        {OFFSET + SIZE + 1, 0, 4096, "does not fit"},
        {UINT64_MAX - 511, 4096, 4096, "does not fit"},
        {OFFSET, UINT64_MAX - 4095, 4096, "does not fit"},
        {OFFSET, 4096 + 512, 4096, "whole number of sectors"},
        {OFFSET, SIZE, 5000, "does not take sectors"},
    };
    struct blk *mem = memory();

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sector_spec spec = spec_for(bad[i].sector, NULL);
        struct test_report rep;
        struct blk *b = NULL;

        test_report_init(&rep);
        spec.data_offset = bad[i].offset;
        spec.size = bad[i].size;
        assert_int_equal(sector_plain_open(&b, mem, &spec, &rep.rep), -EINVAL);
        assert_true(test_report_has(&rep, bad[i].words));
        assert_null(b);
    }
    blk_close(mem);
}

/* Keys change every 2 MiB here, so a larger disk has more of them. */
static void a_disk_of_another_size_keeps_what_it_has(void **state)
{
    struct sector_spec spec = spec_for(4096, NULL);
    struct blk *mem = memory();
    struct blk *b = open_over(mem, &spec), *again;
    unsigned char *before = malloc(3 * SIZE), *after = malloc(3 * SIZE);
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, before, 3 * SIZE);
    assert_int_equal(blk_write(b, before, SIZE, 0), 0);
    assert_int_equal(blk_resize(b, SIZE + 512), -EINVAL);
    assert_int_equal(blk_resize(b, 3 * SIZE), 0);
    assert_int_equal(b->size, 3 * SIZE);
    assert_int_equal(mem->size, OFFSET + 3 * SIZE);
    assert_int_equal(blk_read(b, after, 2 * SIZE, SIZE), 0);
    assert_true(bytes_are_zero(after, 2 * SIZE));
    assert_int_equal(blk_write(b, before + SIZE, 2 * SIZE, SIZE), 0);
    assert_int_equal(blk_read(b, after, 3 * SIZE, 0), 0);
    assert_memory_equal(before, after, 3 * SIZE);
    /* what it wrote is what a disk opened with that size reads */
    spec.size = 3 * SIZE;
    again = open_over(mem, &spec);
    assert_int_equal(blk_read(again, after, 3 * SIZE, 0), 0);
    assert_memory_equal(before, after, 3 * SIZE);
    again->below = NULL;
    blk_close(again);
    assert_int_equal(blk_resize(b, SIZE / 2), 0);
    assert_int_equal(mem->size, OFFSET + SIZE / 2);
    assert_int_equal(blk_read(b, after, 4096, SIZE / 2), -EINVAL);
    assert_int_equal(blk_read(b, after, SIZE / 2, 0), 0);
    assert_memory_equal(before, after, SIZE / 2);
    blk_close(b);
    free(before);
    free(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_operations_equal_an_array),
        cmocka_unit_test(any_operations_equal_an_array_in_other_modes),
        cmocka_unit_test(two_keys_meet_at_the_boundary),
        cmocka_unit_test(a_boundary_inside_a_sector_is_refused),
        cmocka_unit_test(below_lies_no_plaintext),
        cmocka_unit_test(zeros_below_read_as_zeros_and_come_from_discard),
        cmocka_unit_test(without_zero_pieces_zeros_are_enciphered),
        cmocka_unit_test(an_error_below_comes_up_as_it_is),
        cmocka_unit_test(a_geometry_that_does_not_fit_is_refused),
        cmocka_unit_test(a_disk_of_another_size_keeps_what_it_has),
    };

    return cmocka_run_group_tests_name("plain", tests, start, end);
}
