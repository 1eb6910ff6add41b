/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves of login/remember.c how passwords become the lines of a command's input; that they are
 * kept for the right user only needs a PAM stack, tests/mount/login. */

#include "login/remember.h"
#include "lib/test.h"

#include <errno.h>
#include <security/_pam_types.h>
#include <string.h>

static void one_or_two_lines(void **state)
{
    struct secret a = {0}, b = {0}, lines = {0};

    (void)state;
    assert_int_equal(login_secret(&a, "old one"), 0);
    assert_int_equal(login_secret(&b, ""), 0);
    assert_int_equal(login_lines(&lines, &a, NULL), 0);
    assert_int_equal(lines.len, 8);
    assert_memory_equal(lines.bytes, "old one\n", 8);
    assert_int_equal(login_lines(&lines, &b, &a), 0);
    assert_int_equal(lines.len, 9);
    assert_memory_equal(lines.bytes, "\nold one\n", 9);
    secret_done(&a);
    secret_done(&b);
    secret_done(&lines);
}

static void what_would_not_arrive_whole_is_refused(void **state)
{
    char longest[PAM_MAX_RESP_SIZE + 1];
    struct secret good = {0}, bad = {0}, lines = {0};

    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[PAM_MAX_RESP_SIZE] = '\0';
    assert_int_equal(login_secret(&good, longest + 1), 0);
    assert_int_equal(login_lines(&lines, &good, &good), 0);
    assert_int_equal(login_secret(&bad, longest), 0);
    assert_int_equal(login_lines(&lines, &bad, NULL), -EINVAL);
    assert_int_equal(login_secret(&bad, "two\nlines"), 0);
    assert_int_equal(login_lines(&lines, &bad, NULL), -EINVAL);
    assert_int_equal(login_lines(&lines, &good, &bad), -EINVAL);
    secret_done(&good);
    secret_done(&bad);
    secret_done(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_or_two_lines),
        cmocka_unit_test(what_would_not_arrive_whole_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
