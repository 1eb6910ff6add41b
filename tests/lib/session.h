/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Somebody who asks on a terminal of his own, as below a shell: a session with a leader, the asking
 * process in the foreground, and the keys and the screen in our hands. */

#include <stdbool.h>
#include <sys/types.h>

#define TEST_SESSION_TEXT 512
struct test_asked {
    enum { TEST_ENDED, TEST_STOPPED } what;
    int r;
    char text[TEST_SESSION_TEXT];
    bool echo; /* of the terminal when it stopped */
};

struct test_session {
    int master;  /* our side of the terminal */
    int results; /* from the leader: one struct test_asked for each thing that happened */
    pid_t leader;
};

/* What the asking process does: its answer and text (zeroed before) are what we get to see. */
typedef int test_session_fn(const void *arg, char text[TEST_SESSION_TEXT]);

struct test_session test_session_open(test_session_fn *fn, const void *arg);
/* Read what the terminal shows until it ends with text; fails the test when it does not come. */
void test_session_expect(const struct test_session *s, const char *text);
void test_session_type(const struct test_session *s, const char *keys);
bool test_session_echoes(const struct test_session *s);
/* Wait for what happens next. */
struct test_asked test_session_next(const struct test_session *s);
/* After TEST_ENDED. */
void test_session_close(const struct test_session *s);
