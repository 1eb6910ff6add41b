/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "lib/inject.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { MIB = 1 << 20 };

static void size_is_what_the_file_has(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 12345, false));

    (void)state;
    assert_int_equal(b->size, 12345);
    assert_int_equal(b->granule, 1);
    assert_true(blk_file_fd(b) >= 0);
    assert_int_equal(fcntl(blk_file_fd(b), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(fcntl(blk_file_fd(b), F_GETFL) & (O_NONBLOCK | O_DIRECT), 0);
}

static void only_files_and_devices_open(void **state)
{
    struct blk *b = NULL;
    struct test_report rep;
    const struct blk_file_spec folder = {.path = test_disk},
                               gone = {.path = test_path(test_disk, "gone")},
                               fifo = {.path = test_path(test_disk, "fifo")},
                               null = {.path = "/dev/null"};

    (void)state;
    test_report_init(&rep);
    assert_int_equal(blk_file_open(&b, &folder, NULL, &rep.rep), -EINVAL);
    assert_true(test_report_has(&rep, "is a folder"));
    assert_int_equal(blk_file_open(&b, &gone, NULL, &rep.rep), -ENOENT);
    assert_true(test_report_has(&rep, "No such file"));
    assert_int_equal(blk_file_open(&b, &null, NULL, &rep.rep), -EINVAL);
    assert_true(test_report_has(&rep, "is a character device"));
    assert_int_equal(mkfifo(fifo.path, 0600), 0);
    assert_int_equal(blk_file_open(&b, &fifo, NULL, &rep.rep), -EINVAL); /* and does not hang */
    assert_true(test_report_has(&rep, "is a FIFO"));
    assert_int_equal(rep.n_lines, 4);
    assert_null(b);
    unlink(fifo.path);
}

static void read_only_opens_what_cannot_be_written(void **state)
{
    const char *path = test_file(test_disk, 4096, false);
    AUTO_BLK struct blk *b = NULL;
    unsigned char byte;

    (void)state;
    chmod(path, 0400);
    if (geteuid() != 0) /* root may write all files */
        assert_int_equal(test_open(&b, path, false, BLK_DIRECT_AUTO), -EACCES);
    assert_int_equal(test_open(&b, path, true, BLK_DIRECT_AUTO), 0);
    assert_int_equal(blk_read(b, &byte, 1, 0), 0);
    assert_int_equal(blk_write(b, &byte, 1, 0), -EROFS);
    assert_int_equal(blk_flush(b), 0);
}

/* Reading and writing */

static void random_operations_match_an_array(void **state)
{
    uint64_t seed = test_seed();
    const char *const folders[] = {test_disk, test_shm};

    (void)state;
    for (int i = 0; i < 2; i++) {
        AUTO_BLK struct blk *b = test_open_file(test_file(folders[i], MIB + 4321, false));

        test_against_array(b, &seed, 1500, 150000);
    }
}

static void random_operations_match_an_array_with_o_direct(void **state)
{
    AUTO_BLK struct blk *b = test_open_direct(MIB, false);
    uint64_t seed = test_seed();

    (void)state;
    assert_true(b->granule >= 512);
    assert_true(fcntl(blk_file_fd(b), F_GETFL) & O_DIRECT);
    test_against_array(b, &seed, 1000, 300000); /* over twice what a bounce buffer holds */
}

static void direct_is_off_for_files_unless_asked_for(void **state)
{
    const char *path = test_file(test_disk, MIB, false);
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_open(&b, path, false, BLK_DIRECT_AUTO), 0);
    assert_false(fcntl(blk_file_fd(b), F_GETFL) & O_DIRECT);
}

static void direct_on_is_refused_where_the_end_cannot_be_reached(void **state)
{
    const struct blk_file_spec spec = {.path = test_file(test_disk, MIB + 100, false),
                                       .direct = BLK_DIRECT_ON};
    struct blk *b = NULL;
    struct test_report rep;

    (void)state;
    test_report_init(&rep);
    assert_int_equal(blk_file_open(&b, &spec, NULL, &rep.rep), -EOPNOTSUPP);
    assert_true(test_report_has(&rep, "direct=off"));
    assert_null(b);
}

static void short_transfers_and_signals_are_nobodys_business(void **state)
{
    AUTO_BLK struct blk *b = test_open_file(test_file(test_disk, 20000, false));
    uint64_t seed = test_seed();

    (void)state;
    test_inject.at_most = 777;
    test_inject.every_nth_interrupted = 3;
    test_against_array(b, &seed, 300, 20000);
    assert_true(test_inject.n_transfers > 1000);
}

static void short_direct_transfers_go_on_at_whole_granules(void **state)
{
    AUTO_BLK struct blk *b = test_open_direct(MIB, false);
    uint64_t seed = test_seed();

    (void)state;
    test_inject.at_most = 3 * b->granule;
    test_inject.every_nth_interrupted = 4;
    test_against_array(b, &seed, 100, 100000);
}

static void a_file_that_was_cut_fails_to_read(void **state)
{
    const char *path = test_file(test_disk, 10000, false);
    AUTO_BLK struct blk *b = test_open_file(path);
    struct blk_extent e;
    unsigned char buf[10000];

    (void)state;
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(blk_read(b, buf, 5000, 0), 0);
    assert_int_equal(blk_read(b, buf, 10000, 0), -EIO);
    assert_int_equal(blk_read(b, buf, 1, 9000), -EIO);
    assert_int_equal(blk_extent(b, 9000, &e), -EIO); /* no hole: that would read as zeros */
}

/* Run fn(arg) in a child process until finish(); returns when it has said that it is ready. */
struct child {
    pid_t pid;
    int go;
};

static struct child start(void (*fn)(const char *), const char *arg)
{
    int ready[2], go[2];
    struct child c;
    char byte = 'r';

    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(go, O_CLOEXEC), 0);
    c.pid = fork();
    if (c.pid == 0) {
        close(go[1]);
        fn(arg);
        if (write(ready[1], &byte, 1) == 1 && read(go[0], &byte, 1) >= 0)
            _exit(0);
        _exit(1);
    }
    close(ready[1]);
    close(go[0]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    c.go = go[1];
    return c;
}

static void finish(struct child c)
{
    int status;

    close(c.go);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    assert_int_equal(status, 0);
}

static void hold_for_writing(const char *path)
{
    struct blk *b;

    if (test_open(&b, path, false, BLK_DIRECT_AUTO) < 0)
        _exit(2);
}

static void hold_for_reading(const char *path)
{
    struct blk *b;

    if (test_open(&b, path, true, BLK_DIRECT_AUTO) < 0)
        _exit(2);
}

static void hold_posix_lock(const char *path)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    if (fcntl(open(path, O_RDWR | O_CLOEXEC), F_SETLK, &all) < 0)
        _exit(2);
}

static void a_writer_keeps_everybody_out(void **state)
{
    const char *path = test_file(test_disk, 4096, false);
    struct blk_file_spec spec = {.path = path};
    struct child c = start(hold_for_writing, path);
    struct blk *b = NULL;
    struct test_report rep;
    pid_t holder = 77;

    (void)state;
    test_report_init(&rep);
    assert_int_equal(blk_file_open(&b, &spec, &holder, &rep.rep), -EBUSY);
    assert_int_equal(holder, 0); /* the kernel does not say */
    assert_int_equal(rep.n_lines, 0);
    spec.read_only = true;
    assert_int_equal(blk_file_open(&b, &spec, NULL, &rep.rep), -EBUSY);
    spec.lock = BLK_LOCK_NONE;
    assert_int_equal(blk_file_open(&b, &spec, NULL, &rep.rep), 0);
    blk_close(b);
    finish(c);
    b = test_open_file(path); /* it went with its process */
    blk_close(b);
}

static void one_process_cannot_open_twice_either(void **state)
{
    const char *path = test_file(test_disk, 4096, false);
    AUTO_BLK struct blk *b = test_open_file(path);
    struct blk *again = NULL;

    (void)state;
    assert_non_null(b);
    assert_int_equal(test_open(&again, path, false, BLK_DIRECT_AUTO), -EBUSY);
    close(open(path, O_RDONLY | O_CLOEXEC)); /* a POSIX lock would be gone now */
    assert_int_equal(test_open(&again, path, false, BLK_DIRECT_AUTO), -EBUSY);
}

static void readers_share(void **state)
{
    const char *path = test_file(test_disk, 4096, false);
    struct child c = start(hold_for_reading, path);
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(test_open(&b, path, false, BLK_DIRECT_AUTO), -EBUSY);
    assert_int_equal(test_open(&b, path, true, BLK_DIRECT_AUTO), 0);
    blk_close(b);
    finish(c);
}

static void the_holder_of_a_posix_lock_is_named(void **state)
{
    const struct blk_file_spec spec = {.path = test_file(test_disk, 4096, false)};
    struct child c = start(hold_posix_lock, spec.path);
    struct blk *b = NULL;
    pid_t holder = 0;

    (void)state;
    assert_int_equal(blk_file_open(&b, &spec, &holder, NULL), -EBUSY);
    assert_int_equal(holder, c.pid);
    finish(c);
}

/* The stat after the lock is the second one that an open makes. */
static void replace_before_second_stat(void)
{
    if (test_inject.n_stat == 2)
        assert_int_equal(rename(test_path(test_disk, "newer"), test_path(test_disk, "container")),
                         0);
}

static void a_file_replaced_while_it_was_opened_is_busy(void **state)
{
    const char *path = test_path(test_disk, "newer");
    struct blk *b = NULL;

    (void)state;
    assert_int_equal(rename(test_file(test_disk, 5000, false), path), 0);
    path = test_file(test_disk, 4096, false);
    test_inject.n_stat = 0;
    test_inject.on_stat = replace_before_second_stat;
    assert_int_equal(test_open(&b, path, false, BLK_DIRECT_AUTO), -EBUSY);
    test_inject.on_stat = NULL;
    b = test_open_file(path);
    assert_int_equal(b->size, 5000);
    blk_close(b);
}

static void a_file_without_a_name_opens_by_its_descriptor(void **state)
{
    const char *path = test_file(test_disk, 5000, false);
    AUTO_FD int fd = open(path, O_RDWR | O_CLOEXEC);
    char by_fd[40];
    struct blk *b = NULL;

    (void)state;
    unlink(path);
    snprintf(by_fd, sizeof(by_fd), "/proc/self/fd/%d", fd);
    b = test_open_file(by_fd);
    assert_int_equal(b->size, 5000);
    blk_close(b);
}

#define FILE_TEST(f) cmocka_unit_test_setup_teardown(f, NULL, test_files_clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILE_TEST(size_is_what_the_file_has),
        FILE_TEST(only_files_and_devices_open),
        FILE_TEST(read_only_opens_what_cannot_be_written),
        FILE_TEST(random_operations_match_an_array),
        FILE_TEST(random_operations_match_an_array_with_o_direct),
        FILE_TEST(direct_is_off_for_files_unless_asked_for),
        FILE_TEST(direct_on_is_refused_where_the_end_cannot_be_reached),
        FILE_TEST(short_transfers_and_signals_are_nobodys_business),
        FILE_TEST(short_direct_transfers_go_on_at_whole_granules),
        FILE_TEST(a_file_that_was_cut_fails_to_read),
        FILE_TEST(a_writer_keeps_everybody_out),
        FILE_TEST(one_process_cannot_open_twice_either),
        FILE_TEST(readers_share),
        FILE_TEST(the_holder_of_a_posix_lock_is_named),
        FILE_TEST(a_file_replaced_while_it_was_opened_is_busy),
        FILE_TEST(a_file_without_a_name_opens_by_its_descriptor),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
