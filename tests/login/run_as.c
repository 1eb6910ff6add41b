/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves login/run_as.c: what the user's program gets of the host that starts it, what it does not,
 * and that neither can stop the other. Only root can become a user. */

#include "login/run_as.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define UID 54321
#define GID 54322

static const struct login_user user = {
    .name = "nobody-of-this-name", .home = "/", .shell = "/bin/sh", .uid = UID, .gid = GID};
static char out[4096], err[4096];

static int run_with(const char *script, const struct secret *input, unsigned timeout,
                    struct report *rep)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", "ONE=1", NULL};
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    const struct login_run run = {.user = &user,
                                  .argv = argv,
                                  .env = env,
                                  .input = input,
                                  .timeout = timeout,
                                  .out = out,
                                  .out_size = sizeof(out),
                                  .err = err,
                                  .err_size = sizeof(err)};

    if (geteuid() != 0)
        skip();
    return login_run_as(&run, rep);
}

static void expect(const char *script, const char *want)
{
    assert_int_equal(run_with(script, NULL, 20, NULL), 0);
    assert_string_equal(out, want);
    assert_string_equal(err, "");
}

static void it_is_the_user_and_has_no_way_back(void **state)
{
    const gid_t mine[] = {0, 4, 27};

    (void)state;
    if (geteuid() == 0)
        assert_int_equal(setgroups(3, mine), 0);
    expect("grep -E '^(Uid|Gid|Groups|Cap(Prm|Eff|Amb))' /proc/self/status",
           "Uid:\t54321\t54321\t54321\t54321\nGid:\t54322\t54322\t54322\t54322\nGroups:\t54322 \n"
           "CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n");
}

static void it_has_its_environment_and_folder_and_mask(void **state)
{
    (void)state;
    setenv("SECRET", "of the host", 1);
    umask(0);
    expect("env | grep -v -e '^_=' -e ^PWD= | sort; pwd; umask",
           "ONE=1\nPATH=/usr/bin:/bin\n/\n0077\n");
    umask(022);
}

static void it_has_no_descriptor_of_the_host(void **state)
{
    int plain = dup2(open("/dev/null", O_RDONLY), 57), high = dup2(plain, 900);

    (void)state;
    expect("for n in 3 4 5 6 7 8 9 10 57 900; do [ ! -e /proc/$$/fd/$n ] || echo $n; done", "");
    close(plain);
    close(high);
}

static void its_session_is_its_own_and_has_no_terminal(void **state)
{
    (void)state;
    expect("read a b c parent pgrp sid tty rest </proc/$$/stat; "
           "[ $pgrp = $sid ] && [ $sid = $parent ] && [ $tty = 0 ] && echo own",
           "own\n");
}

static void its_signals_are_default_ones(void **state)
{
    sigset_t term;

    (void)state;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    signal(SIGTERM, SIG_IGN);
    sigprocmask(SIG_BLOCK, &term, NULL);
    assert_int_equal(run_with("kill -TERM $$; sleep 10", NULL, 20, NULL), 128 + SIGTERM);
    assert_int_equal(sigismember(&term, SIGTERM), 1);
    sigprocmask(SIG_BLOCK, NULL, &term); /* and the host's are what they were */
    assert_true(sigismember(&term, SIGTERM) && !sigismember(&term, SIGINT));
    sigprocmask(SIG_UNBLOCK, &term, NULL);
    signal(SIGTERM, SIG_DFL);
}

static void the_input_comes_whole_and_ends(void **state)
{
    struct secret input = {0};

    (void)state;
    assert_int_equal(secret_make(&input, LOGIN_INPUT_MAX), 0);
    memset(input.bytes, 'p', input.len);
    assert_int_equal(run_with("wc -c", &input, 20, NULL), 0);
    assert_string_equal(out, "4096\n");
    assert_int_equal(run_with("exec <&-; exit 3", &input, 20, NULL), 3); /* nobody reads it */
    assert_int_equal(secret_make(&input, LOGIN_INPUT_MAX + 1), 0);
    assert_int_equal(run_with("exit 0", &input, 20, NULL), -E2BIG);
    secret_done(&input);
    expect("wc -c", "0\n");
}

static void a_host_that_ignores_its_children_hears_of_ours(void **state)
{
    (void)state;
    signal(SIGCHLD, SIG_IGN);
    assert_int_equal(run_with("exit 7", NULL, 20, NULL), 7);
    signal(SIGCHLD, SIG_DFL);
}

static volatile sig_atomic_t n_stolen, n_signals;

static void steal(int sig)
{
    (void)sig;
    n_signals++;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        n_stolen++;
}

static void a_host_that_waits_for_all_gets_nothing_of_ours(void **state)
{
    (void)state;
    signal(SIGCHLD, steal);
    assert_int_equal(run_with("exit 7", NULL, 20, NULL), 7);
    signal(SIGCHLD, SIG_DFL);
    assert_int_equal(n_stolen, 0);
    assert_int_equal(n_signals, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_host_without_the_first_three_descriptors(void **state)
{
    int status;
    pid_t pid;

    (void)state;
    if (geteuid() != 0)
        skip();
    pid = fork();
    if (pid == 0) {
        struct secret input = {0};

        for (int fd = 0; fd < 3; fd++)
            close(fd);
        _exit(secret_copy(&input, "word\n", 5) == 0 &&
                      run_with("cat; echo no >&2", &input, 20, NULL) == 0 &&
                      strcmp(out, "word\n") == 0 && strcmp(err, "no\n") == 0
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void too_much_output_is_read_and_cut(void **state)
{
    (void)state;
    assert_int_equal(run_with("head -c 300000 /dev/zero | tr '\\0' x >&2; printf 'a\\0b'; exit 4",
                              NULL, 20, NULL),
                     4);
    assert_int_equal(strlen(err), sizeof(err) - 1);
    assert_string_equal(out, "a?b");
}

static long seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* The pipe is held by something that goes on in a session of its own, as a daemon does. */
static void what_it_leaves_behind_keeps_nobody_waiting(void **state)
{
    long start = seconds();
    pid_t left;

    (void)state;
    assert_int_equal(run_with("setsid sleep 100 & echo $!; exit 5", NULL, 50, NULL), 5);
    assert_true(seconds() - start < 40);
    left = atoi(out);
    assert_int_equal(kill(left, SIGKILL), 0);
}

static int is_there(const char *number)
{
    return atoi(number) > 1 && kill(atoi(number), 0) == 0;
}

/* It does not end by SIGTERM, and neither does what it started. */
static void what_does_not_end_is_ended_with_its_children(void **state)
{
    struct test_report t;
    char *rest;

    (void)state;
    test_report_init(&t);
    assert_int_equal(
        run_with("trap '' TERM; sleep 100 & echo $$; echo $!; wait; sleep 100", NULL, 1, &t.rep),
        -ETIMEDOUT);
    assert_true(test_report_has(&t, "not done within 1 seconds"));
    rest = strchr(out, '\n');
    assert_non_null(rest);
    for (int i = 0; i < 200 && is_there(rest + 1); i++)
        usleep(10000); /* somebody else reaps it */
    assert_false(is_there(out));
}

static void what_cannot_be_run_is_said(void **state)
{
    static const char *const env[] = {NULL};
    const char *const argv[] = {"/no/such/program", "mount", NULL};
    const struct login_run run = {
        .user = &user, .argv = argv, .env = env, .timeout = 5, .err = err, .err_size = sizeof(err)};
    struct test_report t;

    (void)state;
    if (geteuid() != 0)
        skip();
    test_report_init(&t);
    assert_int_equal(login_run_as(&run, &t.rep), -ENOEXEC);
    assert_true(test_report_has(&t, "/no/such/program"));
}

static void *run_some(void *arg)
{
    static const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
    const char *const argv[] = {"/bin/sh", "-c", "id -u", NULL};
    char text[64], more[64];
    const struct login_run run = {.user = &user,
                                  .argv = argv,
                                  .env = env,
                                  .timeout = 20,
                                  .out = text,
                                  .out_size = sizeof(text),
                                  .err = more,
                                  .err_size = sizeof(more)};
    long bad = arg != NULL;

    for (int i = 0; i < 10; i++)
        bad += login_run_as(&run, NULL) != 0 || strcmp(text, "54321\n") != 0;
    return (void *)bad;
}

static void from_several_threads(void **state)
{
    pthread_t threads[4];
    void *bad;

    (void)state;
    if (geteuid() != 0)
        skip();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_some, NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], &bad), 0);
        assert_null(bad);
    }
    assert_int_equal(geteuid(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_user_and_has_no_way_back),
        cmocka_unit_test(it_has_its_environment_and_folder_and_mask),
        cmocka_unit_test(it_has_no_descriptor_of_the_host),
        cmocka_unit_test(its_session_is_its_own_and_has_no_terminal),
        cmocka_unit_test(its_signals_are_default_ones),
        cmocka_unit_test(the_input_comes_whole_and_ends),
        cmocka_unit_test(a_host_that_ignores_its_children_hears_of_ours),
        cmocka_unit_test(a_host_that_waits_for_all_gets_nothing_of_ours),
        cmocka_unit_test(a_host_without_the_first_three_descriptors),
        cmocka_unit_test(too_much_output_is_read_and_cut),
        cmocka_unit_test(what_it_leaves_behind_keeps_nobody_waiting),
        cmocka_unit_test(what_does_not_end_is_ended_with_its_children),
        cmocka_unit_test(what_cannot_be_run_is_said),
        cmocka_unit_test(from_several_threads),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
