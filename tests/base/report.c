/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/report.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void an_error_returns_its_negative_number(void **state)
{
    struct test_report t;

    (void)state;
    test_report_init(&t);
    assert_int_equal(report_error(&t.rep, EBADMSG, "bad %d", 7), -EBADMSG);
    assert_int_equal(report_errno(&t.rep, ENOENT, "open"), -ENOENT);
    assert_int_equal(report_error(NULL, EIO, "nobody hears it"), -EIO);
    report_warn(NULL, "nor this");
    report_info(NULL, "nor this");
    assert_int_equal(t.n_lines, 2);
    assert_string_equal(t.line[0], "bad 7");
    assert_string_equal(t.line[1], "open: No such file or directory");
}

static void a_line_says_what_failed_for_which(void **state)
{
    struct test_report t;

    (void)state;
    test_report_init(&t);
    t.rep.what = "mount";
    report_error(&t.rep, EIO, "why");
    t.rep.which = "a.hv";
    report_error(&t.rep, EIO, "why");
    report_warn(&t.rep, "careful");
    report_info(&t.rep, "done");
    t.rep.what = NULL;
    report_error(&t.rep, EIO, "why");
    assert_string_equal(t.line[0], "mount failed: why");
    assert_string_equal(t.line[1], "mount failed for a.hv: why");
    assert_string_equal(t.line[2], "a.hv: careful");
    assert_string_equal(t.line[3], "done");
    assert_string_equal(t.line[4], "a.hv: why");
    assert_int_equal(t.level[1], REPORT_ERROR);
    assert_int_equal(t.level[2], REPORT_WARN);
    assert_int_equal(t.level[3], REPORT_INFO);
}

static void infos_can_be_silent(void **state)
{
    struct test_report t;

    (void)state;
    test_report_init(&t);
    t.rep.silent_infos = 1;
    report_info(&t.rep, "unheard");
    report_warn(&t.rep, "heard");
    assert_int_equal(t.n_lines, 1);
    assert_int_equal(t.level[0], REPORT_WARN);
}

static const char *escaped(const char *text)
{
    static char out[200];

    report_escape(out, sizeof(out), text);
    return out;
}

static void nothing_in_a_line_can_play_with_a_terminal(void **state)
{
    struct test_report t;

    (void)state;
    assert_string_equal(escaped("a\033[2Jb\r\n\t\x7f"), "a\\x1b[2Jb\\x0d\\x0a\\x09\\x7f");
    assert_string_equal(escaped("\xc2\x9b[2J"), "\\xc2\\x9b[2J"); /* CSI as one character */
    assert_string_equal(escaped("\x9b[2J"), "\\x9b[2J");          /* and as one byte */
    assert_string_equal(escaped("\xe2\x80\xae"
                                "gpj.exe"),
                        "\\xe2\\x80\\xaegpj.exe");
    test_report_init(&t);
    t.rep.what = "mount";
    t.rep.which = "\033c";
    report_error(&t.rep, EIO, "\033c");
    assert_string_equal(t.line[0], "mount failed for \\x1bc: \\x1bc");
}

static void text_in_any_script_stays_as_it_is(void **state)
{
    const char *text = "Größe \xc2\xa0 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x94\x92 \\x41";

    (void)state;
    assert_string_equal(escaped(text), text);
    assert_string_equal(escaped(""), "");
    assert_string_equal(escaped("caf\xe9"), "caf\\xe9"); /* Latin-1 is no UTF-8 */
}

static void escaping_cuts_between_characters(void **state)
{
    char out[8];

    (void)state;
    report_escape(out, sizeof(out), "123456789");
    assert_string_equal(out, "1234567");
    report_escape(out, sizeof(out), "12345\xe6\x97\xa5");
    assert_string_equal(out, "12345");
    report_escape(out, sizeof(out), "1234\n");
    assert_string_equal(out, "1234");
    report_escape(out, sizeof(out), "123\n");
    assert_string_equal(out, "123\\x0a");
    report_escape(out, 1, "123");
    assert_string_equal(out, "");
}

static void a_long_line_is_cut(void **state)
{
    char text[3 * REPORT_LINE];
    struct test_report t;

    (void)state;
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = '\0';
    test_report_init(&t);
    report_error(&t.rep, EIO, "%s", text);
    assert_int_equal(strlen(t.line[0]), REPORT_LINE - 1);
    memset(text, '\n', sizeof(text) - 1);
    report_error(&t.rep, EIO, "%s", text);
    assert_in_range(strlen(t.line[1]), REPORT_LINE - 4, REPORT_LINE - 1);
}

static void stderr_lines_name_the_program(void **state)
{
    int pipe_fd[2], saved = dup(STDERR_FILENO);
    char line[3 * REPORT_LINE] = "";
    struct report rep;

    (void)state;
    assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
    assert_true(dup2(pipe_fd[1], STDERR_FILENO) >= 0);
    report_stderr_init(&rep, "mount", "a.hv");
    report_error(&rep, EIO, "%0*d", 2 * REPORT_LINE, 1);
    report_error(&rep, EIO, "why");
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
    assert_true(read(pipe_fd[0], line, sizeof(line) - 1) > 0);
    assert_memory_equal(line, "hushvol: mount failed for a.hv: 000", 35);
    assert_string_equal(strchr(line, '\n'), "\nhushvol: mount failed for a.hv: why\n");
    close(pipe_fd[0]);
    close(pipe_fd[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_returns_its_negative_number),
        cmocka_unit_test(a_line_says_what_failed_for_which),
        cmocka_unit_test(infos_can_be_silent),
        cmocka_unit_test(nothing_in_a_line_can_play_with_a_terminal),
        cmocka_unit_test(text_in_any_script_stays_as_it_is),
        cmocka_unit_test(escaping_cuts_between_characters),
        cmocka_unit_test(a_long_line_is_cut),
        cmocka_unit_test(stderr_lines_name_the_program),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
