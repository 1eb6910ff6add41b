/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/doctor_systemd.c: which of systemd's files has the last word. */

#include "cli/doctor_systemd.h"
#include "lib/files.h"
#include "lib/test.h"

#include <stdio.h>
#include <string.h>

static char value[64];

static void put(const char *folder, const char *name, const char *text)
{
    char out[8];
    FILE *f;

    assert_int_equal(test_run(out, sizeof(out), "mkdir -p %s/%s", test_disk, folder), 0);
    snprintf(value, sizeof(value), "%s/%s", folder, name);
    f = fopen(test_path(test_disk, value), "we");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    value[0] = '\0';
}

static void is(const char *want)
{
    bool found = doctor_systemd_value(test_disk, "logind.conf", "Login:KillUserProcesses", value,
                                      sizeof(value));

    assert_int_equal(found, want != NULL);
    if (want != NULL)
        assert_string_equal(value, want);
}

static void the_last_word(void **state)
{
    (void)state;
    is(NULL);
    put("usr/lib/systemd", "logind.conf", "[Login]\nKillUserProcesses=1\n");
    is("1");
    put("etc/systemd", "logind.conf", "[Login]\n#KillUserProcesses=no\n");
    is(NULL); /* one main file only, and this is the stronger */
    put("etc/systemd", "logind.conf",
        "[Manager]\nKillUserProcesses=x\n[Login]\nKillUserProcesses=2\n");
    is("2");
    put("usr/lib/systemd/logind.conf.d", "50-a.conf", "[Login]\nKillUserProcesses=3\n");
    is("3");
    put("etc/systemd/logind.conf.d", "10-z.conf", "[Login]\nKillUserProcesses=4\n");
    is("3"); /* by name, wherever they are */
    put("run/systemd/logind.conf.d", "60-b.conf", "[Login]\nKillUserProcesses=5\n");
    put("etc/systemd/logind.conf.d", "README", "[Login]\nKillUserProcesses=6\n");
    is("5");
    put("etc/systemd/logind.conf.d", "60-b.conf", "[Login]\n");
    is("3"); /* one of the same name in /etc is in its place, also when it says nothing */
}

static void what_is_no_such_file_says_nothing(void **state)
{
    (void)state;
    put("etc/systemd", "logind.conf", "KillUserProcesses\n=\n[Login\n\x01\x02");
    is(NULL);
}

static void words_for_yes(void **state)
{
    (void)state;
    assert_true(doctor_systemd_yes("yes"));
    assert_true(doctor_systemd_yes("True"));
    assert_true(doctor_systemd_yes("1"));
    assert_false(doctor_systemd_yes("no"));
    assert_false(doctor_systemd_yes(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_last_word, test_files_clear),
        cmocka_unit_test_teardown(what_is_no_such_file_says_nothing, test_files_clear),
        cmocka_unit_test(words_for_yes),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
