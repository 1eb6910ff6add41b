/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/record.h"
#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "lib/crash.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { SIZE = 1 << 18, PIECE = 4096 };

static struct blk *record_over(struct blk *below)
{
    struct blk *b = NULL;

    assert_int_equal(blk_record_open(&b, below), 0);
    return b;
}

static struct blk *record_over_memory(void)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, SIZE, 1), 0);
    memset(blk_memory_bytes(b), 0xee, SIZE);
    return record_over(b);
}

static void write_byte(struct blk *b, int value, size_t len, uint64_t off)
{
    AUTO_FREE unsigned char *bytes = malloc(len);

    memset(bytes, value, len);
    assert_int_equal(blk_write(b, bytes, len, off), 0);
}

static void the_log_tells_what_changed_the_device(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    const struct blk_record_entry *log;
    unsigned char buf[4];
    size_t n;

    (void)state;
    assert_int_equal(blk_write(b, "abcd", 4, 10), 0);
    assert_int_equal(blk_read(b, buf, 4, 10), 0);
    assert_int_equal(blk_flush(b), 0);
    assert_int_equal(blk_discard(b, 100, 200), 0);
    assert_int_equal(blk_write_zeroes(b, 300, 400), 0);
    log = blk_record_log(b, &n);
    assert_int_equal(n, 4);
    assert_int_equal(log[0].op, BLK_RECORD_WRITE);
    assert_int_equal(log[0].off, 10);
    assert_int_equal(log[0].len, 4);
    assert_memory_equal(log[0].bytes, "abcd", 4);
    assert_int_equal(log[1].op, BLK_RECORD_FLUSH);
    assert_int_equal(log[1].n_durable, 1);
    assert_int_equal(log[2].op, BLK_RECORD_ZERO);
    assert_int_equal(log[2].off, 200);
    assert_int_equal(log[2].len, 100);
    assert_int_equal(log[3].op, BLK_RECORD_ZERO);
    assert_int_equal(log[3].len, 300);
}

static void replaying_everything_gives_the_device(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);
    uint64_t seed = test_seed();
    size_t n;

    (void)state;
    test_against_array(b, &seed, 500, 20000);
    blk_record_log(b, &n);
    blk_record_replay(b, image, n, 1, 256);
    assert_memory_equal(image, blk_memory_bytes(b->below), SIZE);
}

static void replaying_nothing_gives_the_device_as_it_was(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);

    (void)state;
    write_byte(b, 1, SIZE, 0);
    blk_record_replay(b, image, 0, 1, 256);
    assert_int_equal(image[0], 0xee);
    assert_memory_equal(image, image + 1, SIZE - 1);
    blk_record_replay(b, image, 1, 1, 0); /* not flushed: perhaps nothing of it */
    assert_int_equal(image[0], 0xee);
    assert_memory_equal(image, image + 1, SIZE - 1);
}

static void what_a_flush_covers_is_always_there(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);

    (void)state;
    write_byte(b, 1, SIZE, 0);
    write_byte(b, 2, 3 * PIECE, PIECE);
    assert_int_equal(blk_flush(b), 0);
    write_byte(b, 3, SIZE / 2, 0);
    for (uint64_t seed = 0; seed < 50; seed++) {
        blk_record_replay(b, image, 4, seed, 0);
        assert_int_equal(image[0], 1);
        assert_int_equal(image[PIECE], 2);
        assert_int_equal(image[SIZE - 1], 1);
        blk_record_replay(b, image, 4, seed, 128);
        assert_int_not_equal(image[PIECE], 1);
        assert_int_equal(image[SIZE - 1], 1);
    }
    blk_record_replay(b, image, 2, 1, 0); /* the crash came before the flush returned */
    assert_int_equal(image[0], 0xee);
}

static void pieces_after_the_flush_are_whole_and_by_chance(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE), *again = malloc(SIZE);
    unsigned n_new = 0;

    (void)state;
    write_byte(b, 1, SIZE - 100, 100);
    blk_record_replay(b, image, 1, 7, 64);
    for (size_t at = 0; at < SIZE; at += PIECE) {
        size_t from = at == 0 ? 100 : at;

        assert_memory_equal(image + from, image + from + 1, at + PIECE - from - 1);
        n_new += image[from] == 1;
    }
    assert_in_range(n_new, 3, 40); /* 16 of 64 expected */
    blk_record_replay(b, again, 1, 7, 64);
    assert_memory_equal(image, again, SIZE);
    blk_record_replay(b, again, 1, 8, 64);
    assert_memory_not_equal(image, again, SIZE);
}

/* A flush that waits while another write goes by. */
static void *slow_flush(void *b)
{
    assert_int_equal(blk_flush(b), 0);
    return NULL;
}

static void a_write_during_a_flush_is_not_covered(void **state)
{
    const struct blk_fault slow = {.ops = BLK_FAULT_FLUSH, .delay_us = 200000};
    struct blk *fault = NULL;
    AUTO_FREE unsigned char *image = malloc(SIZE);
    pthread_t thread;
    size_t n;

    (void)state;
    assert_int_equal(blk_memory_open(&fault, SIZE, 1), 0);
    assert_int_equal(blk_fault_open(&fault, fault), 0);
    blk_fault_add(fault, &slow);

    AUTO_BLK struct blk *b = record_over(fault);

    write_byte(b, 1, 1, 0);
    assert_int_equal(pthread_create(&thread, NULL, slow_flush, b), 0);
    while (blk_fault_count(fault) == 0)
        sched_yield();
    write_byte(b, 2, 1, 1);
    pthread_join(thread, NULL);
    assert_int_equal(blk_record_log(b, &n)[2].op, BLK_RECORD_FLUSH);
    assert_int_equal(n, 3);
    blk_record_replay(b, image, 3, 1, 0);
    assert_int_equal(image[0], 1);
    assert_int_equal(image[1], 0);
}

static void a_failed_write_is_logged_with_what_it_left(void **state)
{
    const struct blk_fault half = {.ops = BLK_FAULT_WRITE, .err = EIO, .partial = true};
    struct blk *fault = NULL;
    unsigned char *image;
    size_t n;

    (void)state;
    assert_int_equal(blk_memory_open(&fault, SIZE, 1), 0);
    assert_int_equal(blk_fault_open(&fault, fault), 0);
    blk_fault_add(fault, &half);

    AUTO_BLK struct blk *b = record_over(fault);

    image = malloc(SIZE);
    assert_int_equal(blk_write(b, "abcd", 4, 0), -EIO);
    assert_int_equal(blk_flush(b), 0);
    blk_record_log(b, &n);
    blk_record_replay(b, image, n, 1, 0);
    assert_memory_equal(image, "ab\0\0", 4);
    free(image);
}

static void *write_own_part(void *arg)
{
    struct blk *b = arg;
    static atomic_uint next;
    uint64_t off = atomic_fetch_add(&next, 1) * (SIZE / 4);

    for (unsigned i = 0; i < 200; i++) {
        write_byte(b, (int)i + 1, 100, off + i * 100);
        if (i % 50 == 0)
            assert_int_equal(blk_flush(b), 0);
    }
    return NULL;
}

static void it_records_from_many_threads(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);
    pthread_t threads[4];
    size_t n;

    (void)state;
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, write_own_part, b), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    blk_record_log(b, &n);
    assert_int_equal(n, 4 * 204);
    blk_record_replay(b, image, n, 1, 256);
    assert_memory_equal(image, blk_memory_bytes(b->below), SIZE);
}

static void a_write_tears_at_every_512_bytes(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);
    struct blk_record_crash crash = {.n_entries = 1, .piece = 512, .density = BLK_RECORD_BITS};

    (void)state;
    write_byte(b, 1, 3 * 512, 512 + 100); /* 412, 512, 512, 100 bytes of four pieces */
    assert_int_equal(blk_record_open_pieces(b, 1, 512), 4);
    assert_int_equal(blk_record_open_pieces(b, 1, 4096), 1);
    for (crash.seed = 0; crash.seed < 16; crash.seed++) {
        blk_record_replay_crash(b, image, &crash);
        for (size_t at = 0; at < PIECE; at++) {
            bool written = at >= 612 && at < 612 + 3 * 512;
            bool there = written && (crash.seed >> (at / 512 - 1) & 1) != 0;

            assert_int_equal(image[at], there ? 1 : 0xee);
        }
    }
}

static void chance_decides_for_each_piece_of_512_bytes(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(SIZE);
    const struct blk_record_crash crash = {.n_entries = 1, .piece = 512, .density = 128, .seed = 7};
    unsigned n_new = 0, n_torn = 0;

    (void)state;
    write_byte(b, 1, SIZE, 0);
    blk_record_replay_crash(b, image, &crash);
    for (size_t at = 0; at < SIZE; at += 512) {
        assert_memory_equal(image + at, image + at + 1, 511);
        n_new += image[at] == 1;
        n_torn += at % PIECE != 0 && image[at] != image[at - 1];
    }
    assert_in_range(n_new, 150, 362); /* 256 of 512 expected */
    assert_in_range(n_torn, 100, 350);
}

static void pieces_that_a_flush_covers_are_not_open(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();

    (void)state;
    write_byte(b, 1, 4096, 0);
    assert_int_equal(blk_flush(b), 0);
    assert_int_equal(blk_write_zeroes(b, 1024, 512), 0);
    assert_int_equal(blk_record_open_pieces(b, 0, 512), 0);
    assert_int_equal(blk_record_open_pieces(b, 1, 512), 8);
    assert_int_equal(blk_record_open_pieces(b, 2, 512), 0);
    assert_int_equal(blk_record_open_pieces(b, 3, 512), 2);
}

/* What a walk over the crashes of two writes of 8 pieces, with a flush between, has met. */
struct met {
    unsigned char subsets[2][256]; /* of the pieces of each write */
    unsigned n;
};

static int note_crash(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    const unsigned char *bytes = blk_memory_bytes(left);
    struct met *met = arg;
    unsigned subset[2] = {0};

    for (unsigned i = 0; i < 16; i++)
        subset[i / 8] |= (unsigned)(bytes[i * 512] == 1 + i / 8) << i % 8;
    for (unsigned i = 0; i < 2; i++)
        met->subsets[i][subset[i]] = 1;
    met->n++;
    memset(blk_memory_bytes(left), 3, left->size); /* the next one gets its own */
    return subset[1] != 0 && subset[0] != 0xff ? (int)crash->n_entries : 0;
}

static void a_walk_meets_every_way_to_tear_a_block(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    struct met met = {0};
    uint64_t seed = 1;

    (void)state;
    write_byte(b, 1, 4096, 0);
    assert_int_equal(blk_flush(b), 0);
    write_byte(b, 2, 4096, 4096);
    assert_int_equal(blk_flush(b), 0);
    test_each_crash(b, 5, &seed, note_crash, &met);
    assert_int_equal(met.n, 1 + 256 + 1 + 256 + 1);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned subset = 0; subset < 256; subset++)
            assert_int_equal(met.subsets[i][subset], 1);
}

static int count_crash(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    unsigned *n = arg; /* of each: all there, nothing there, torn within 4096, whole 4096 */
    unsigned n_there = 0, torn = 0;

    for (size_t at = 0; at < SIZE; at += 512) {
        bool there = blk_memory_bytes(left)[at] == 1;

        n_there += there;
        torn |= at % PIECE != 0 && there != (blk_memory_bytes(left)[at - 1] == 1);
    }
    if (crash->n_entries == 0)
        return n_there != 0;
    n[n_there == SIZE / 512 ? 0 : n_there == 0 ? 1 : torn ? 2 : 3]++;
    return 0;
}

static void a_walk_over_large_writes_takes_chances(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    unsigned n[4] = {0};
    uint64_t seed = test_seed();

    (void)state;
    write_byte(b, 1, SIZE, 0);
    test_each_crash(b, 6, &seed, count_crash, n);
    assert_int_equal(n[0], 1);
    assert_int_equal(n[1], 1);
    assert_int_equal(n[2], 6);
    assert_int_equal(n[3], 6);
}

static void a_device_that_grew_was_zero_there(void **state)
{
    AUTO_BLK struct blk *b = record_over_memory();
    AUTO_FREE unsigned char *image = malloc(2 * SIZE);
    size_t n;

    (void)state;
    assert_int_equal(blk_resize(b, SIZE / 2), -EOPNOTSUPP);
    assert_int_equal(blk_resize(b, 2 * SIZE), 0);
    write_byte(b, 1, 4096, 2 * SIZE - 4096);
    blk_record_log(b, &n);
    blk_record_replay(b, image, 0, 1, 256);
    assert_int_equal(image[SIZE - 1], 0xee);
    assert_true(bytes_are_zero(image + SIZE, SIZE));
    blk_record_replay(b, image, n, 1, 256);
    assert_memory_equal(image, blk_memory_bytes(b->below), 2 * SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_tells_what_changed_the_device),
        cmocka_unit_test(replaying_everything_gives_the_device),
        cmocka_unit_test(replaying_nothing_gives_the_device_as_it_was),
        cmocka_unit_test(what_a_flush_covers_is_always_there),
        cmocka_unit_test(pieces_after_the_flush_are_whole_and_by_chance),
        cmocka_unit_test(a_write_during_a_flush_is_not_covered),
        cmocka_unit_test(a_failed_write_is_logged_with_what_it_left),
        cmocka_unit_test(it_records_from_many_threads),
        cmocka_unit_test(a_write_tears_at_every_512_bytes),
        cmocka_unit_test(chance_decides_for_each_piece_of_512_bytes),
        cmocka_unit_test(pieces_that_a_flush_covers_are_not_open),
        cmocka_unit_test(a_walk_meets_every_way_to_tear_a_block),
        cmocka_unit_test(a_walk_over_large_writes_takes_chances),
        cmocka_unit_test(a_device_that_grew_was_zero_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
