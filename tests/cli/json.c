/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include "cli/json.h"

static void assert_json(struct json_object *o, const char *want)
{
    assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), want);
    json_object_put(o);
}

static void strings_are_utf8_whatever_the_bytes(void **state)
{
    (void)state;
    assert_json(cmd_json_string("Ordner \xc3\xa4"), "\"Ordner \xc3\xa4\"");
    assert_json(cmd_json_string("cut \xc3"), "\"cut \\\\xc3\"");
    assert_json(cmd_json_string("\xff\xfe"), "\"\\\\xff\\\\xfe\"");
    assert_json(cmd_json_string("a\x1b[2J"), "\"a\\u001b[2J\"");
    assert_json(cmd_json_string(""), "\"\"");
}

static void times_are_utc_and_a_hostile_one_is_null(void **state)
{
    char text[CMD_TIME_TEXT];

    (void)state;
    assert_json(cmd_json_time(1769846400), "\"2026-01-31T08:00:00Z\"");
    assert_json(cmd_json_time(0), "\"1970-01-01T00:00:00Z\"");
    assert_json(cmd_json_time(253402300799), "\"9999-12-31T23:59:59Z\"");
    assert_json(cmd_json_time(253402300800), "null");
    assert_json(cmd_json_time(UINT64_MAX), "null");
    assert_string_equal(cmd_time_text(text, UINT64_MAX), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_utf8_whatever_the_bytes),
        cmocka_unit_test(times_are_utc_and_a_hostile_one_is_null),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
