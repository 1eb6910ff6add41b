/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "lib/inject.h"
#include "lib/test.h"

/* Proves block/file_room.c: a file that is made larger has zeros and the storage that was promised,
 * or is as it was; one that is cut keeps what is left. */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { MIB = 1 << 20 };

static uint64_t real_size(struct blk *b)
{
    uint64_t size = 0;

    assert_int_equal(blk_file_real_size(b, &size), 0);
    return size;
}

static int extend(struct blk *b, uint64_t size, bool preallocate)
{
    return blk_file_extend(b, b->size, size, preallocate, NULL, NULL);
}

static void the_layer_grows_when_the_file_has(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, false));
    unsigned char before[4096], after[4096];

    (void)state;
    assert_int_equal(blk_read(b, before, sizeof(before), MIB - 4096), 0);
    assert_int_equal(blk_resize(b, 2 * MIB), -EINVAL);
    assert_int_equal(b->size, MIB);
    assert_int_equal(extend(b, 2 * MIB, false), 0);
    assert_int_equal(b->size, MIB);
    assert_int_equal(blk_write(b, before, 1, MIB), -EINVAL);
    assert_int_equal(blk_resize(b, 2 * MIB), 0);
    assert_int_equal(b->size, 2 * MIB);
    assert_true(test_zeros_at(b, MIB, MIB));
    assert_int_equal(blk_read(b, after, sizeof(after), MIB - 4096), 0);
    assert_memory_equal(before, after, sizeof(before));
    assert_int_equal(blk_write(b, "end", 3, 2 * MIB - 3), 0);
}

static void room_is_taken_or_not_as_asked(void **state)
{
    const char *const folders[] = {test_disk, test_shm};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        bool preallocate = i & 1;
        AUTO_BLK struct blk *b = test_open_file(test_file(folders[i / 2], MIB, true));

        assert_int_equal(extend(b, 9 * MIB, preallocate), 0);
        assert_int_equal(blk_resize(b, 9 * MIB), 0);
        assert_true(preallocate ? test_allocated(b) >= 8 * MIB : test_allocated(b) < MIB);
        assert_true(test_zeros_at(b, 8 * MIB, MIB));
    }
}

static void without_fallocate_the_zeros_are_written(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, true));

    (void)state;
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(extend(b, 5 * MIB, true), 0);
    assert_int_equal(blk_resize(b, 5 * MIB), 0);
    assert_true(test_allocated(b) >= 4 * MIB);
    assert_true(test_zeros_at(b, 4 * MIB, MIB));
}

/* An earlier resize was stopped between its steps. */
static void what_lies_behind_the_end_does_not_come_back(void **state)
{
    (void)state;
    for (int preallocate = 0; preallocate < 2; preallocate++) {
        AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 2 * MIB, false));

        assert_int_equal(blk_resize(b, MIB), 0);
        assert_int_equal(extend(b, 3 * MIB, preallocate), 0);
        assert_int_equal(blk_resize(b, 3 * MIB), 0);
        assert_true(test_zeros_at(b, 2 * MIB, MIB));
        assert_false(test_zeros_at(b, MIB, 0));
    }
}

static void a_failure_gives_back_what_was_taken(void **state)
{
    static const int errors[] = {ENOSPC, EDQUOT, EIO};
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, false));
    struct test_report rep;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        test_report_init(&rep);
        test_inject.fallocate_err = errors[i];
        assert_int_equal(blk_file_extend(b, MIB, 2 * MIB, true, NULL, &rep.rep), -errors[i]);
        assert_int_equal(rep.n_lines, 1);
        assert_true(test_report_has(&rep, "2 MiB"));
        assert_int_equal(real_size(b), MIB);
        assert_int_equal(b->size, MIB);
    }
    test_inject.fallocate_err = 0;
    assert_int_equal(extend(b, 2 * MIB, true), 0);
}

static void what_cannot_fit_is_refused_before_it_is_tried(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_shm, MIB, false));

    (void)state;
    assert_int_equal(extend(b, UINT64_C(1) << 50, true), -ENOSPC);
    assert_int_equal(test_inject.n_fallocate, 0);
    assert_int_equal(extend(b, UINT64_MAX, false), -EFBIG);
    assert_int_equal(real_size(b), MIB);
}

/* A limit on the size of files, as on a file system that has one. */
static void a_file_that_may_not_be_so_large_stays(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, false));
    struct rlimit old, limit;
    int r;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    limit = (struct rlimit){.rlim_cur = 3 * MIB, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    r = extend(b, 4 * MIB, false);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(r, -EFBIG);
    assert_int_equal(real_size(b), MIB);
}

static int refuse_second(struct progress *p, uint64_t done, uint64_t total)
{
    (void)p;
    assert_int_equal(total, 65 * MIB);
    return done > 0 ? -EINTR : 0;
}

static void who_waits_can_stop_it(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, MIB, true));
    struct progress stop = {.step = refuse_second};
    struct test_report rep;

    (void)state;
    test_report_init(&rep);
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(blk_file_extend(b, MIB, 66 * MIB, true, &stop, &rep.rep), -EINTR);
    assert_int_equal(rep.n_lines, 0);
    assert_int_equal(real_size(b), MIB);
}

static void a_file_is_cut_and_keeps_the_rest(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 2 * MIB, false));
    AUTO_FREE unsigned char *before = malloc(MIB), *after = malloc(MIB);

    (void)state;
    assert_int_equal(blk_read(b, before, MIB, 0), 0);
    assert_int_equal(blk_resize(b, MIB), 0);
    assert_int_equal(real_size(b), 2 * MIB);
    assert_int_equal(blk_file_shrink(b, MIB, NULL), 0);
    assert_int_equal(real_size(b), MIB);
    assert_int_equal(blk_read(b, after, MIB, 0), 0);
    assert_memory_equal(before, after, MIB);
    assert_int_equal(blk_read(b, after, 1, MIB), -EINVAL);
}

static void a_file_opened_for_reading_stays(void **state)
{
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_open(&b, test_file(test_disk, MIB, false), true, BLK_DIRECT_AUTO), 0);
    assert_int_equal(blk_resize(b, MIB / 2), -EROFS);
    blk_close(b);
}

static void direct_files_change_in_whole_granules(void **state)
{
    AUTO_BLK struct blk *b = test_open_direct(MIB, false);

    (void)state;
    assert_int_equal(blk_resize(b, MIB - b->granule / 2), -EINVAL);
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(extend(b, 3 * MIB + b->granule, true), 0);
    assert_int_equal(blk_resize(b, 3 * MIB + b->granule), 0);
    assert_true(test_zeros_at(b, 2 * MIB + b->granule, MIB));
}

#define FILE_TEST(f) cmocka_unit_test_teardown(f, test_files_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(the_layer_grows_when_the_file_has),
        FILE_TEST(room_is_taken_or_not_as_asked),
        FILE_TEST(without_fallocate_the_zeros_are_written),
        FILE_TEST(what_lies_behind_the_end_does_not_come_back),
        FILE_TEST(a_failure_gives_back_what_was_taken),
        FILE_TEST(what_cannot_fit_is_refused_before_it_is_tried),
        FILE_TEST(a_file_that_may_not_be_so_large_stays),
        FILE_TEST(who_waits_can_stop_it),
        FILE_TEST(a_file_is_cut_and_keeps_the_rest),
        FILE_TEST(a_file_opened_for_reading_stays),
        FILE_TEST(direct_files_change_in_whole_granules),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
