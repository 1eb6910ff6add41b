/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/size.h"
#include "lib/test.h"

#include <errno.h>

static void sizes_are_read_as_people_write_them(void **state)
{
    static const struct {
        const char *text;
        uint64_t size;
    } good[] = {
        {"0", 0},
        {"512", 512},
        {"512b", 512},
        {"512B", 512},
        {"1k", 1024},
        {"10G", UINT64_C(10) << 30},
        {"10g", UINT64_C(10) << 30},
        {"3MiB", 3 << 20},
        {"3mib", 3 << 20},
        {"3MB", 3 << 20},
        {"2T", UINT64_C(2) << 40},
        {"8191P", UINT64_C(8191) << 50},
        {"9223372036854775807", INT64_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        uint64_t size = 77;

        assert_int_equal(size_parse(&size, good[i].text), 0);
        assert_int_equal(size, good[i].size);
    }
}

static void anything_else_is_no_size(void **state)
{
    static const char *const bad[] = {"",    "G",    "-1",  "+1", " 1",   "1 ",   "1 G",   "1.5G",
                                      "1GG", "1GiX", "1Gi", "1X", "0x10", "1bib", "1KiB ", "ten"};
    uint64_t size = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(size_parse(&size, bad[i]), -EINVAL);
    assert_int_equal(size, 77);
}

static void what_no_file_can_have_is_out_of_range(void **state)
{
    static const char *const bad[] = {"9223372036854775808",     "18446744073709551616",
                                      "99999999999999999999999", "8192P",
                                      "9007199254740992K",       "9223372036854775807K"};
    uint64_t size = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(size_parse(&size, bad[i]), -ERANGE);
    assert_int_equal(size, 77);
}

static void sizes_are_written_short(void **state)
{
    static const struct {
        uint64_t size;
        const char *text;
    } all[] = {
        {0, "0 B"},
        {1, "1 B"},
        {1023, "1023 B"},
        {1024, "1 KiB"},
        {1536, "1.5 KiB"},
        {(1 << 20) - 1, "1.0 MiB"},
        {1 << 20, "1 MiB"},
        {(1 << 20) + 1, "1.0 MiB"},
        {UINT64_C(1023) << 10, "1023 KiB"},
        {(UINT64_C(1023) << 10) + 512, "1023.5 KiB"},
        {UINT64_C(10) << 30, "10 GiB"},
        {(UINT64_C(1) << 40) - 1, "1.0 TiB"},
        {UINT64_C(3) << 50, "3 PiB"},
        {UINT64_MAX, "16384.0 PiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        char out[SIZE_TEXT];

        assert_string_equal(size_format(out, all[i].size), all[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(anything_else_is_no_size),
        cmocka_unit_test(what_no_file_can_have_is_out_of_range),
        cmocka_unit_test(sizes_are_written_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
