/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves login/sessions.c: who opened, who closed and how many are left, also after crashes, from
 * several processes, and with a file or folder that somebody else made. */

#include "login/sessions.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define UID 4711

static char folder[64], file[PATH_MAX];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/hushvol-test.XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof(file), "%s/login/%d", folder, UID);
    return 0;
}

static int remove_folder(void **state)
{
    char path[PATH_MAX];

    (void)state;
    unlink(file);
    snprintf(path, sizeof(path), "%s/login", folder);
    rmdir(path);
    return rmdir(folder);
}

static int open_it(struct report *rep)
{
    return login_sessions_open(folder, UID, rep);
}

static struct login_process self(void)
{
    struct login_process p;

    assert_int_equal(login_process_self(&p), 0);
    return p;
}

/* A session that a process opens which is gone when this returns, without having closed it. */
static struct login_process opened_and_gone(int fd)
{
    struct login_process p;
    int fds[2], status;
    pid_t pid;

    assert_int_equal(pipe(fds), 0);
    pid = fork();
    if (pid == 0) {
        int r = login_process_self(&p);

        if (r == 0)
            r = login_sessions_add(fd, &p, NULL);
        _exit(r >= 0 && write(fds[1], &p, sizeof(p)) == sizeof(p) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(read(fds[0], &p, sizeof(p)), sizeof(p));
    assert_int_equal(p.pid, pid);
    close(fds[0]);
    close(fds[1]);
    return p;
}

static void two_of_one_process(void **state)
{
    const struct login_process p = self();
    int fd = open_it(NULL);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(login_sessions_add(fd, &p, NULL), 1);
    assert_int_equal(login_sessions_add(fd, &p, NULL), 2);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 1);
    assert_int_equal(login_sessions_count(fd, NULL), 1);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    close(fd);
}

static void opened_and_closed_by_four_processes(void **state)
{
    const struct login_process p = self();
    int fd = open_it(NULL);

    (void)state;
    opened_and_gone(fd);
    opened_and_gone(fd);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 1);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    close(fd);
}

static void a_crashed_one_goes_with_the_next_that_closes_its_own(void **state)
{
    const struct login_process p = self();
    int fd = open_it(NULL);

    (void)state;
    opened_and_gone(fd);
    assert_int_equal(login_sessions_add(fd, &p, NULL), 2);
    opened_and_gone(fd);
    assert_int_equal(login_sessions_count(fd, NULL), 3);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    close(fd);
}

static void a_stranger_closes_what_is_gone_before_what_lives(void **state)
{
    const struct login_process p = self();
    struct login_process stranger = p;
    int fd = open_it(NULL);

    (void)state;
    stranger.start++; /* the number of a process that is gone, given again */
    assert_int_equal(login_sessions_add(fd, &p, NULL), 1);
    opened_and_gone(fd);
    assert_int_equal(login_sessions_remove(fd, &stranger, NULL), 1);
    stranger.pid = 1;
    assert_int_equal(login_sessions_add(fd, &p, NULL), 2);
    assert_int_equal(login_sessions_remove(fd, &stranger, NULL), 1);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    close(fd);
}

static void many_at_once_are_all_counted(void **state)
{
    const int n_children = 8, n_sessions = 20;
    int fd, status;

    (void)state;
    for (int i = 0; i < n_children; i++)
        if (fork() == 0) {
            const struct login_process p = self();
            int mine = open_it(NULL), bad = mine < 0;

            for (int k = 0; k < n_sessions; k++)
                bad |= login_sessions_add(mine, &p, NULL) <= 0;
            for (int k = 1; k < n_sessions; k++) /* one stays */
                bad |= login_sessions_remove(mine, &p, NULL) <= 0;
            _exit(bad);
        }
    for (int i = 0; i < n_children; i++) {
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    fd = open_it(NULL);
    /* Closing its own takes along the last one of a child that has ended by then. */
    assert_in_range(login_sessions_count(fd, NULL), 1, n_children);
    close(fd);
}

static void more_than_there_is_room_for_are_refused_and_the_dead_make_room(void **state)
{
    const struct login_process p = self();
    struct test_report t;
    int fd = open_it(NULL);

    (void)state;
    opened_and_gone(fd);
    for (int i = 2; i <= LOGIN_SESSIONS_MAX; i++)
        assert_int_equal(login_sessions_add(fd, &p, NULL), i);
    assert_int_equal(login_sessions_add(fd, &p, NULL), LOGIN_SESSIONS_MAX);
    test_report_init(&t);
    assert_int_equal(login_sessions_add(fd, &p, &t.rep), -ENOSPC);
    assert_true(test_report_has(&t, "not counted"));
    close(fd);
}

static void write_text(const char *text, size_t len)
{
    int fd = open(file, O_WRONLY | O_TRUNC);

    assert_int_equal(write(fd, text, len), len);
    close(fd);
}

static void a_damaged_file_is_said_and_begun_anew(void **state)
{
    static const char *const bad[] = {"x",
                                      "1 2\n",
                                      "         1                    1x\n",
                                      "        -1                    1\n",
                                      "                               \n",
                                      "         1                    1\n         1      "};
    const struct login_process p = self();
    int fd = open_it(NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct test_report t;

        write_text(bad[i], strlen(bad[i]));
        test_report_init(&t);
        assert_int_equal(login_sessions_add(fd, &p, &t.rep), 1);
        assert_true(test_report_has(&t, "damaged"));
        test_report_init(&t);
        assert_int_equal(login_sessions_count(fd, &t.rep), 1);
        assert_int_equal(t.n_lines, 0);
    }
    close(fd);
}

/* Where the writing of a shorter file is cut off: the end is still that of the longer one. */
static void a_crash_while_closing_leaves_lines(void **state)
{
    const struct login_process p = self();
    char before[256], after[256];
    struct test_report t;
    ssize_t n, m;
    int fd = open_it(NULL);

    (void)state;
    opened_and_gone(fd);
    opened_and_gone(fd);
    login_sessions_add(fd, &p, NULL);
    n = pread(fd, before, sizeof(before), 0);
    assert_int_equal(login_sessions_remove(fd, &(struct login_process){1, 1}, NULL), 2);
    m = pread(fd, after, sizeof(after), 0);
    assert_int_equal(m * 3, n * 2);
    for (ssize_t done = 0; done <= m; done += m / 2) {
        char text[256];

        memcpy(text, before, (size_t)n);
        memcpy(text, after, (size_t)done);
        write_text(text, (size_t)n);
        test_report_init(&t);
        assert_int_equal(login_sessions_count(fd, &t.rep), 3);
        assert_int_equal(t.n_lines, 0);
    }
    /* One too many, of a process that is there: it goes with that process at the latest. */
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 1);
    assert_int_equal(login_sessions_remove(fd, &p, NULL), 0);
    close(fd);
}

static void what_is_not_roots_alone_is_refused(void **state)
{
    struct test_report t;
    char path[PATH_MAX];

    (void)state;
    test_report_init(&t);
    chmod(folder, 0755);
    assert_int_equal(open_it(&t.rep), -EPERM);
    assert_true(test_report_has(&t, folder));
    chmod(folder, 0700);
    close(open_it(NULL));
    unlink(file);
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_int_equal(open_it(&t.rep), -ELOOP);
    unlink(file);
    assert_int_equal(mkfifo(file, 0600), 0);
    assert_int_equal(open_it(&t.rep), -EPERM);
    unlink(file);
    close(open_it(NULL));
    chmod(file, 0644);
    assert_int_equal(open_it(&t.rep), -EPERM);
    chmod(file, 0600);
    snprintf(path, sizeof(path), "%s/link", folder);
    assert_int_equal(link(file, path), 0);
    assert_int_equal(open_it(&t.rep), -EPERM);
    unlink(path);
}

static void one_works_the_other_waits_and_gives_up(void **state)
{
    struct test_report t;
    int one = open_it(NULL), other = open_it(NULL);

    (void)state;
    test_report_init(&t);
    assert_int_equal(login_sessions_work(one, 1, NULL), 0);
    assert_int_equal(login_sessions_work(other, 0, &t.rep), -EBUSY);
    assert_true(test_report_has(&t, "still at work"));
    assert_int_equal(login_sessions_count(other, NULL), 0); /* counting goes on meanwhile */
    login_sessions_rest(one);
    assert_int_equal(login_sessions_work(other, 0, NULL), 0);
    close(other); /* as when the process is killed */
    assert_int_equal(login_sessions_work(one, 0, NULL), 0);
    close(one);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        EACH(two_of_one_process),
        EACH(opened_and_closed_by_four_processes),
        EACH(a_crashed_one_goes_with_the_next_that_closes_its_own),
        EACH(a_stranger_closes_what_is_gone_before_what_lives),
        EACH(many_at_once_are_all_counted),
        EACH(more_than_there_is_room_for_are_refused_and_the_dead_make_room),
        EACH(a_damaged_file_is_said_and_begun_anew),
        EACH(a_crash_while_closing_leaves_lines),
        EACH(what_is_not_roots_alone_is_refused),
        EACH(one_works_the_other_waits_and_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
