/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/memory.h"
#include "base/bytes.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

static void a_new_one_is_zero(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    unsigned char buf[4096];

    (void)state;
    memset(buf, 1, sizeof(buf));
    assert_int_equal(blk_memory_open(&b, 4096, 512), 0);
    assert_int_equal(b->size, 4096);
    assert_int_equal(b->granule, 512);
    assert_int_equal(blk_read(b, buf, sizeof(buf), 0), 0);
    assert_true(bytes_are_zero(buf, sizeof(buf)));
    assert_true(bytes_are_zero(blk_memory_bytes(b), 4096));
}

static void what_was_written_is_in_its_bytes(void **state)
{
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&b, 4096, 1), 0);
    assert_int_equal(blk_write(b, "abc", 3, 4093), 0);
    assert_memory_equal(blk_memory_bytes(b) + 4093, "abc", 3);
    memcpy(blk_memory_bytes(b), "xyz", 3);
    assert_int_equal(blk_discard(b, 1, 1), 0);
    assert_memory_equal(blk_memory_bytes(b), "x\0z", 3);
}

static void random_operations_match_an_array(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (uint32_t granule = 1; granule <= 4096; granule *= 64) {
        AUTO_BLK struct blk *b = NULL;

        assert_int_equal(blk_memory_open(&b, 1 << 20, granule), 0);
        test_against_array(b, &seed, 3000, 65536);
    }
}

static void it_is_all_data(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    struct blk_extent e;
    struct blk_stat st;

    (void)state;
    assert_int_equal(blk_memory_open(&b, 8192, 1), 0);
    assert_int_equal(blk_extent(b, 5, &e), 0);
    assert_int_equal(e.end, 8192);
    assert_false(e.hole);
    assert_int_equal(blk_stat(b, &st), 0);
    assert_int_equal(st.allocated, 8192);
    assert_int_equal(blk_flush(b), 0);
}

static void an_impossible_geometry_is_refused(void **state)
{
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&b, 4096, 0), -EINVAL);
    assert_int_equal(blk_memory_open(&b, 4096, 3), -EINVAL);
    assert_int_equal(blk_memory_open(&b, 4096 + 512, 4096), -EINVAL);
    assert_null(b);
}

static void it_grows_by_zeros_and_keeps_the_rest(void **state)
{
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&b, 1024, 512), 0);
    memset(blk_memory_bytes(b), 7, 1024);
    assert_int_equal(blk_resize(b, 512), 0);
    assert_int_equal(blk_resize(b, 2048), 0);
    assert_int_equal(b->size, 2048);
    for (unsigned i = 0; i < 2048; i++)
        assert_int_equal(blk_memory_bytes(b)[i], i < 512 ? 7 : 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_one_is_zero),
        cmocka_unit_test(what_was_written_is_in_its_bytes),
        cmocka_unit_test(random_operations_match_an_array),
        cmocka_unit_test(it_is_all_data),
        cmocka_unit_test(an_impossible_geometry_is_refused),
        cmocka_unit_test(it_grows_by_zeros_and_keeps_the_rest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
