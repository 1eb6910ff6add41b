/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/bytes.h"
#include "lib/test.h"

static void fields_are_little_endian_at_any_address(void **state)
{
    unsigned char field[16];

    (void)state;
    memset(field, 0xaa, sizeof(field));
    bytes_put_le16(field + 1, 0x0102);
    bytes_put_le32(field + 3, 0x03040506);
    bytes_put_le64(field + 7, UINT64_C(0x0708090a0b0c0d0e));
    assert_memory_equal(field, "\xaa\x02\x01\x06\x05\x04\x03\x0e\x0d\x0c\x0b\x0a\x09\x08\x07\xaa",
                        16);
    assert_int_equal(bytes_get_le16(field + 1), 0x0102);
    assert_int_equal(bytes_get_le32(field + 3), 0x03040506);
    assert_int_equal(bytes_get_le64(field + 7), UINT64_C(0x0708090a0b0c0d0e));
}

static void zeros_are_told_from_anything_else(void **state)
{
    unsigned char bytes[300] = {0};

    (void)state;
    assert_true(bytes_are_zero(bytes, 0));
    assert_true(bytes_are_zero(bytes, 1));
    assert_true(bytes_are_zero(bytes, sizeof(bytes)));
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = 1;
        assert_false(bytes_are_zero(bytes, sizeof(bytes)));
        assert_true(bytes_are_zero(bytes, i));
        assert_true(bytes_are_zero(bytes + i + 1, sizeof(bytes) - i - 1));
        bytes[i] = 0;
    }
}

static void rounding_keeps_what_is_round(void **state)
{
    (void)state;
    assert_int_equal(bytes_round_down(4095, 4096), 0);
    assert_int_equal(bytes_round_down(4096, 4096), 4096);
    assert_int_equal(bytes_round_down(8191, 4096), 4096);
    assert_int_equal(bytes_round_up(0, 4096), 0);
    assert_int_equal(bytes_round_up(1, 4096), 4096);
    assert_int_equal(bytes_round_up(4096, 4096), 4096);
    assert_int_equal(bytes_round_up(77, 1), 77);
    assert_int_equal(bytes_round_down(UINT64_MAX, 512), UINT64_MAX - 511);
    assert_int_equal(bytes_round_up(UINT64_C(0x100000001), 512), UINT64_C(0x100000200));
}

static void powers_of_two_are_known(void **state)
{
    (void)state;
    for (int i = 0; i < 64; i++)
        assert_true(bytes_is_power_of_two(UINT64_C(1) << i));
    assert_false(bytes_is_power_of_two(0));
    assert_false(bytes_is_power_of_two(3));
    assert_false(bytes_is_power_of_two(UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_are_little_endian_at_any_address),
        cmocka_unit_test(zeros_are_told_from_anything_else),
        cmocka_unit_test(rounding_keeps_what_is_round),
        cmocka_unit_test(powers_of_two_are_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
