/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves block/overlay.c: reads of any place and length against an array that has the range in it,
 * extents, and that nothing can be changed. */

#include "block/overlay.h"

#include "base/auto.h"
#include "block/memory.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { SIZE = 1 << 16, OFF = 3 * 4096, LEN = 5 * 4096 };

static unsigned char wanted[SIZE];

static struct blk *overlay(uint64_t seed, uint32_t granule)
{
    struct blk *b = NULL, *mem = NULL;

    assert_int_equal(blk_memory_open(&mem, SIZE, granule), 0);
    test_random_bytes(&seed, blk_memory_bytes(mem), SIZE);
    memcpy(wanted, blk_memory_bytes(mem), SIZE);
    test_random_bytes(&seed, wanted + OFF, LEN);
    assert_int_equal(blk_overlay_open(&b, mem, wanted + OFF, LEN, OFF), 0);
    return b;
}

static void reads_have_the_range_in_them(void **state)
{
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *b = overlay(seed, 1);
    static unsigned char got[SIZE];

    (void)state;
    assert_int_equal(blk_read(b, got, SIZE, 0), 0);
    assert_memory_equal(got, wanted, SIZE);
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t off = test_random(&seed) % SIZE, len = test_random(&seed) % (SIZE - off) / 4 + 1;

        assert_int_equal(blk_read(b, got, len, off), 0);
        assert_memory_equal(got, wanted + off, len);
    }
}

static void nothing_can_be_changed(void **state)
{
    AUTO_BLK struct blk *b = overlay(1, 512);
    static unsigned char got[SIZE];

    (void)state;
    assert_int_equal(b->granule, 512);
    assert_int_equal(blk_write(b, got, 512, OFF), -EROFS);
    assert_int_equal(blk_write(b, got, 512, 0), -EROFS);
    assert_int_equal(blk_discard(b, 512, OFF), -EROFS);
    assert_int_equal(blk_write_zeroes(b, 512, OFF), -EROFS);
    assert_int_equal(blk_flush(b), 0);
    assert_int_equal(blk_read(b, got, SIZE, 0), 0);
    assert_memory_equal(got, wanted, SIZE);
}

/* --- a layer below that is one hole --- */

static int hole_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    (void)off;
    *ret = (struct blk_extent){.end = b->size, .hole = true};
    return 0;
}

static void hole_close(struct blk *b)
{
    (void)b;
}

static void a_hole_ends_where_the_range_begins(void **state)
{
    static const struct blk_ops ops = {.name = "hole", .extent = hole_extent, .close = hole_close};
    struct blk hole = {.ops = &ops, .size = SIZE, .granule = 1};
    AUTO_BLK struct blk *b = NULL;
    struct blk_extent e;

    (void)state;
    assert_int_equal(blk_overlay_open(&b, &hole, wanted, LEN, OFF), 0);
    assert_int_equal(blk_extent(b, 0, &e), 0);
    assert_true(e.hole && e.end == OFF);
    assert_int_equal(blk_extent(b, OFF + 5, &e), 0);
    assert_true(!e.hole && e.end == OFF + LEN);
    assert_int_equal(blk_extent(b, OFF + LEN, &e), 0);
    assert_true(e.hole && e.end == SIZE);
}

static void a_range_that_does_not_fit_is_refused(void **state)
{
    struct blk *b = NULL, *mem = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&mem, SIZE, 512), 0);
    assert_int_equal(blk_overlay_open(&b, mem, wanted, 512, SIZE), -EINVAL);
    assert_int_equal(blk_overlay_open(&b, mem, wanted, 512, UINT64_MAX - 511), -EINVAL);
    assert_int_equal(blk_overlay_open(&b, mem, wanted, 100, 0), -EINVAL);
    assert_int_equal(blk_overlay_open(&b, mem, wanted, 512, 100), -EINVAL);
    assert_null(b);
    blk_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_have_the_range_in_them),
        cmocka_unit_test(nothing_can_be_changed),
        cmocka_unit_test(a_hole_ends_where_the_range_begins),
        cmocka_unit_test(a_range_that_does_not_fit_is_refused),
    };

    return cmocka_run_group_tests_name("block/overlay", tests, NULL, NULL);
}
