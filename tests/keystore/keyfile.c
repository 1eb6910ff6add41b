/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/keyfile.c: every byte of every kind of file, in order, and what is worth waiting
 * for. */

#include "keystore/keyfile.h"

#include "base/auto.h"
#include "lib/files.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static int start(void **state)
{
    return test_start(state) == 0 ? test_files_make(state) : -1;
}

static const char *path(const char *name)
{
    return test_path(test_disk, name);
}

static const char *file(const char *name, const void *bytes, size_t len)
{
    const char *p = path(name);
    AUTO_FD int fd = open(p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    return p;
}

static int read_files(struct secret *ret, struct report *rep, unsigned timeout, unsigned n, ...)
{
    struct credential_source src = {.n_keyfiles = n, .keyfile_timeout = timeout};
    va_list ap;

    va_start(ap, n);
    for (unsigned i = 0; i < n; i++)
        src.keyfiles[i] = va_arg(ap, const char *);
    va_end(ap);
    return keyfile_read_all(ret, &src, rep);
}

static void assert_bytes(const struct secret *s, const void *want, size_t len)
{
    assert_int_equal(s->len, len);
    assert_memory_equal(s->bytes, want, len);
}

/* Do it in another process, 0.4 s from now. Returns its pid. */
static pid_t soon(void (*fn)(const char *arg), const char *arg)
{
    const struct timespec t = {.tv_nsec = 400000000};
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    nanosleep(&t, NULL);
    fn(arg);
    _exit(0);
}

static void wait_for(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* --- bytes --- */

static void key_files_are_joined_in_order_and_whole(void **state)
{
    AUTO_SECRET struct secret s = {0};

    (void)state;
    assert_int_equal(
        read_files(&s, NULL, 0, 3, file("1", "first\n", 6), file("2", "\0second\n", 8), path("1")),
        0);
    assert_bytes(&s, "first\n\0second\nfirst\n", 20);
}

/* Sizes around every step in which memory grows. */
static void no_size_loses_a_byte(void **state)
{
    static const size_t sizes[] = {1,     4095,  4096,  4097,    16384,
                                   16385, 65536, 70000, 4194304, CREDENTIAL_KEYFILE_MAX};
    AUTO_FREE unsigned char *bytes = malloc(CREDENTIAL_KEYFILE_MAX);
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, bytes, CREDENTIAL_KEYFILE_MAX);
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        AUTO_SECRET struct secret s = {0};

        assert_int_equal(read_files(&s, NULL, 0, 1, file("k", bytes, sizes[i])), 0);
        assert_bytes(&s, bytes, sizes[i]);
    }
}

static void key_files_have_a_size_between_nothing_and_eight_mebibytes(void **state)
{
    AUTO_FREE char *big = calloc(1, CREDENTIAL_KEYFILE_MAX);
    AUTO_SECRET struct secret s = {0};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    file("big", big, CREDENTIAL_KEYFILE_MAX);
    file("one", "x", 1);
    file("none", "", 0);
    assert_int_equal(read_files(&s, &said.rep, 0, 2, path("big"), path("one")), -EINVAL);
    assert_true(test_report_has(&said, "more than 8 MiB"));
    assert_int_equal(read_files(&s, NULL, 0, 1, "/dev/zero"), -EINVAL);
    assert_int_equal(read_files(&s, &said.rep, 0, 2, path("one"), path("none")), -EINVAL);
    assert_true(test_report_has(&said, "none is empty"));
    assert_null(s.bytes);
}

static void write_to_fifo(const char *arg)
{
    AUTO_FD int fd = open(arg, O_WRONLY | O_CLOEXEC);

    if (write(fd, "in two ", 7) != 7 || usleep(50000) < 0 || write(fd, "pieces", 6) != 6)
        _exit(1);
}

static void a_fifo_is_read_to_its_end(void **state)
{
    AUTO_SECRET struct secret s = {0};
    const char *fifo = path("fifo");
    pid_t pid;

    (void)state;
    assert_int_equal(mkfifo(fifo, 0600), 0);
    pid = soon(write_to_fifo, fifo);
    assert_int_equal(read_files(&s, NULL, 0, 2, fifo, file("k", "+", 1)), 0);
    assert_bytes(&s, "in two pieces+", 14);
    wait_for(pid);
}

static void standard_input_is_one_by_either_name(void **state)
{
    static const char *const names[] = {"-", "/dev/stdin"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        AUTO_SECRET struct secret s = {0};
        int ends[2], old = dup(STDIN_FILENO);

        assert_int_equal(pipe(ends), 0);
        assert_int_equal(write(ends[1], "a\nb\n", 4), 4);
        close(ends[1]);
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        assert_int_equal(read_files(&s, NULL, 0, 1, names[i]), 0);
        dup2(old, STDIN_FILENO);
        close(old);
        assert_bytes(&s, "a\nb\n", 4);
    }
}

/* --- waiting --- */

static void make_file(const char *arg)
{
    char temporary[300];
    AUTO_FD int fd = -1;

    snprintf(temporary, sizeof(temporary), "%s.new", arg);
    fd = open(temporary, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (write(fd, "key", 3) != 3 || rename(temporary, arg) < 0)
        _exit(1);
}

static void a_file_that_appears_in_time_is_read(void **state)
{
    AUTO_SECRET struct secret s = {0};
    struct test_report said;
    pid_t pid = soon(make_file, path("late"));

    (void)state;
    test_report_init(&said);
    assert_int_equal(read_files(&s, &said.rep, 60, 2, path("late"), path("late")), 0);
    assert_bytes(&s, "keykey", 6);
    assert_int_equal(said.n_lines, 1);
    assert_int_equal(said.level[0], REPORT_WARN);
    assert_true(test_report_has(&said, "waiting up to 60 s for key file"));
    wait_for(pid);
}

/* The time is for all files together: the second gets what the first left. */
static void waiting_ends(void **state)
{
    AUTO_SECRET struct secret s = {0};
    struct test_report said;
    double from = seconds();

    (void)state;
    test_report_init(&said);
    assert_int_equal(read_files(&s, &said.rep, 1, 2, file("k", "x", 1), path("never")), -ENOENT);
    assert_true(seconds() - from >= 1);
    assert_int_equal(said.n_lines, 2);
    assert_true(test_report_has(&said, "cannot open key file"));
}

static void what_is_there_and_wrong_is_not_waited_for(void **state)
{
    AUTO_SECRET struct secret s = {0};
    struct test_report said;
    const char *loop = path("loop");

    (void)state;
    test_report_init(&said);
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(read_files(&s, &said.rep, 3600, 1, loop), -ELOOP);
    assert_int_equal(read_files(&s, &said.rep, 3600, 1, test_disk), -EISDIR);
    assert_int_equal(read_files(&s, &said.rep, 3600, 1, file("empty", "", 0)), -EINVAL);
    assert_int_equal(read_files(&s, &said.rep, 0, 1, path("never")), -ENOENT);
    assert_int_equal(said.n_lines, 4);
}

static void interrupt_parent(const char *arg)
{
    kill(getppid(), arg[0] == 'i' ? SIGINT : SIGTERM);
}

static void ctrl_c_ends_the_waiting_and_nothing_else(void **state)
{
    static const char *const which[] = {"int", "term"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        AUTO_SECRET struct secret s = {0};
        struct test_report said;
        sigset_t mask;
        pid_t pid = soon(interrupt_parent, which[i]);

        test_report_init(&said);
        assert_int_equal(read_files(&s, &said.rep, 3600, 1, path("never")), -EINTR);
        assert_true(test_report_has(&said, "interrupted while waiting"));
        wait_for(pid);
        assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
        assert_false(sigismember(&mask, SIGINT) || sigismember(&mask, SIGTERM));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(key_files_are_joined_in_order_and_whole, test_files_clear),
        cmocka_unit_test_teardown(no_size_loses_a_byte, test_files_clear),
        cmocka_unit_test_teardown(key_files_have_a_size_between_nothing_and_eight_mebibytes,
                                  test_files_clear),
        cmocka_unit_test_teardown(a_fifo_is_read_to_its_end, test_files_clear),
        cmocka_unit_test_teardown(standard_input_is_one_by_either_name, test_files_clear),
        cmocka_unit_test_teardown(a_file_that_appears_in_time_is_read, test_files_clear),
        cmocka_unit_test_teardown(waiting_ends, test_files_clear),
        cmocka_unit_test_teardown(what_is_there_and_wrong_is_not_waited_for, test_files_clear),
        cmocka_unit_test_teardown(ctrl_c_ends_the_waiting_and_nothing_else, test_files_clear),
    };

    return cmocka_run_group_tests(tests, start, test_files_remove);
}
