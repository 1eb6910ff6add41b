/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include <errno.h>
#include <string.h>

static void assert_escapes(const char *text, const char *want)
{
    char out[64];

    report_escape(out, sizeof(out), text);
    assert_string_equal(out, want);
}

static void control_characters_are_shown_and_letters_are_not_changed(void **state)
{
    (void)state;
    assert_escapes("plain \xc3\xa4 \xe2\x82\xac", "plain \xc3\xa4 \xe2\x82\xac");
    assert_escapes("a\x1b[2J\r\n\x7f", "a\\x1b[2J\\x0d\\x0a\\x7f");
    assert_escapes("csi \xc2\x9b", "csi \\xc2\\x9b");
    assert_escapes("\xc2\xa0", "\xc2\xa0");
    assert_escapes("cut \xc2", "cut \xc2");
    assert_escapes("", "");
}

static void a_small_buffer_cuts_between_characters(void **state)
{
    char out[8];

    (void)state;
    report_escape(out, sizeof(out), "1234567");
    assert_string_equal(out, "1234567");
    report_escape(out, sizeof(out), "12345678");
    assert_string_equal(out, "1234567");
    report_escape(out, sizeof(out), "123\x01");
    assert_string_equal(out, "123\\x01");
    report_escape(out, sizeof(out), "1234\x01");
    assert_string_equal(out, "1234");
    report_escape(out, 1, "1");
    assert_string_equal(out, "");
}

static void an_error_names_what_failed_for_which_and_why(void **state)
{
    struct test_report t;

    (void)state;
    test_report_init(&t);
    t.rep.what = "mount";
    t.rep.which = "a\nb";
    assert_int_equal(report_error(&t.rep, EBUSY, "it is %s", "taken"), -EBUSY);
    assert_int_equal(report_errno(&t.rep, ENOENT, "cannot open %d", 5), -ENOENT);
    report_warn(&t.rep, "careful");
    report_info(&t.rep, "fine");
    assert_string_equal(t.line[0], "mount failed for a\\x0ab: it is taken");
    assert_string_equal(t.line[1],
                        "mount failed for a\\x0ab: cannot open 5: No such file or directory");
    assert_string_equal(t.line[2], "a\\x0ab: careful");
    assert_string_equal(t.line[3], "fine");
    assert_int_equal(report_error(NULL, EIO, "nobody listens"), -EIO);
}

static void infos_can_be_silenced(void **state)
{
    struct test_report t;

    (void)state;
    test_report_init(&t);
    t.rep.silent_infos = 1;
    report_info(&t.rep, "fine");
    report_warn(&t.rep, "careful");
    assert_int_equal(t.n_lines, 1);
    assert_string_equal(t.line[0], "careful");
}

static void a_line_that_is_too_long_is_cut(void **state)
{
    char text[3 * REPORT_LINE];
    struct test_report t;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    test_report_init(&t);
    report_error(&t.rep, EIO, "%s", text);
    assert_int_equal(strlen(t.line[0]), REPORT_LINE - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_characters_are_shown_and_letters_are_not_changed),
        cmocka_unit_test(a_small_buffer_cuts_between_characters),
        cmocka_unit_test(an_error_names_what_failed_for_which_and_why),
        cmocka_unit_test(infos_can_be_silenced),
        cmocka_unit_test(a_line_that_is_too_long_is_cut),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
