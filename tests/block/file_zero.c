/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "lib/inject.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>

enum { MIB = 1 << 20 };

static void discard_gives_storage_back(void **state)
{
    const char *const folders[] = {test_disk, test_shm};

    (void)state;
    for (int i = 0; i < 2; i++) {
        AUTO_BLK struct blk *b = test_open_file(test_file(folders[i], MIB, false));

        assert_true(test_allocated(b) >= MIB);
        assert_int_equal(blk_discard(b, MIB - 2, 1), 0);
        assert_true(test_allocated(b) <= 65536);
        assert_true(test_zeros_at(b, MIB - 2, 1));
        assert_false(test_zeros_at(b, 1, 0) && test_zeros_at(b, 1, MIB - 1));
        assert_int_equal(b->size, MIB);
    }
}

static void write_zeroes_keeps_storage(void **state)
{
    const char *const folders[] = {test_disk, test_shm};

    (void)state;
    for (int i = 0; i < 2; i++) {
        AUTO_BLK struct blk *b = test_open_file(test_file(folders[i], MIB, false));

        assert_int_equal(blk_write_zeroes(b, MIB - 2, 1), 0);
        assert_true(test_allocated(b) >= MIB);
        assert_true(test_zeros_at(b, MIB - 2, 1));
    }
}

static void zeros_are_written_only_where_data_is(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 8 * MIB, true));

    (void)state;
    test_inject.fallocate_modes = FALLOC_FL_ZERO_RANGE;
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(blk_write(b, "data", 4, 4 * MIB), 0);
    assert_int_equal(blk_write_zeroes(b, 8 * MIB, 0), 0);
    assert_true(test_allocated(b) <= MIB);
    assert_true(test_zeros_at(b, 8 * MIB, 0));
}

static void what_is_not_supported_is_asked_once(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, false));

    (void)state;
    test_inject.fallocate_modes = FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE;
    test_inject.fallocate_err = EOPNOTSUPP;
    for (uint64_t off = 0; off < 5; off++) {
        assert_int_equal(blk_discard(b, 1000, off * 1000), 0);
        assert_int_equal(blk_write_zeroes(b, 1000, 100000 + off * 1000), 0);
    }
    assert_int_equal(test_inject.n_fallocate, 2);
    assert_true(test_zeros_at(b, 5000, 0));
    assert_true(test_zeros_at(b, 5000, 100000));
    assert_false(test_zeros_at(b, 1, 5000) && test_zeros_at(b, 8, 5001));
}

static void what_does_not_fit_the_units_is_asked_again(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, false));

    (void)state;
    test_inject.fallocate_modes = FALLOC_FL_ZERO_RANGE;
    test_inject.fallocate_err = EINVAL;
    assert_int_equal(blk_write_zeroes(b, 1000, 1), 0);
    assert_true(test_zeros_at(b, 1000, 1));
    assert_int_equal(blk_write_zeroes(b, 1000, 1), 0);
    assert_int_equal(test_inject.n_fallocate, 2);
}

static void random_operations_without_fallocate_match_an_array(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB + 99, false));
    uint64_t seed = test_seed();

    (void)state;
    test_inject.fallocate_modes = FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE;
    test_inject.fallocate_err = EOPNOTSUPP;
    test_against_array(b, &seed, 1000, 100000);
}

static void holes_are_found(void **state)
{
    const char *const folders[] = {test_disk, test_shm};

    (void)state;
    for (int i = 0; i < 2; i++) {
        AUTO_BLK struct blk *b = test_open_file(test_file(folders[i], 3 * MIB, true));
        struct blk_extent e;

        assert_int_equal(blk_write(b, "data", 4, MIB + 10), 0);
        assert_int_equal(blk_extent(b, 0, &e), 0);
        assert_true(e.hole);
        assert_in_range(e.end, MIB - 65536, MIB + 10);
        assert_int_equal(blk_extent(b, MIB + 10, &e), 0);
        assert_false(e.hole);
        assert_in_range(e.end, MIB + 14, 2 * MIB);
        assert_int_equal(blk_extent(b, e.end, &e), 0);
        assert_true(e.hole);
        assert_int_equal(e.end, 3 * MIB);
    }
}

static void holes_end_at_whole_granules_with_o_direct(void **state)
{
    AUTO_BLK struct blk *b = test_open_direct(MIB, true);
    uint64_t seed = test_seed();

    (void)state;
    test_against_array(b, &seed, 300, 60000);
}

static void errors_keep_their_number(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 10000, false));

    (void)state;
    test_inject.fallocate_modes = FALLOC_FL_ZERO_RANGE | FALLOC_FL_PUNCH_HOLE;
    test_inject.fallocate_err = ENOSPC;
    assert_int_equal(blk_write_zeroes(b, 100, 0), -ENOSPC);
    assert_int_equal(blk_discard(b, 100, 0), -ENOSPC);
    test_inject.fallocate_err = EDQUOT;
    assert_int_equal(blk_write_zeroes(b, 100, 0), -EDQUOT);
    test_inject.fallocate_err = EIO;
    assert_int_equal(blk_discard(b, 100, 0), -EIO);
    assert_false(test_zeros_at(b, 100, 0)); /* nothing was tried instead */
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, NULL, test_files_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(discard_gives_storage_back),
        FILE_TEST(write_zeroes_keeps_storage),
        FILE_TEST(zeros_are_written_only_where_data_is),
        FILE_TEST(what_is_not_supported_is_asked_once),
        FILE_TEST(what_does_not_fit_the_units_is_asked_again),
        FILE_TEST(random_operations_without_fallocate_match_an_array),
        FILE_TEST(holes_are_found),
        FILE_TEST(holes_end_at_whole_granules_with_o_direct),
        FILE_TEST(errors_keep_their_number),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
