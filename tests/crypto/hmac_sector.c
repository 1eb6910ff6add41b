/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves crypto/hmac_sector.c: random operations against an array for every MAC, cipher and size;
 * what was changed below cannot be read, is named, and takes nothing else with it; what lies below
 * is pieces as the format says. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "base/bytes.h"
#include "base/secret.h"
#include "block/memory.h"
#include "crypto/sector.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct secret prk, iv_key, mac_key;
static const char *const macs[] = {"hmac-md5",    "hmac-sha1",   "hmac-ripemd160",
                                   "hmac-sha256", "hmac-sha384", "hmac-sha512"};
#define N_MACS (sizeof(macs) / sizeof(macs[0]))

static int start(void **state)
{
    (void)state;
    if (secret_start(NULL) < 0 || secret_make(&prk, 64) < 0 || secret_make(&iv_key, 64) < 0 ||
        secret_make(&mac_key, 64) < 0)
        return -1;
    for (unsigned i = 0; i < 64; i++) {
        prk.bytes[i] = (unsigned char)i;
        iv_key.bytes[i] = (unsigned char)(i * 3 + 1);
        mac_key.bytes[i] = (unsigned char)(i * 5 + 2);
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    secret_done(&prk);
    secret_done(&iv_key);
    secret_done(&mac_key);
    return 0;
}

static struct sector_spec spec_for(const char *cipher, const char *mac, uint32_t sector,
                                   uint32_t piece, uint64_t size)
{
    const struct cipher *c = cipher_named(cipher);
    struct sector_spec s = {
        .cipher = c,
        .sector_size = sector,
        .size = size,
        .keys = {.prk = &prk, .derivation = CHUNK_HMAC, .shift = 20, .head = "ekey", .head_len = 4},
        .units = {.iv = c->mode == CIPHER_CBC ? SECTOR_IV_OFFSET_HASH : SECTOR_IV_OFFSET,
                  .iv_key = &iv_key,
                  .mac = mac,
                  .mac_key = &mac_key},
        .mac_piece = piece,
        .n_lanes = 4,
        .n_callers = 8,
    };

    return s;
}

/* As docs/geli-format.md 8.1 counts. */
static uint64_t stored(const struct sector_spec *s)
{
    uint64_t room = (s->mac_piece - sector_mac_length(s->units.mac)) / 16 * 16;

    return s->size / s->sector_size * ((s->sector_size + room - 1) / room) * s->mac_piece;
}

static struct blk *memory(const struct sector_spec *s)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, stored(s) + 512, 1), 0);
    return b;
}

static struct blk *open_over(struct blk *below, const struct sector_spec *s, struct report *rep)
{
    struct blk *b = NULL;

    assert_int_equal(sector_hmac_open(&b, below, s, rep), 0);
    return b;
}

/* Nothing was ever written: a disk as `create` leaves it. */
static void write_all(struct blk *b)
{
    assert_int_equal(blk_write_zeroes(b, b->size, 0), 0);
}

static void any_operations_equal_an_array(void **state)
{
    static const struct {
        const char *cipher;
        uint32_t sector, piece;
    } kinds[] = {{"aes-128-xts", 512, 512},    {"aes-256-xts", 4096, 512},
                 {"aes-192-cbc", 4096, 4096},  {"camellia-256-cbc", 16384, 512},
                 {"3des-192-cbc", 2048, 1024}, {"blowfish-448-cbc", 8192, 4096},
                 {"null", 1024, 512},          {"aes-256-cbc", 65536, 4096},
                 {"aes-128-xts", 131072, 512}};
    uint64_t seed = test_seed();
    struct pool *pool = NULL;

    (void)state;
    assert_int_equal(pool_open(&pool, 3, NULL), 0);
    for (unsigned k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++)
        for (unsigned m = k % 2; m < N_MACS; m += 2) {
            struct sector_spec s =
                spec_for(kinds[k].cipher, macs[m], kinds[k].sector, kinds[k].piece, 1024 * 1024);
            struct blk *mem = memory(&s), *b;

            s.pool = m % 4 < 2 ? pool : NULL;
            b = open_over(mem, &s, NULL);
            write_all(b);
            crowd_run(&(struct crowd_spec){.blk = b,
                                           .seed = seed + k * N_MACS + m,
                                           .n_threads = 3,
                                           .n_ops = 12,
                                           .max_len = 200 * 1024,
                                           .granule = kinds[k].sector,
                                           .zeros = 1});
            assert_true(bytes_are_zero(blk_memory_bytes(mem) + stored(&s), 512));
            blk_close(b);
        }
    pool_close(pool);
}

/* A disk of eight sectors of 4096 bytes in nine pieces each; sector i holds bytes i. */
enum { SECTOR = 4096, PIECES = 9, EACH = PIECES * 512, N = 8 };

struct disk {
    struct blk *mem, *b;
    unsigned char *bytes; /* below */
    struct test_report rep;
};

static void fill(struct disk *d, unsigned i)
{
    unsigned char sector[SECTOR];

    memset(sector, (int)i, sizeof(sector));
    assert_int_equal(blk_write(d->b, sector, SECTOR, (uint64_t)i * SECTOR), 0);
}

static void disk_open(struct disk *d, const char *mac)
{
    struct sector_spec s = spec_for("aes-128-xts", mac, SECTOR, 512, N * SECTOR);

    test_report_init(&d->rep);
    d->mem = memory(&s);
    assert_int_equal(stored(&s), N * EACH);
    d->bytes = (unsigned char *)(uintptr_t)blk_memory_bytes(d->mem);
    d->b = open_over(d->mem, &s, &d->rep.rep);
    for (unsigned i = 0; i < N; i++)
        fill(d, i);
}

/* Bit i of bad: sector i must not be readable. All others are, alone and as what is between. */
static void check_bad(struct disk *d, unsigned bad)
{
    static unsigned char all[N * SECTOR];
    unsigned char got[SECTOR], want[SECTOR];

    for (unsigned i = 0; i < N; i++) {
        memset(want, (int)i, sizeof(want));
        if (bad >> i & 1) {
            assert_int_equal(blk_read(d->b, got, SECTOR, (uint64_t)i * SECTOR), -EBADMSG);
            continue;
        }
        assert_int_equal(blk_read(d->b, got, SECTOR, (uint64_t)i * SECTOR), 0);
        assert_memory_equal(got, want, SECTOR);
    }
    assert_int_equal(blk_read(d->b, all, sizeof(all), 0), bad ? -EBADMSG : 0);
}

static void one_flipped_bit_takes_its_sector_alone(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned m = 0; m < 2; m++) {
        const char *mac = m ? "hmac-sha256" : "hmac-ripemd160";
        uint32_t len = sector_mac_length(mac);
        struct disk d;

        disk_open(&d, mac);
        check_bad(&d, 0);
        for (unsigned n = 0; n < 60; n++) {
            unsigned sector = (unsigned)(test_random(&seed) % N);
            unsigned piece = (unsigned)(test_random(&seed) % PIECES);
            uint32_t data = piece < PIECES - 1 ? (512 - len) / 16 * 16
                                               : SECTOR - (PIECES - 1) * ((512 - len) / 16 * 16);
            uint32_t at = (uint32_t)(test_random(&seed) % (n % 2 ? len : len + data));
            unsigned char *byte = d.bytes + sector * EACH + piece * 512 + at;
            unsigned char bit = (unsigned char)(1u << test_random(&seed) % 8);

            *byte ^= bit;
            check_bad(&d, 1u << sector);
            *byte ^= bit;
        }
        check_bad(&d, 0);
        blk_close(d.b);
    }
}

static void swap(unsigned char *a, unsigned char *b, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        unsigned char c = a[i];

        a[i] = b[i];
        b[i] = c;
    }
}

static void swapped_sectors_and_pieces_do_not_verify(void **state)
{
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha256");
    swap(d.bytes + 2 * EACH, d.bytes + 5 * EACH, EACH);
    check_bad(&d, 1u << 2 | 1u << 5);
    swap(d.bytes + 2 * EACH, d.bytes + 5 * EACH, EACH);
    swap(d.bytes + 3 * EACH, d.bytes + 3 * EACH + 512, 512);
    check_bad(&d, 1u << 3);
    blk_close(d.b);
}

/* 20 bytes of MAC: 12 are left of 512, and 236 in the last piece. */
static unsigned sha1_used(unsigned piece)
{
    return 20 + (piece % PIECES < PIECES - 1 ? 480 : SECTOR - (PIECES - 1) * 480);
}

/* Foreign bytes there are not looked at, and do not come back by way of our buffers. */
static void what_is_unused_in_a_piece_is_zero_and_not_looked_at(void **state)
{
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha1");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < N * PIECES; i++) {
            unsigned used = sha1_used(i);

            assert_true(bytes_are_zero(d.bytes + i * 512 + used, 512 - used));
            memset(d.bytes + i * 512 + used, 0xee, 512 - used);
        }
        check_bad(&d, 0);
        for (unsigned i = 0; i < N; i++)
            fill(&d, i);
    }
    blk_close(d.b);
}

static void a_bad_range_is_named_once_and_again_after_it_was_mended(void **state)
{
    unsigned char buf[SECTOR];
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha256");
    d.bytes[3 * EACH + 100] ^= 1;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(blk_read(d.b, buf, SECTOR, 3 * SECTOR), -EBADMSG);
    assert_int_equal(d.rep.n_lines, 1);
    assert_true(test_report_has(&d.rep, "bytes 12288 to 16383 of the disk do not verify"));
    fill(&d, 3);
    check_bad(&d, 0);
    d.bytes[3 * EACH + 100] ^= 1;
    assert_int_equal(blk_read(d.b, buf, SECTOR, 3 * SECTOR), -EBADMSG);
    assert_int_equal(d.rep.n_lines, 2);
    blk_close(d.b);
}

static void a_disk_that_was_never_written_is_said_in_few_words(void **state)
{
    struct sector_spec s = spec_for("aes-128-xts", "hmac-sha256", 512, 512, 4 * 1024 * 1024);
    AUTO_FREE unsigned char *buf = malloc(65536);
    struct test_report rep;
    struct blk *b;

    (void)state;
    test_report_init(&rep);
    b = open_over(memory(&s), &s, &rep.rep);
    for (uint64_t off = 0; off < s.size; off += 65536)
        assert_int_equal(blk_read(b, buf, 65536, off), -EBADMSG);
    assert_int_equal(rep.n_lines, 1);
    for (uint64_t off = 0; off < s.size; off += 8192) /* every other one: all are new */
        assert_int_equal(blk_write(b, buf, 512, off), 0);
    for (uint64_t off = 512; off < s.size; off += 8192)
        assert_int_equal(blk_read(b, buf, 512, off), -EBADMSG);
    assert_in_range(rep.n_lines, 2, 30);
    blk_close(b);
}

static void zeros_are_enciphered_and_no_hole_is_told_of(void **state)
{
    static const unsigned char zeros[SECTOR];
    unsigned char got[SECTOR];
    struct blk_extent e;
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha256");
    assert_int_equal(blk_discard(d.b, 2 * SECTOR, SECTOR), 0);
    assert_int_equal(blk_write_zeroes(d.b, SECTOR, 3 * SECTOR), 0);
    for (unsigned i = 1; i < 4; i++) {
        assert_int_equal(blk_read(d.b, got, SECTOR, (uint64_t)i * SECTOR), 0);
        assert_memory_equal(got, zeros, SECTOR);
        assert_false(bytes_are_zero(d.bytes + i * EACH, 512));
    }
    assert_int_equal(blk_extent(d.b, SECTOR, &e), 0);
    assert_false(e.hole);
    assert_int_equal(e.end, N * SECTOR);
    blk_close(d.b);
}

static void forgotten_keys_come_back_with_all_of_them(void **state)
{
    AUTO_SECRET struct secret other = {0};
    struct sector_secrets all = {.prk = &prk, .iv_key = &iv_key, .mac_key = &mac_key};
    struct sector_secrets wrong = all;
    unsigned char got[SECTOR];
    struct disk d;

    (void)state;
    assert_int_equal(secret_copy(&other, mac_key.bytes, mac_key.len), 0);
    other.bytes[5] ^= 1;
    wrong.mac_key = &other;
    disk_open(&d, "hmac-sha256");
    sector_forget(d.b);
    assert_int_equal(blk_read(d.b, got, SECTOR, 0), -EIO);
    assert_int_equal(blk_write(d.b, got, SECTOR, 0), -EIO);
    assert_int_equal(sector_rekey(d.b, &wrong), 0);
    assert_int_equal(blk_read(d.b, got, SECTOR, 0), -EBADMSG);
    sector_forget(d.b);
    assert_int_equal(sector_rekey(d.b, &all), 0);
    check_bad(&d, 0);
    blk_close(d.b);
}

static void what_does_not_fit_is_refused(void **state)
{
    static const struct {
        uint32_t sector, piece;
        uint64_t size;
        const char *mac, *why;
    } bad[] = {{512, 4096, 65536, "hmac-sha256", "pieces of 4096 bytes do not make sectors"},
               {4096, 256, 65536, "hmac-sha256", "pieces of 256"},
               {4096, 0, 65536, "hmac-sha256", "pieces of 0"},
               {4096, 1000, 65536, "hmac-sha256", "pieces of 1000"},
               {4096, 512, 65536 + 512, "hmac-sha256", "whole number of sectors"},
               {4096, 512, UINT64_C(1) << 62, "hmac-sha256", "does not fit into"},
               {4096, 512, 65536, "hmac-sha3", "there is no MAC hmac-sha3"}};
    struct sector_spec good = spec_for("aes-128-xts", "hmac-md5", 4096, 512, 65536);
    struct blk *mem = memory(&good), *b = NULL;

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sector_spec s =
            spec_for("aes-128-xts", bad[i].mac, bad[i].sector, bad[i].piece, bad[i].size);
        struct test_report rep;

        test_report_init(&rep);
        assert_int_equal(sector_hmac_open(&b, mem, &s, &rep.rep), -EINVAL);
        assert_true(test_report_has(&rep, bad[i].why));
    }
    blk_close(mem);
}

/* Offsets are those below, so a disk that begins one sector later is the rest of the disk. */
static void a_disk_that_begins_later_has_the_same_sectors(void **state)
{
    struct sector_spec s =
        spec_for("aes-128-xts", "hmac-sha256", SECTOR, 512, (uint64_t)(N - 1) * SECTOR);
    unsigned char got[SECTOR], want[SECTOR];
    struct blk *later;
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha256");
    s.data_offset = EACH;
    later = open_over(d.mem, &s, NULL);
    for (unsigned i = 0; i < N - 1; i++) {
        memset(want, (int)i + 1, sizeof(want));
        assert_int_equal(blk_read(later, got, SECTOR, (uint64_t)i * SECTOR), 0);
        assert_memory_equal(got, want, SECTOR);
    }
    later->below = NULL; /* stays */
    blk_close(later);
    blk_close(d.b);
}

static void a_disk_of_another_size_keeps_what_it_has(void **state)
{
    unsigned char got[SECTOR];
    struct disk d;

    (void)state;
    disk_open(&d, "hmac-sha256");
    assert_int_equal(blk_resize(d.b, 2 * N * SECTOR), 0);
    assert_int_equal(d.mem->size, 2 * N * EACH);
    assert_int_equal(blk_read(d.b, got, SECTOR, N * SECTOR), -EBADMSG);
    assert_int_equal(blk_write_zeroes(d.b, N * SECTOR, N * SECTOR), 0);
    assert_int_equal(blk_read(d.b, got, SECTOR, N * SECTOR), 0);
    assert_int_equal(blk_resize(d.b, N * SECTOR), 0);
    d.bytes = (unsigned char *)(uintptr_t)blk_memory_bytes(d.mem);
    check_bad(&d, 0);
    blk_close(d.b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_operations_equal_an_array),
        cmocka_unit_test(one_flipped_bit_takes_its_sector_alone),
        cmocka_unit_test(swapped_sectors_and_pieces_do_not_verify),
        cmocka_unit_test(what_is_unused_in_a_piece_is_zero_and_not_looked_at),
        cmocka_unit_test(a_bad_range_is_named_once_and_again_after_it_was_mended),
        cmocka_unit_test(a_disk_that_was_never_written_is_said_in_few_words),
        cmocka_unit_test(zeros_are_enciphered_and_no_hole_is_told_of),
        cmocka_unit_test(forgotten_keys_come_back_with_all_of_them),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_disk_that_begins_later_has_the_same_sectors),
        cmocka_unit_test(a_disk_of_another_size_keeps_what_it_has),
    };

    return cmocka_run_group_tests_name("hmac_sector", tests, start, end);
}
