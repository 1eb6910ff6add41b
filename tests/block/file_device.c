/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "lib/model.h"
#include "lib/test.h"

/* The file layer on a block device: a loop device, so this runs as root only. */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { MIB = 1 << 20 };

static char loop[64]; /* the device, while there is one */

static int loop_setup(void **state)
{
    char out[64];

    (void)state;
    if (geteuid() == 0 && test_run(out, sizeof(out), "losetup -f --show '%s' 2>/dev/null",
                                   test_file(test_disk, 4 * MIB, true)) == 0)
        snprintf(loop, sizeof(loop), "%s", out);
    return 0;
}

static int loop_teardown(void **state)
{
    char out[64];

    (void)state;
    if (loop[0] != '\0')
        test_run(out, sizeof(out), "losetup -d %s", loop);
    loop[0] = '\0';
    return test_files_clear(state);
}

static void need_loop(void)
{
    if (loop[0] != '\0')
        return;
    print_message("not run: a loop device needs root and losetup, and room in /dev/loop*\n");
    skip();
}

static void a_device_is_open_once_for_writing(void **state)
{
    const struct blk_file_spec spec = {.path = loop};
    AUTO_BLK struct blk *b = NULL;
    struct blk *again = NULL;
    AUTO_FD int foreign = -1;
    struct test_report rep;
    pid_t holder = 77;

    (void)state;
    need_loop();
    test_report_init(&rep);
    b = test_open_file(loop);
    assert_int_equal(b->size, 4 * MIB);
    assert_int_equal(blk_file_open(&again, &spec, &holder, &rep.rep), -EBUSY);
    assert_int_equal(holder, 0);
    assert_int_equal(rep.n_lines, 0);
    foreign = open(loop, O_RDWR | O_EXCL | O_CLOEXEC); /* as mount(8) and device-mapper do */
    assert_int_equal(foreign, -1);
    assert_int_equal(errno, EBUSY);
}

static void a_device_is_read_and_written_directly(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    uint64_t seed = test_seed();
    struct blk_extent e;

    (void)state;
    need_loop();
    b = test_open_file(loop);
    assert_true(fcntl(blk_file_fd(b), F_GETFL) & O_DIRECT);
    assert_true(b->granule >= 512);
    assert_int_equal(blk_extent(b, 0, &e), 0);
    assert_false(e.hole);
    assert_int_equal(e.end, 4 * MIB);
    assert_int_equal(test_allocated(b), 4 * MIB);
    test_against_array(b, &seed, 300, 300000);
}

static void a_device_through_the_page_cache_takes_any_bytes(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    uint64_t seed = test_seed();

    (void)state;
    need_loop();
    assert_int_equal(test_open(&b, loop, false, BLK_DIRECT_OFF), 0);
    assert_int_equal(b->granule, 1);
    test_against_array(b, &seed, 300, 300000); /* zeros of odd lengths are written by hand */
}

static void a_device_that_holds_something_is_left_alone(void **state)
{
    struct blk *b = NULL;

    (void)state;
    need_loop();
    assert_int_equal(test_create(&b, loop, 4 * MIB + 1, true, false), -ENOSPC);
    for (uint64_t off = 0; off <= 4 * MIB - 4; off += 4 * MIB - 4) {
        assert_int_equal(test_create(&b, loop, 4 * MIB, true, false), 0);
        assert_int_equal(blk_write(b, "full", 4, off), 0);
        assert_int_equal(blk_file_commit(b, NULL), 0);
        blk_close(TAKE(b));
        assert_int_equal(test_create(&b, loop, 4 * MIB, true, false), -EEXIST);
        assert_int_equal(test_create(&b, loop, 4 * MIB, true, true), 0);
        assert_int_equal(blk_write_zeroes(b, 4, off), 0);
        blk_close(TAKE(b));
    }
}

static void a_device_set_read_only_is_not_opened_for_writing(void **state)
{
    char out[64];
    struct blk *b = NULL;
    int r, read_only;

    (void)state;
    need_loop();
    test_run(out, sizeof(out), "blockdev --setro %s", loop);
    r = test_open(&b, loop, false, BLK_DIRECT_OFF);
    blk_close(TAKE(b));
    read_only = test_open(&b, loop, true, BLK_DIRECT_OFF);
    blk_close(b);
    test_run(out, sizeof(out), "blockdev --setrw %s", loop); /* or it would stay so */
    assert_int_equal(r, -EROFS);
    assert_int_equal(read_only, 0);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, loop_setup, loop_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_device_is_open_once_for_writing),
        FILE_TEST(a_device_is_read_and_written_directly),
        FILE_TEST(a_device_through_the_page_cache_takes_any_bytes),
        FILE_TEST(a_device_that_holds_something_is_left_alone),
        FILE_TEST(a_device_set_read_only_is_not_opened_for_writing),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
