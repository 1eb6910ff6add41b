/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include "cli/credential_options.h"

#include <errno.h>

static const struct command command = {.name = "test"};

static void every_option_goes_to_its_member(void **state)
{
    struct credential_source old_key = {0}, new_key = {0};

    (void)state;
    assert_int_equal(
        cmd_credential_option(&command, CMD_OPT_PASSPHRASE_FILE, "a", &old_key, &new_key), 1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_KEYFILE, "b", &old_key, &new_key), 1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_KEYFILE, "c", &old_key, &new_key), 1);
    assert_int_equal(
        cmd_credential_option(&command, CMD_OPT_NEW_PASSPHRASE_COMMAND, "d", &old_key, &new_key),
        1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_NEW_KEYFILE, "e", &old_key, &new_key),
                     1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_OWN, NULL, &old_key, &new_key), 0);
    assert_string_equal(old_key.passphrase_file, "a");
    assert_int_equal(old_key.n_keyfiles, 2);
    assert_string_equal(old_key.keyfiles[0], "b");
    assert_string_equal(old_key.keyfiles[1], "c");
    assert_string_equal(new_key.passphrase_command, "d");
    assert_int_equal(new_key.n_keyfiles, 1);
    assert_string_equal(new_key.keyfiles[0], "e");
}

static void contradictions_and_empty_values_are_refused(void **state)
{
    struct credential_source src = {0};

    (void)state;
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_PASSPHRASE_FILE, "", &src, NULL),
                     -EINVAL);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_KEYFILE, "", &src, NULL), -EINVAL);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_PASSPHRASE_FILE, "a", &src, NULL), 1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_PASSPHRASE_COMMAND, "b", &src, NULL),
                     -EINVAL);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_ASK_PASSPHRASE, NULL, &src, NULL),
                     -EINVAL);
    src = (struct credential_source){0};
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_ASK_PASSPHRASE, NULL, &src, NULL), 1);
    assert_true(src.ask);
    for (unsigned i = 0; i < CREDENTIAL_KEYFILES; i++)
        assert_int_equal(cmd_credential_option(&command, CMD_OPT_KEYFILE, "k", &src, NULL), 1);
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_KEYFILE, "k", &src, NULL), -EINVAL);
}

static void standard_input_is_one_key_file_behind_the_passphrases(void **state)
{
    static const struct {
        int opts[4];
        int want; /* of the last */
    } cases[] = {
        {{CMD_OPT_PASSPHRASE_FILE, CMD_OPT_KEYFILE}, 1},
        {{CMD_OPT_KEYFILE, CMD_OPT_PASSPHRASE_FILE}, 1},
        {{CMD_OPT_PASSPHRASE_FILE, CMD_OPT_NEW_KEYFILE, CMD_OPT_NEW_PASSPHRASE_FILE}, 1},
        {{CMD_OPT_KEYFILE, CMD_OPT_KEYFILE}, -EINVAL},
        {{CMD_OPT_NEW_KEYFILE, CMD_OPT_NEW_KEYFILE}, -EINVAL},
        {{CMD_OPT_KEYFILE, CMD_OPT_NEW_KEYFILE}, -EINVAL},
        {{CMD_OPT_NEW_PASSPHRASE_FILE, CMD_OPT_KEYFILE}, -EINVAL},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct credential_source old_key = {0}, new_key = {0};
        int r = 0;

        for (unsigned n = 0; n < 4 && cases[i].opts[n] != 0; n++)
            r = cmd_credential_option(&command, cases[i].opts[n], "-", &old_key, &new_key);
        assert_int_equal(r, cases[i].want);
    }
}

static void the_time_to_wait_for_key_files_is_in_seconds(void **state)
{
    static const char *const wrong[] = {"", "-1", "5s", "86401", "99999999999999999999"};
    struct credential_source old_key = {0}, new_key = {0};

    (void)state;
    assert_int_equal(
        cmd_credential_option(&command, CMD_OPT_KEYFILE_TIMEOUT, "30", &old_key, &new_key), 1);
    assert_int_equal(old_key.keyfile_timeout, 30);
    assert_int_equal(new_key.keyfile_timeout, 30);
    for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(
            cmd_credential_option(&command, CMD_OPT_KEYFILE_TIMEOUT, wrong[i], &old_key, NULL),
            -EINVAL);
}

static void kdf_costs_are_sizes_and_positive_numbers(void **state)
{
    struct kdf_request kdf = {0};

    (void)state;
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_MEMORY, "64M", &kdf), 1);
    assert_int_equal(kdf.memory, 64 << 20);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "3", &kdf), 1);
    assert_int_equal(kdf.iterations, 3);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_TIME, "500", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_MEMORY, "much", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_MEMORY, "0", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "-3", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "00", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "4294967296", &kdf), -EINVAL);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_OWN, NULL, &kdf), 0);
}

static void no_passes_at_all_are_an_answer_of_their_own(void **state)
{
    struct kdf_request kdf = {0};

    (void)state;
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_ITERATIONS, "0", &kdf), 1);
    assert_int_equal(kdf.iterations, KDF_NO_PASSES);
    assert_int_equal(cmd_kdf_option(&command, CMD_OPT_KDF_TIME, "500", &kdf), -EINVAL);
}

static void passphrase_files_are_kept_in_their_order(void **state)
{
    struct credential_source src = {0};

    (void)state;
    for (unsigned i = 0; i < CREDENTIAL_PASSPHRASE_FILES; i++)
        assert_int_equal(cmd_credential_option(&command, CMD_OPT_PASSPHRASE_FILE,
                                               i == 0 ? "a" : "b", &src, NULL),
                         1);
    assert_string_equal(src.passphrase_file, "a");
    assert_int_equal(src.n_more_passphrase_files, CREDENTIAL_PASSPHRASE_FILES - 1);
    assert_string_equal(src.more_passphrase_files[0], "b");
    assert_int_equal(cmd_credential_option(&command, CMD_OPT_PASSPHRASE_FILE, "c", &src, NULL),
                     -EINVAL);
}

static void a_header_is_in_one_file(void **state)
{
    const char *header = NULL;

    (void)state;
    assert_int_equal(cmd_header_option(&command, CMD_OPT_KEYFILE, "k", &header), 0);
    assert_int_equal(cmd_header_option(&command, CMD_OPT_HEADER, "", &header), -EINVAL);
    assert_null(header);
    assert_int_equal(cmd_header_option(&command, CMD_OPT_HEADER, "h", &header), 1);
    assert_string_equal(header, "h");
    assert_int_equal(cmd_header_option(&command, CMD_OPT_HEADER, "h", &header), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_goes_to_its_member),
        cmocka_unit_test(contradictions_and_empty_values_are_refused),
        cmocka_unit_test(standard_input_is_one_key_file_behind_the_passphrases),
        cmocka_unit_test(the_time_to_wait_for_key_files_is_in_seconds),
        cmocka_unit_test(kdf_costs_are_sizes_and_positive_numbers),
        cmocka_unit_test(no_passes_at_all_are_an_answer_of_their_own),
        cmocka_unit_test(passphrase_files_are_kept_in_their_order),
        cmocka_unit_test(a_header_is_in_one_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
