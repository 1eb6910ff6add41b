/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/session.h"

#include "lib/test.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static bool echoes(int fd)
{
    struct termios t;

    return tcgetattr(fd, &t) == 0 && t.c_lflag & ECHO;
}

bool test_session_echoes(const struct test_session *s)
{
    return echoes(s->master);
}

/* The one who asks: what it got goes to fd. */
static void ask(test_session_fn *fn, const void *arg, int fd)
{
    struct test_asked asked = {.what = TEST_ENDED};

    asked.r = fn(arg, asked.text);
    _exit(write(fd, &asked, sizeof(asked)) != sizeof(asked));
}

/* The leader: runs the asking one in the foreground, tells when it stops, lets it go on. */
static void lead(const char *terminal, test_session_fn *fn, const void *arg, int fd)
{
    int tty, status;
    pid_t child;

    setsid();
    signal(SIGTTOU, SIG_IGN);
    tty = open(terminal, O_RDWR); /* becomes the controlling terminal */
    child = fork();
    if (child == 0) {
        signal(SIGTTOU, SIG_DFL);
        setpgid(0, 0);
        while (tcgetpgrp(tty) != getpid())
            usleep(1000);
        ask(fn, arg, fd);
    }
    setpgid(child, child);
    tcsetpgrp(tty, child);
    while (waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status)) {
        struct test_asked stopped = {.what = TEST_STOPPED, .echo = echoes(tty)};

        if (write(fd, &stopped, sizeof(stopped)) != sizeof(stopped))
            break;
        kill(child, SIGCONT);
    }
    _exit(0);
}

struct test_session test_session_open(test_session_fn *fn, const void *arg)
{
    struct test_session s = {.master = posix_openpt(O_RDWR | O_NOCTTY)};
    int results[2];

    assert_true(s.master >= 0 && grantpt(s.master) == 0 && unlockpt(s.master) == 0);
    assert_int_equal(pipe(results), 0);
    s.results = results[0];
    s.leader = fork();
    assert_true(s.leader >= 0);
    if (s.leader == 0)
        lead(ptsname(s.master), fn, arg, results[1]);
    close(results[1]);
    return s;
}

void test_session_expect(const struct test_session *s, const char *text)
{
    char shown[4096] = "";
    size_t n = 0;

    while (n < strlen(text) || strcmp(shown + n - strlen(text), text) != 0) {
        struct pollfd p = {s->master, POLLIN, 0};
        ssize_t got;

        if (poll(&p, 1, 20000) <= 0)
            fail_msg("the terminal shows \"%s\" and not \"%s\"", shown, text);
        got = read(s->master, shown + n, sizeof(shown) - 1 - n);
        if (got <= 0)
            fail_msg("the terminal is closed after \"%s\"", shown);
        n += (size_t)got;
        shown[n] = '\0';
    }
}

void test_session_type(const struct test_session *s, const char *keys)
{
    assert_int_equal(write(s->master, keys, strlen(keys)), strlen(keys));
}

struct test_asked test_session_next(const struct test_session *s)
{
    struct test_asked asked;

    assert_int_equal(read(s->results, &asked, sizeof(asked)), sizeof(asked));
    return asked;
}

void test_session_close(const struct test_session *s)
{
    int status;

    assert_int_equal(waitpid(s->leader, &status, 0), s->leader);
    close(s->master);
    close(s->results);
}
