/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/secret.h"
#include "base/bytes.h"
#include "lib/test.h"

/* What changes the process (no core dumps, locked memory) runs in a child process. */

#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_made_secret_is_zeroed(void **state)
{
    AUTO_SECRET struct secret s = {0};

    (void)state;
    assert_int_equal(secret_make(&s, 1000), 0);
    assert_int_equal(s.len, 1000);
    assert_true(bytes_are_zero(s.bytes, s.len));
    memset(s.bytes, 1, s.len);
    assert_int_equal(secret_make(&s, 500), 0); /* the first one is released */
    assert_int_equal(s.len, 500);
    assert_true(bytes_are_zero(s.bytes, s.len));
}

static void a_copy_is_a_copy_even_of_itself(void **state)
{
    AUTO_SECRET struct secret s = {0};

    (void)state;
    assert_int_equal(secret_copy(&s, "passphrase", 10), 0);
    assert_int_equal(s.len, 10);
    assert_memory_equal(s.bytes, "passphrase", 10);
    assert_int_equal(secret_copy(&s, s.bytes + 4, 6), 0);
    assert_int_equal(s.len, 6);
    assert_memory_equal(s.bytes, "phrase", 6);
}

static void an_empty_secret_is_one(void **state)
{
    AUTO_SECRET struct secret s = {0};

    (void)state;
    assert_int_equal(secret_copy(&s, NULL, 0), 0);
    assert_int_equal(s.len, 0);
    assert_non_null(s.bytes);
}

static void done_leaves_nothing_and_may_come_twice(void **state)
{
    struct secret s = {0};

    (void)state;
    secret_done(&s);
    assert_int_equal(secret_copy(&s, "x", 1), 0);
    secret_done(&s);
    assert_null(s.bytes);
    assert_int_equal(s.len, 0);
    secret_done(&s);
}

static void equal_compares_all_bytes(void **state)
{
    (void)state;
    assert_true(secret_equal("abcd", "abcd", 4));
    assert_false(secret_equal("abcd", "abce", 4));
    assert_false(secret_equal("abcd", "bbcd", 4));
    assert_true(secret_equal("abcd", "abce", 3));
    assert_true(secret_equal("a", "b", 0));
}

static void wipe_and_random_do_what_they_say(void **state)
{
    unsigned char a[64] = {0}, b[64] = {0};

    (void)state;
    secret_random(a, sizeof(a));
    secret_random(b, sizeof(b));
    assert_memory_not_equal(a, b, sizeof(a));
    secret_wipe(a, sizeof(a));
    assert_true(bytes_are_zero(a, sizeof(a)));
}

/* Exit status of fn in a process of its own. */
static int in_child(int (*fn)(void))
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int start_turns_dumps_off(void)
{
    struct rlimit core = {1, 1};

    if (secret_start(NULL) != 0 || getrlimit(RLIMIT_CORE, &core) != 0)
        return 1;
    return core.rlim_cur != 0 || core.rlim_max != 0 || prctl(PR_GET_DUMPABLE) != 0;
}

static void no_core_dump_and_no_debugger_after_the_start(void **state)
{
    (void)state;
    assert_int_equal(in_child(start_turns_dumps_off), 0);
}

static int low_limit_warns(void)
{
    const struct rlimit low = {64 * 1024, 64 * 1024};
    struct test_report t;

    test_report_init(&t);
    if (setrlimit(RLIMIT_MEMLOCK, &low) != 0 || (geteuid() == 0 && setuid(65534) != 0))
        return 1;
    secret_lock_memory(&t.rep);
    return !(t.n_lines == 1 && t.level[0] == REPORT_WARN && test_report_has(&t, "64 KiB") &&
             test_report_has(&t, "memlock"));
}

static void a_low_limit_is_named_once(void **state)
{
    (void)state;
    assert_int_equal(in_child(low_limit_warns), 0);
}

static int locks_all(void)
{
    struct test_report t;

    test_report_init(&t);
    secret_lock_memory(&t.rep);
    return t.n_lines != 0;
}

static void with_the_right_to_it_all_memory_is_locked(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("not run: needs root, who may lock memory without limit\n");
        skip();
    }
    assert_int_equal(in_child(locks_all), 0);
}

static int write_behind_the_end(void)
{
    const struct rlimit no_core = {0, 0};
    struct secret s = {0};

    setrlimit(RLIMIT_CORE, &no_core);
    signal(SIGSEGV, SIG_DFL); /* cmocka would catch it and go on with the tests */
    if (secret_make(&s, 16) != 0)
        return 1;
    *(volatile unsigned char *)(s.bytes + 16) = 1; /* the guard page */
    return 0;
}

static void behind_the_end_is_a_guard_page(void **state)
{
    (void)state;
    assert_int_not_equal(in_child(write_behind_the_end), 0);
}

static int start_library(void **state)
{
    (void)state;
    return sodium_init() < 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_made_secret_is_zeroed),
        cmocka_unit_test(a_copy_is_a_copy_even_of_itself),
        cmocka_unit_test(an_empty_secret_is_one),
        cmocka_unit_test(done_leaves_nothing_and_may_come_twice),
        cmocka_unit_test(equal_compares_all_bytes),
        cmocka_unit_test(wipe_and_random_do_what_they_say),
        cmocka_unit_test(no_core_dump_and_no_debugger_after_the_start),
        cmocka_unit_test(a_low_limit_is_named_once),
        cmocka_unit_test(with_the_right_to_it_all_memory_is_locked),
        cmocka_unit_test(behind_the_end_is_a_guard_page),
    };

    return cmocka_run_group_tests(tests, start_library, NULL);
}
