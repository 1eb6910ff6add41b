/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves base/hkdf.c by the test cases 1 and 3 of RFC 5869, appendix A. */

#include "lib/test.h"

#include "base/hkdf.h"

#include <string.h>

static void fill(unsigned char *p, unsigned first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(first + i);
}

static void rfc_5869_case_1(void **state)
{
    static const unsigned char want_prk[32] = {0x07, 0x77, 0x09, 0x36, 0x2c, 0x2e, 0x32, 0xdf,
                                               0x0d, 0xdc, 0x3f, 0x0d, 0xc4, 0x7b, 0xba, 0x63,
                                               0x90, 0xb6, 0xc7, 0x3b, 0xb5, 0x0f, 0x9c, 0x31,
                                               0x22, 0xec, 0x84, 0x4a, 0xd7, 0xc2, 0xb3, 0xe5};
    static const unsigned char want_okm[42] = {
        0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a, 0x90, 0x43, 0x4f, 0x64, 0xd0, 0x36,
        0x2f, 0x2a, 0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a, 0x5a, 0x4c, 0x5d, 0xb0, 0x2d, 0x56,
        0xec, 0xc4, 0xc5, 0xbf, 0x34, 0x00, 0x72, 0x08, 0xd5, 0xb8, 0x87, 0x18, 0x58, 0x65};
    unsigned char ikm[22], salt[13], info[10], prk[32], okm[42];

    (void)state;
    memset(ikm, 0x0b, sizeof(ikm));
    fill(salt, 0x00, sizeof(salt));
    fill(info, 0xf0, sizeof(info));
    assert_int_equal(hkdf_extract(prk, salt, sizeof(salt), ikm, sizeof(ikm)), 0);
    assert_memory_equal(prk, want_prk, sizeof(prk));
    assert_int_equal(hkdf_expand(okm, sizeof(okm), prk, info, sizeof(info)), 0);
    assert_memory_equal(okm, want_okm, sizeof(okm));
}

static void rfc_5869_case_3_without_salt_and_info(void **state)
{
    static const unsigned char want_okm[42] = {
        0x8d, 0xa4, 0xe7, 0x75, 0xa5, 0x63, 0xc1, 0x8f, 0x71, 0x5f, 0x80, 0x2a, 0x06, 0x3c,
        0x5a, 0x31, 0xb8, 0xa1, 0x1f, 0x5c, 0x5e, 0xe1, 0x87, 0x9e, 0xc3, 0x45, 0x4e, 0x5f,
        0x3c, 0x73, 0x8d, 0x2d, 0x9d, 0x20, 0x13, 0x95, 0xfa, 0xa4, 0xb6, 0x1a, 0x96, 0xc8};
    unsigned char ikm[22], prk[32], okm[42];

    (void)state;
    memset(ikm, 0x0b, sizeof(ikm));
    assert_int_equal(hkdf_extract(prk, "", 0, ikm, sizeof(ikm)), 0);
    assert_int_equal(hkdf_expand(okm, sizeof(okm), prk, "", 0), 0);
    assert_memory_equal(okm, want_okm, sizeof(okm));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rfc_5869_case_1),
        cmocka_unit_test(rfc_5869_case_3_without_salt_and_info),
    };

    return cmocka_run_group_tests_name("hkdf", tests, NULL, NULL);
}
