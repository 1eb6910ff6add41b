/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/fault.h"
#include "base/bytes.h"
#include "block/memory.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { SIZE = 1 << 20 };

static struct blk *fault_over_memory(uint32_t granule)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, SIZE, granule), 0);
    assert_int_equal(blk_fault_open(&b, b), 0);
    return b;
}

static void without_rules_it_is_what_is_below(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(512);
    uint64_t seed = test_seed();

    (void)state;
    test_against_array(b, &seed, 1000, 65536);
    assert_int_equal(blk_fault_count(b), 0);
}

static void a_rule_strikes_its_range_alone(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault rule = {
        .ops = BLK_FAULT_READ | BLK_FAULT_FLUSH, .off = 1000, .len = 10, .err = EIO};
    unsigned char buf[100];

    (void)state;
    assert_int_equal(blk_fault_add(b, &rule), 0);
    assert_int_equal(blk_read(b, buf, 100, 900), 0);
    assert_int_equal(blk_read(b, buf, 100, 1010), 0);
    assert_int_equal(blk_read(b, buf, 100, 901), -EIO);
    assert_int_equal(blk_read(b, buf, 1, 1009), -EIO);
    assert_int_equal(blk_read(b, buf, 1, 1005), -EIO);
    assert_int_equal(blk_write(b, buf, 100, 950), 0);
    assert_int_equal(blk_flush(b), 0); /* a flush has no range */
    assert_int_equal(blk_fault_count(b), 3);
}

static void a_failed_read_leaves_junk(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault rule = {.ops = BLK_FAULT_READ, .err = EIO};
    unsigned char byte = 0;

    (void)state;
    blk_fault_add(b, &rule);
    assert_int_equal(blk_read(b, &byte, 1, 0), -EIO);
    assert_int_not_equal(byte, 0);
}

static void after_lets_pass_and_times_ends(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault rule = {.ops = BLK_FAULT_FLUSH, .after = 2, .times = 3, .err = ENOSPC};

    (void)state;
    blk_fault_add(b, &rule);
    for (int i = 0; i < 8; i++)
        assert_int_equal(blk_flush(b), i >= 2 && i < 5 ? -ENOSPC : 0);
    assert_int_equal(blk_fault_count(b), 3);
}

static void the_first_rule_that_matches_strikes(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault once = {.ops = BLK_FAULT_DISCARD, .times = 1, .err = EIO};
    const struct blk_fault then = {.ops = BLK_FAULT_DISCARD, .err = EDQUOT};

    (void)state;
    assert_int_equal(blk_fault_add(b, &once), 0);
    assert_int_equal(blk_fault_add(b, &then), 1);
    assert_int_equal(blk_discard(b, 10, 0), -EIO);
    assert_int_equal(blk_write_zeroes(b, 10, 0), -EDQUOT);
    blk_fault_clear(b);
    assert_int_equal(blk_discard(b, 10, 0), 0);
}

static void there_is_a_last_rule(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault rule = {.ops = BLK_FAULT_READ, .err = EIO};

    (void)state;
    for (int i = 0; i < BLK_FAULT_RULES; i++)
        assert_int_equal(blk_fault_add(b, &rule), i);
    assert_int_equal(blk_fault_add(b, &rule), -ENOSPC);
}

static void a_failed_write_stores_nothing_or_its_first_half(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(512);
    struct blk_fault rule = {.ops = BLK_FAULT_WRITE, .times = 1, .err = EIO};
    unsigned char ones[1536], buf[1536];

    (void)state;
    memset(ones, 1, sizeof(ones));
    blk_fault_add(b, &rule);
    rule.partial = true;
    blk_fault_add(b, &rule);
    assert_int_equal(blk_write(b, ones, 1536, 0), -EIO);
    assert_int_equal(blk_read(b, buf, 1536, 0), 0);
    assert_true(bytes_are_zero(buf, 1536));
    assert_int_equal(blk_write(b, ones, 1536, 0), -EIO);
    assert_int_equal(blk_read(b, buf, 1536, 0), 0);
    assert_memory_equal(buf, ones, 512); /* half of three granules, whole ones only */
    assert_true(bytes_are_zero(buf + 512, 1024));
}

static void a_delay_is_no_failure(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(1);
    const struct blk_fault rule = {.ops = BLK_FAULT_FLUSH, .times = 1, .delay_us = 20000};
    struct timespec before, after;
    int64_t us;

    (void)state;
    blk_fault_add(b, &rule);
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(blk_flush(b), 0);
    clock_gettime(CLOCK_MONOTONIC, &after);
    us = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
    assert_true(us >= 20000);
    assert_int_equal(blk_fault_count(b), 1);
}

static void a_full_medium_takes_rewrites_and_what_fits(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(512);
    unsigned char ones[16384], buf[16384];

    (void)state;
    memset(ones, 1, sizeof(ones));
    blk_fault_room(b, 8192);
    assert_int_equal(blk_write(b, ones, 512, 1024), 0); /* takes the block at 0 */
    assert_int_equal(blk_write(b, ones, 4096, 0), 0);
    assert_int_equal(blk_write(b, ones, 16384, 3584), -ENOSPC);
    assert_int_equal(blk_read(b, buf, 16384, 0), 0);
    assert_memory_equal(buf, ones, 8192);
    assert_true(bytes_are_zero(buf + 8192, 8192));
    assert_int_equal(blk_write(b, ones, 512, 8192 + 512), -ENOSPC);
    assert_int_equal(blk_write_zeroes(b, 512, 8192 + 512), -ENOSPC);
    assert_int_equal(blk_write(b, ones, 8192, 0), 0);
    assert_int_equal(blk_discard(b, 512, 0), 0); /* no whole block: gives nothing back */
    assert_int_equal(blk_write(b, ones, 512, 8192), -ENOSPC);
    assert_int_equal(blk_discard(b, 4096, 0), 0);
    assert_int_equal(blk_write(b, ones, 512, 8192), 0);
    assert_int_equal(blk_write(b, ones, 512, 0), -ENOSPC);
    blk_fault_room(b, UINT64_MAX);
    assert_int_equal(blk_write(b, ones, 16384, 65536), 0);
}

static void a_larger_medium_needs_room_for_the_new_part(void **state)
{
    AUTO_BLK struct blk *b = fault_over_memory(512);
    uint64_t size = b->size;
    unsigned char ones[4096];

    (void)state;
    memset(ones, 1, sizeof(ones));
    blk_fault_room(b, 4096);
    assert_int_equal(blk_resize(b, size + 65536), 0);
    assert_int_equal(b->below->size, size + 65536);
    assert_int_equal(blk_write(b, ones, 4096, size + 61440), 0);
    assert_int_equal(blk_write(b, ones, 4096, size), -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_rules_it_is_what_is_below),
        cmocka_unit_test(a_rule_strikes_its_range_alone),
        cmocka_unit_test(a_failed_read_leaves_junk),
        cmocka_unit_test(after_lets_pass_and_times_ends),
        cmocka_unit_test(the_first_rule_that_matches_strikes),
        cmocka_unit_test(there_is_a_last_rule),
        cmocka_unit_test(a_failed_write_stores_nothing_or_its_first_half),
        cmocka_unit_test(a_delay_is_no_failure),
        cmocka_unit_test(a_full_medium_takes_rewrites_and_what_fits),
        cmocka_unit_test(a_larger_medium_needs_room_for_the_new_part),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
