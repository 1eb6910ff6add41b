/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/report_held.h"
#include "lib/test.h"

#include <errno.h>

static void an_error_waits_and_all_else_does_not(void **state)
{
    struct report_held held;
    struct test_report t;

    (void)state;
    test_report_init(&t);
    t.rep.what = "mount";
    t.rep.which = "a.hv";
    report_held_init(&held, &t.rep);
    report_error(&held.rep, EIO, "first");
    report_warn(&held.rep, "careful");
    report_error(&held.rep, EIO, "second");
    assert_int_equal(t.n_lines, 1);
    assert_string_equal(t.line[0], "a.hv: careful");
    report_held_say(&held);
    assert_int_equal(t.n_lines, 2);
    assert_string_equal(t.line[1], "mount failed for a.hv: second");
    assert_int_equal(t.level[1], REPORT_ERROR);
    report_held_say(&held);
    assert_int_equal(t.n_lines, 2);
}

static void another_try_forgets_it(void **state)
{
    struct report_held held;
    struct test_report t;

    (void)state;
    test_report_init(&t);
    report_held_init(&held, &t.rep);
    report_error(&held.rep, EIO, "first");
    report_held_forget(&held);
    report_held_say(&held);
    assert_int_equal(t.n_lines, 0);
}

static void nobody_need_listen(void **state)
{
    struct report_held held;

    (void)state;
    report_held_init(&held, NULL);
    report_warn(&held.rep, "unheard");
    assert_int_equal(report_error(&held.rep, EIO, "unheard"), -EIO);
    report_held_say(&held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_waits_and_all_else_does_not),
        cmocka_unit_test(another_try_forgets_it),
        cmocka_unit_test(nobody_need_listen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
