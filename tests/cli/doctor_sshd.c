/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/doctor_sshd.c: the first value counts, and none of a Match block. */

#include "cli/doctor_sshd.h"
#include "lib/test.h"

static void is(const char *text, const char *want)
{
    char value[16];
    bool found = doctor_sshd_value(text, "UsePAM", value, sizeof(value));

    assert_int_equal(found, want != NULL);
    if (want != NULL)
        assert_string_equal(value, want);
}

static void the_first_value_counts(void **state)
{
    (void)state;
    is("Port 22\n\n#UsePAM no\n  usepam yes\nUsePAM no\n", "yes");
    is("UsePAM=no", "no");
    is("UsePAM\t\"yes\" # a word\n", "yes");
    is("UsePAMx yes\nUse PAM yes\nUsePAM", NULL);
    is("", NULL);
}

static void a_match_block_is_for_some_only(void **state)
{
    (void)state;
    is("Match User ada\n  UsePAM yes\n", NULL);
    is("UsePAM yes\nmatch all\nUsePAM no\n", "yes");
    is("MatchX y\nUsePAM yes\n", "yes");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_value_counts),
        cmocka_unit_test(a_match_block_is_for_some_only),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
