/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the rows of crypto/cipher.c by vectors 10 and 4 of IEEE 1619-2007, annex B. */

#include "lib/test.h"

#include "crypto/cipher.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

static const char vector_10[] = "1c3b3a102f770386e4836c99e370cf9bea00803f5e482357a4ae12d414a3e63b5d"
                                "31e276f8fe4a8d66b317f9ac683f44"
                                "680a86ac35adfc3345befecb4bb188fd5776926c49a3095eb108fd1098baec70aa"
                                "a66999a72a82f27d848b21d4a741b0"
                                "c5cd4d5fff9dac89aeba122961d03a757123e9870f8acf1000020887891429ca2a"
                                "3e7a7d7df7b10355165c8b9a6d0a7d"
                                "e8b062c4500dc4cd120c0f7418dae3d0b5781c34803fa75421c790dfe1de1834f2"
                                "80d7667b327f6c8cd7557e12ac3a0f"
                                "93ec05c52e0493ef31a12d3d9260f79a289d6a379bc70c50841473d1a8cc81ec58"
                                "3e9645e07b8d9670655ba5bbcfecc6"
                                "dc3966380ad8fecb17b6ba02469a020a84e18e8f84252070c13e9f1f289be54fbc"
                                "481457778f616015e1327a02b140f1"
                                "505eb309326d68378f8374595c849d84f4c333ec4423885143cb47bd71c5edae9b"
                                "e69a2ffeceb1bec9de244fbe15992b"
                                "11b77c040f12bd8f6a975a44a0f90c29a9abc3d4d893927284c58754cce294529f"
                                "8614dcd2aba991925fedc4ae74ffac"
                                "6e333b93eb4aff0479da9a410e4450e0dd7ae4c6e2910900575da401fc07059f64"
                                "5e8b7e9bfdef33943054ff84011493"
                                "c27b3429eaedb4ed5376441a77ed43851ad77f16f541dfd269d50d6a5f14fb0aab"
                                "1cbb4c1550be97f7ab4066193c4caa"
                                "773dad38014bd2092fa755c824bb5e54c4f36ffda9fcea70b9c6e693e148c151";

/* XTS-AES-128, the first 64 bytes of vector 4. */
static const char vector_4[] = "27a7479befa1d476489f308cd4cfa6e2a96e4bbe3208ff25287dd3819616e89c"
                               "c78cf7f5e543445f8333d8fa7f56000005279fa5d8b5e4ad40e736ddb4d35412";

static void from_hex(unsigned char *out, const char *hex)
{
    for (; *hex != '\0'; hex += 2)
        sscanf(hex, "%2hhx", out++);
}

static void check(const char *name, const char *key1, const char *key2, unsigned char unit,
                  const char *want_hex)
{
    const struct cipher *c = cipher_named(name);
    EVP_CIPHER *evp = EVP_CIPHER_fetch(NULL, c->evp, NULL);
    EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
    unsigned char key[64], iv[16] = {unit}, plain[512], got[512], want[512];
    int n;

    from_hex(key, key1);
    from_hex(key + c->key_len / 2, key2);
    from_hex(want, want_hex);
    for (unsigned i = 0; i < sizeof(plain); i++)
        plain[i] = (unsigned char)i;
    assert_non_null(evp);
    assert_int_equal(EVP_CIPHER_get_key_length(evp), c->key_len);
    assert_int_equal(EVP_EncryptInit_ex2(ctx, evp, key, iv, NULL), 1);
    assert_int_equal(EVP_EncryptUpdate(ctx, got, &n, plain, sizeof(plain)), 1);
    assert_memory_equal(got, want, strlen(want_hex) / 2);
    EVP_CIPHER_CTX_free(ctx);
    EVP_CIPHER_free(evp);
}

static void aes_256_xts_gives_ieee_1619_vector_10(void **state)
{
    (void)state;
    check("aes-256-xts", "2718281828459045235360287471352662497757247093699959574966967627",
          "3141592653589793238462643383279502884197169399375105820974944592", 0xff, vector_10);
}

static void aes_128_xts_gives_ieee_1619_vector_4(void **state)
{
    (void)state;
    check("aes-128-xts", "27182818284590452353602874713526", "31415926535897932384626433832795", 0,
          vector_4);
}

static void an_unknown_name_is_no_cipher(void **state)
{
    (void)state;
    assert_null(cipher_named("aes-256-cbc-essiv"));
    assert_null(cipher_named(""));
    assert_string_equal(cipher_named("null")->name, "null");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aes_256_xts_gives_ieee_1619_vector_10),
        cmocka_unit_test(aes_128_xts_gives_ieee_1619_vector_4),
        cmocka_unit_test(an_unknown_name_is_no_cipher),
    };

    return cmocka_run_group_tests_name("cipher", tests, NULL, NULL);
}
