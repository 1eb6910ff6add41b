/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves login/args.c: the words of a PAM configuration, and that a wrong one changes nothing. */

#include "login/args.h"
#include "lib/test.h"

static void parse(struct login_args *a, const char *word, struct test_report *t)
{
    const char *const words[] = {word};

    test_report_init(t);
    login_args_parse(a, 1, words, &t->rep);
}

static void every_word_is_understood(void **state)
{
    const char *const words[] = {"debug",         "timeout=5", "min_uid=500",
                                 "volumes=a,b-2", "also=cron", "program=/opt/hushvol"};
    struct test_report t;
    struct login_args a;

    (void)state;
    test_report_init(&t);
    login_args_parse(&a, 6, words, &t.rep);
    assert_int_equal(t.n_lines, 0);
    assert_true(a.debug);
    assert_int_equal(a.timeout, 5);
    assert_int_equal(a.min_uid, 500);
    assert_string_equal(a.volumes, "a,b-2");
    assert_string_equal(a.also, "cron");
    assert_string_equal(a.program, "/opt/hushvol");
}

static void what_is_not_said_is_as_documented(void **state)
{
    struct login_args a;

    (void)state;
    login_args_parse(&a, 0, NULL, NULL);
    assert_false(a.debug);
    assert_int_equal(a.timeout, 60);
    assert_int_equal(a.min_uid, 1000);
    assert_null(a.volumes);
    assert_null(a.also);
    assert_int_equal(a.program[0], '/');
}

static void a_wrong_word_is_said_and_the_default_stands(void **state)
{
    static const char *const wrong[] = {"",
                                        "timeout",
                                        "timeout=",
                                        "timeout=0",
                                        "timeout=-1",
                                        "timeout=3601",
                                        "timeout=5s",
                                        "timeout= 5",
                                        "min_uid=-1",
                                        "min_uid=4294967295",
                                        "min_uid=x",
                                        "min_uid=",
                                        "volumes=",
                                        "volumes=--all",
                                        "also=",
                                        "program=",
                                        "program=hushvol",
                                        "Debug",
                                        "debug=yes",
                                        "use_first_pass"};
    struct login_args plain, a;

    (void)state;
    login_args_parse(&plain, 0, NULL, NULL);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct test_report t;

        parse(&a, wrong[i], &t);
        assert_int_equal(t.n_lines, 1);
        assert_int_equal(t.level[0], REPORT_WARN);
        assert_true(test_report_has(&t, wrong[i]));
        assert_true(a.debug == plain.debug && a.timeout == plain.timeout &&
                    a.min_uid == plain.min_uid && a.volumes == plain.volumes &&
                    a.also == plain.also && a.program == plain.program);
    }
}

static void a_service_is_in_a_list_as_a_whole_word_only(void **state)
{
    (void)state;
    assert_true(login_args_lists("su", "su"));
    assert_true(login_args_lists("cron,su-l,atd", "su-l"));
    assert_true(login_args_lists("cron,su-l,atd", "atd"));
    assert_false(login_args_lists("cron,su-l,atd", "su"));
    assert_false(login_args_lists("cron,su-l,atd", "at"));
    assert_false(login_args_lists("cron,su-l,atd", ""));
    assert_false(login_args_lists("", "su"));
    assert_false(login_args_lists(NULL, "su"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_is_understood),
        cmocka_unit_test(what_is_not_said_is_as_documented),
        cmocka_unit_test(a_wrong_word_is_said_and_the_default_stands),
        cmocka_unit_test(a_service_is_in_a_list_as_a_whole_word_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
