/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves base/run.c: helpers get what they need and nothing else. */

#include "base/run.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void a_helper_gets_no_descriptor_but_the_first_three(void **state)
{
    const char *const argv[] = {"sh", "-c", "[ ! -e /proc/self/fd/37 ] && echo none", NULL};
    int fd = dup2(open("/dev/null", O_RDONLY), 37); /* not close-on-exec: as if we inherited it */
    char out[64];

    (void)state;
    assert_int_equal(fd, 37);
    assert_int_equal(run_read(argv, out, sizeof(out), NULL), 0);
    assert_string_equal(out, "none\n");
    close(fd);
}

static void a_helper_has_default_signals(void **state)
{
    const char *const argv[] = {"sh", "-c", "kill -TERM $$; sleep 10", NULL};
    sigset_t term;

    (void)state;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    signal(SIGTERM, SIG_IGN);
    sigprocmask(SIG_BLOCK, &term, NULL);
    assert_int_equal(run_wait(argv, RUN_HIDE, NULL), 128 + SIGTERM);
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    signal(SIGTERM, SIG_DFL);
}

static void statuses_and_output_come_back(void **state)
{
    const char *const fails[] = {"sh", "-c", "exit 7", NULL};
    const char *const talks[] = {"sh", "-c", "echo one; echo two >&2; echo three", NULL};
    const char *const missing[] = {"no-such-program-here", NULL};
    struct test_report t;
    char out[12];

    (void)state;
    test_report_init(&t);
    assert_int_equal(run_wait(fails, RUN_HIDE, &t.rep), 7);
    assert_int_equal(run_read(talks, out, sizeof(out), &t.rep), 0);
    assert_int_equal(t.n_lines, 0);
    assert_int_equal(run_wait(missing, RUN_HIDE, &t.rep), -ENOENT);
    assert_true(test_report_has(&t, "no-such-program-here"));
    assert_int_equal(strncmp(out, "one\n", 4), 0);
    assert_int_equal(strlen(out), sizeof(out) - 1); /* cut, not overrun */
}

static int make_line(struct secret *s, size_t len)
{
    int r = secret_make(s, len);

    memset(s->bytes, 'a', r == 0 ? len : 0);
    return r;
}

/* It has to end by itself: with another end of the pipe open in it, cat would wait for ever. */
static void a_line_is_all_that_its_stdin_has(void **state)
{
    const char *const argv[] = {"sh", "-c", "[ \"$(cat; echo .)\" = 'aaaa\n.' ]", NULL};
    const char *const there[] = {"sh", "-c", "[ \"$(pwd; cat)\" = '/\naaaa' ]", NULL};
    AUTO_SECRET struct secret line = {0};

    (void)state;
    assert_int_equal(make_line(&line, 4), 0);
    assert_int_equal(run_feed(argv, &line, RUN_HIDE, NULL), 0);
    assert_int_equal(run_feed_in("/", there, &line, RUN_HIDE, NULL), 0);
}

/* More than a pipe holds, so that the write is what waits. SIGPIPE would end this test. */
static void one_who_does_not_read_ends_with_its_status(void **state)
{
    const char *const argv[] = {"sh", "-c", "exec <&-; exit 5", NULL};
    AUTO_SECRET struct secret line = {0};
    sigset_t blocked;

    (void)state;
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(make_line(&line, 1 << 20), 0);
    assert_int_equal(run_feed(argv, &line, RUN_HIDE, NULL), 5);
    assert_int_equal(sigpending(&blocked), 0);
    assert_false(sigismember(&blocked, SIGPIPE));
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGPIPE));
}

static void who_is_not_there_is_fed_nothing(void **state)
{
    const char *const argv[] = {"no-such-program-here", NULL};
    AUTO_SECRET struct secret line = {0};

    (void)state;
    assert_int_equal(make_line(&line, 4), 0);
    assert_int_equal(run_feed(argv, &line, RUN_HIDE, NULL), -ENOENT);
}

/* In a child: cmocka needs its own. */
static void closed_ones_among_the_first_three_lead_to_null(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    pid = fork();
    if (pid == 0) {
        close(STDIN_FILENO);
        close(STDERR_FILENO);
        _exit(run_open_stdio(NULL) == 0 && fcntl(STDIN_FILENO, F_GETFD) == 0 &&
                      fcntl(STDERR_FILENO, F_GETFD) == 0 && open("/dev/null", O_RDONLY) > 2
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_gets_no_descriptor_but_the_first_three),
        cmocka_unit_test(a_helper_has_default_signals),
        cmocka_unit_test(statuses_and_output_come_back),
        cmocka_unit_test(a_line_is_all_that_its_stdin_has),
        cmocka_unit_test(one_who_does_not_read_ends_with_its_status),
        cmocka_unit_test(who_is_not_there_is_fed_nothing),
        cmocka_unit_test(closed_ones_among_the_first_three_lead_to_null),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
