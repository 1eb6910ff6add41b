/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "lib/inject.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { MIB = 1 << 20 };

static void a_new_file_has_its_name_when_it_is_complete(void **state)
{
    const char *path = test_path(test_disk, "new");
    mode_t old = umask(0277);
    AUTO_BLK struct blk *b = NULL;
    struct blk *again = NULL;
    struct stat st;

    (void)state;
    assert_int_equal(test_create(&b, path, MIB, true, false), 0);
    umask(old);
    assert_int_equal(b->size, MIB);
    assert_int_equal(b->granule, 1);
    assert_true(test_zeros_at(b, MIB, 0));
    assert_true(test_allocated(b) >= MIB);
    assert_int_equal(blk_write(b, "complete", 8, 0), 0);
    assert_int_equal(stat(path, &st), -1);
    assert_int_equal(blk_file_commit(b, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, MIB);
    assert_int_equal(test_open(&again, path, true, BLK_DIRECT_AUTO), -EBUSY); /* still ours */
    blk_close(TAKE(b));
    again = test_open_file(path);
    assert_false(test_zeros_at(again, 8, 0));
    blk_close(again);
    unlink(path);
    assert_int_equal(test_n_files(test_disk), 0);
}

static void a_file_that_is_not_committed_leaves_nothing(void **state)
{
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), MIB, true, false), 0);
    assert_int_equal(test_n_files(test_disk), 1);
    blk_close(b);
    assert_int_equal(test_n_files(test_disk), 0);
}

static void a_sparse_file_has_no_storage(void **state)
{
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), UINT64_C(1) << 33, false, false),
                     0);
    assert_int_equal(b->size, UINT64_C(1) << 33);
    assert_true(test_allocated(b) < MIB);
}

static void zeros_are_written_where_nothing_preallocates(void **state)
{
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), 3 * MIB + 5, true, false), 0);
    assert_int_equal(b->size, 3 * MIB + 5);
    assert_true(test_allocated(b) >= 3 * MIB);
    assert_true(test_zeros_at(b, 3 * MIB + 5, 0));
}

/* fallocate is not let through: were it tried, it would fill the machine's disk. */
static void what_cannot_fit_is_not_tried(void **state)
{
    struct blk *b = NULL;

    (void)state;
    test_inject.fallocate_err = EIO;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), INT64_MAX, true, false), -ENOSPC);
    assert_int_equal(test_inject.n_fallocate, 0);
    assert_null(b);
    assert_int_equal(test_n_files(test_disk), 0);
}

static void no_room_leaves_nothing(void **state)
{
    struct blk *b = NULL;

    (void)state;
    test_inject.fallocate_err = ENOSPC;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), MIB, true, false), -ENOSPC);
    test_inject.fallocate_err = EDQUOT;
    assert_int_equal(test_create(&b, test_path(test_disk, "new"), MIB, true, false), -EDQUOT);
    assert_null(b);
    assert_int_equal(test_n_files(test_disk), 0);
}

struct stop_at {
    struct progress progress;
    uint64_t at;
};

static int stop_step(struct progress *p, uint64_t done, uint64_t total)
{
    assert_true(done <= total);
    return done >= container_of(p, struct stop_at, progress)->at ? -EINTR : 0;
}

static void growing_can_be_stopped(void **state)
{
    struct stop_at stop = {.progress.step = stop_step, .at = 32 * MIB};
    const struct blk_file_create spec = {.path = test_path(test_disk, "new"),
                                         .size = 65 * MIB,
                                         .preallocate = true,
                                         .progress = &stop.progress};
    struct blk *b = NULL;
    struct test_report rep;

    (void)state;
    test_report_init(&rep);
    test_inject.fallocate_err = EOPNOTSUPP;
    assert_int_equal(blk_file_create(&b, &spec, &rep.rep), -EINTR);
    assert_int_equal(rep.n_lines, 0);
    assert_int_equal(test_n_files(test_disk), 0);
}

static void an_existing_file_is_left_alone(void **state)
{
    const char *path = test_file(test_disk, 5000, false);
    const struct blk_file_create spec = {.path = path, .size = MIB};
    AUTO_BLK struct blk *b = NULL;
    struct blk *none = NULL;
    struct test_report rep;

    (void)state;
    test_report_init(&rep);
    assert_int_equal(blk_file_create(&none, &spec, &rep.rep), -EEXIST);
    assert_true(test_report_has(&rep, "already exists"));
    b = test_open_file(path);
    assert_int_equal(b->size, 5000);
    assert_int_equal(test_n_files(test_disk), 1);
}

static void an_existing_file_stays_until_the_commit(void **state)
{
    const char *path = test_file(test_disk, 5000, false);
    struct blk *b = NULL, *old = NULL;
    struct stat st;

    (void)state;
    chmod(path, 0640);
    assert_int_equal(test_create(&b, path, MIB, true, true), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 5000);
    assert_int_equal(test_open(&old, path, true, BLK_DIRECT_AUTO),
                     -EBUSY); /* it is on its way out */
    blk_close(TAKE(b));
    old = test_open_file(path);
    assert_false(test_zeros_at(old, 5000, 0));
    blk_close(old);

    assert_int_equal(test_create(&b, path, MIB, true, true), 0);
    assert_int_equal(blk_file_commit(b, NULL), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, MIB);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(test_n_files(test_disk), 1);
    blk_close(b);
}

static void a_file_in_use_is_not_replaced(void **state)
{
    const char *path = test_file(test_disk, 5000, false);
    struct blk *b = NULL, *user = NULL;

    (void)state;
    assert_int_equal(test_open(&user, path, true, BLK_DIRECT_AUTO), 0);
    assert_int_equal(test_create(&b, path, MIB, true, true), -EBUSY);
    blk_close(user);
    assert_null(b);
    assert_int_equal(test_n_files(test_disk), 1);
}

static void a_name_taken_meanwhile_is_not_overwritten(void **state)
{
    const char *path = test_path(test_disk, "new");
    struct blk *b = NULL;
    struct test_report rep;

    (void)state;
    test_report_init(&rep);
    assert_int_equal(test_create(&b, path, MIB, false, true), 0);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(blk_file_commit(b, &rep.rep), -EEXIST);
    assert_int_equal(rep.n_lines, 1);
    blk_close(b);
    assert_int_equal(test_n_files(test_disk), 1);

    assert_int_equal(test_create(&b, path, MIB, false, true), 0);
    assert_int_equal(rename(path, test_path(test_disk, "moved")), 0);
    close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    assert_int_equal(blk_file_commit(b, &rep.rep), -EEXIST);
    blk_close(b);
    assert_int_equal(test_n_files(test_disk), 2);
}

static void a_link_leads_to_its_file(void **state)
{
    const char *path = test_file(test_disk, 5000, false), *link = test_path(test_shm, "link");
    struct blk *b = NULL;
    struct stat st;

    (void)state;
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(test_create(&b, link, MIB, true, true), 0);
    assert_int_equal(blk_file_commit(b, NULL), 0);
    blk_close(TAKE(b));
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, MIB);
    unlink(path);
    assert_int_equal(test_create(&b, link, MIB, true, true), -ENOENT); /* it leads nowhere now */
    assert_null(b);
}

static void only_files_can_be_made(void **state)
{
    const char *fifo = test_path(test_disk, "fifo");
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_create(&b, test_disk, MIB, true, true), -EINVAL);
    assert_int_equal(test_create(&b, "/dev/null", MIB, true, true), -EINVAL);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_int_equal(test_create(&b, fifo, MIB, true, true), -EINVAL);
    assert_int_equal(test_create(&b, test_path(test_disk, "no/folder"), MIB, true, true), -ENOENT);
    assert_int_equal(test_create(&b, test_path(test_disk, "name/"), MIB, true, true), -EINVAL);
    assert_int_equal(test_create(&b, test_path(test_disk, "huge"), UINT64_MAX, false, true),
                     -EFBIG);
    assert_null(b);
    assert_int_equal(test_n_files(test_disk), 1);
}

static void a_name_without_folder_is_made_here(void **state)
{
    AUTO_FD int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct blk *b = NULL;
    struct stat st;

    (void)state;
    assert_int_equal(chdir(test_disk), 0);
    assert_int_equal(test_create(&b, "plain", 0, true, false), 0);
    assert_int_equal(blk_file_commit(b, NULL), 0);
    blk_close(b);
    assert_int_equal(fchdir(here), 0);
    assert_int_equal(stat(test_path(test_disk, "plain"), &st), 0);
    assert_int_equal(st.st_size, 0);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, NULL, test_files_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_new_file_has_its_name_when_it_is_complete),
        FILE_TEST(a_file_that_is_not_committed_leaves_nothing),
        FILE_TEST(a_sparse_file_has_no_storage),
        FILE_TEST(zeros_are_written_where_nothing_preallocates),
        FILE_TEST(what_cannot_fit_is_not_tried),
        FILE_TEST(no_room_leaves_nothing),
        FILE_TEST(growing_can_be_stopped),
        FILE_TEST(an_existing_file_is_left_alone),
        FILE_TEST(an_existing_file_stays_until_the_commit),
        FILE_TEST(a_file_in_use_is_not_replaced),
        FILE_TEST(a_name_taken_meanwhile_is_not_overwritten),
        FILE_TEST(a_link_leads_to_its_file),
        FILE_TEST(only_files_can_be_made),
        FILE_TEST(a_name_without_folder_is_made_here),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
