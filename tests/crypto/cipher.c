/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the rows of crypto/cipher.c: XTS by vectors 10 and 4 of IEEE 1619-2007, annex B; CBC by
 * the first block, with a zero IV, of NIST SP 800-38A F.1 (AES), RFC 3713 (Camellia), SP 800-67
 * (triple DES) and the set of variable keys in Eric Young's Blowfish vectors. */

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
    EVP_CIPHER *evp = cipher_fetch(c);
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

static void cbc_ciphers_give_published_blocks(void **state)
{
#define AES_PLAIN "6bc1bee22e409f96e93d7e117393172a"
#define CAMELLIA_KEY "0123456789abcdeffedcba9876543210"
#define BLOWFISH_KEY "f0e1d2c3b4a5968778695a4b3c2d1e0f"
    static const struct {
        const char *name, *key, *plain, *want;
    } v[] = {
        {"aes-128-cbc", "2b7e151628aed2a6abf7158809cf4f3c", AES_PLAIN,
         "3ad77bb40d7a3660a89ecaf32466ef97"},
        {"aes-192-cbc", "8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", AES_PLAIN,
         "bd334f1d6e45f25ff712a214571fa5cc"},
        {"aes-256-cbc", "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4",
         AES_PLAIN, "f3eed1bdb5d2a03c064b5a7e3db181f8"},
        {"camellia-128-cbc", CAMELLIA_KEY, CAMELLIA_KEY, "67673138549669730857065648eabe43"},
        {"camellia-192-cbc", CAMELLIA_KEY "0011223344556677", CAMELLIA_KEY,
         "b4993401b3e996f84ee5cee7d79b09b9"},
        {"camellia-256-cbc", CAMELLIA_KEY "00112233445566778899aabbccddeeff", CAMELLIA_KEY,
         "9acc237dff16d76c20ef7c919e3a7509"},
        {"3des-192-cbc", "0123456789abcdef23456789abcdef01456789abcdef0123", "5468652071756663",
         "a826fd8ce53b855f"},
        {"blowfish-128-cbc", BLOWFISH_KEY, "fedcba9876543210", "93142887ee3be15c"},
        {"blowfish-192-cbc", BLOWFISH_KEY "0011223344556677", "fedcba9876543210",
         "05044b62fa52d080"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
        const struct cipher *c = cipher_named(v[i].name);
        EVP_CIPHER *evp = cipher_fetch(c);
        unsigned char key[64], plain[16], want[16], got[16], iv[16] = {0};
        size_t len = strlen(v[i].plain) / 2;
        EVP_CIPHER_CTX *ctx[2];

        from_hex(key, v[i].key);
        from_hex(plain, v[i].plain);
        from_hex(want, v[i].want);
        assert_non_null(evp);
        assert_int_equal(strlen(v[i].key) / 2, c->key_len);
        for (unsigned dir = 0; dir < 2; dir++) {
            int n;

            ctx[dir] = cipher_context(c, evp, dir);
            assert_non_null(ctx[dir]);
            assert_int_equal(EVP_CipherInit_ex2(ctx[dir], NULL, key, NULL, -1, NULL), 1);
            for (unsigned again = 0; again < 2; again++) { /* each unit begins anew */
                assert_int_equal(EVP_CipherInit_ex2(ctx[dir], NULL, NULL, iv, -1, NULL), 1);
                assert_int_equal(EVP_CipherUpdate(ctx[dir], got, &n, dir ? plain : want, (int)len),
                                 1);
                assert_int_equal(n, len);
                assert_memory_equal(got, dir ? want : plain, len);
            }
            EVP_CIPHER_CTX_free(ctx[dir]);
        }
        EVP_CIPHER_free(evp);
    }
}

static void every_row_can_be_had(void **state)
{
    (void)state;
    for (const struct cipher *c = ciphers; c->name != NULL; c++) {
        EVP_CIPHER *evp = c->evp != NULL ? cipher_fetch(c) : NULL;
        EVP_CIPHER_CTX *ctx = evp != NULL ? cipher_context(c, evp, true) : NULL;

        assert_true(c->evp == NULL || ctx != NULL);
        assert_true(ctx == NULL || EVP_CIPHER_CTX_get_key_length(ctx) == (int)c->key_len);
        assert_int_equal(c->mode == CIPHER_NULL, c->evp == NULL);
        assert_ptr_equal(cipher_named(c->name), c);
        EVP_CIPHER_CTX_free(ctx);
        EVP_CIPHER_free(evp);
    }
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
        cmocka_unit_test(cbc_ciphers_give_published_blocks),
        cmocka_unit_test(every_row_can_be_had),
        cmocka_unit_test(an_unknown_name_is_no_cipher),
    };

    return cmocka_run_group_tests_name("cipher", tests, NULL, NULL);
}
