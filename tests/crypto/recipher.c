/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves crypto/recipher.c: what one engine enciphered is what the other deciphers afterwards, in
 * requests that begin and end inside sectors, and zeros stay zeros. */

#include "crypto/recipher.h"

#include "base/auto.h"
#include "base/bytes.h"
#include "lib/test.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE = 1 << 18 };

static struct sector_engine *engine(uint32_t sector, unsigned char key)
{
    AUTO_SECRET struct secret prk = {0};
    struct chunk_rule rule = {.prk = &prk, .shift = 17, .head_len = 4, .tail_len = 32};
    const struct sector_engine_spec spec = {.cipher = cipher_named("aes-256-xts"),
                                            .sector_size = sector,
                                            .size = SIZE,
                                            .keys = &rule,
                                            .n_lanes = 1};
    struct sector_engine *e = NULL;

    assert_int_equal(secret_make(&prk, 32), 0);
    memset(prk.bytes, key, 32);
    assert_int_equal(sector_engine_open(&e, &spec, NULL), 0);
    return e;
}

/* Plaintext and its ciphertext under e; about a third of the pieces is zero in both. */
static void fill(struct sector_engine *e, unsigned char *plain, unsigned char *cipher,
                 uint64_t *seed)
{
    test_random_bytes(seed, plain, SIZE);
    assert_int_equal(sector_encrypt(e, cipher, plain, SIZE, 0), 0);
    for (unsigned at = 0; at < SIZE; at += SECTOR_PIECE)
        if (test_random(seed) % 3 == 0) {
            memset(plain + at, 0, SECTOR_PIECE);
            memset(cipher + at, 0, SECTOR_PIECE);
        }
}

static void the_other_key_reads_the_same_afterwards(void **state)
{
    static const uint32_t sectors[] = {512, 4096, 65536};
    AUTO_FREE unsigned char *plain = malloc(SIZE), *cipher = malloc(SIZE), *got = malloc(SIZE);
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        struct sector_engine *from = engine(sectors[i], 1), *to = engine(sectors[i], 2);
        uint64_t n;

        fill(from, plain, cipher, &seed);
        for (uint64_t off = 0; off < SIZE; off += n) {
            n = (test_random(&seed) % 100 + 1) * SECTOR_PIECE;
            n = n < SIZE - off ? n : SIZE - off;
            assert_int_equal(sector_recipher(from, to, cipher + off, n, off), 0);
        }
        for (unsigned at = 0; at < SIZE; at += SECTOR_PIECE)
            assert_int_equal(bytes_are_zero(cipher + at, SECTOR_PIECE),
                             bytes_are_zero(plain + at, SECTOR_PIECE));
        assert_int_equal(sector_decrypt_zeros(to, got, cipher, SIZE, 0), 0);
        assert_memory_equal(got, plain, SIZE);
        sector_engine_close(from);
        sector_engine_close(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_other_key_reads_the_same_afterwards),
    };

    return cmocka_run_group_tests_name("crypto/recipher", tests, test_start, NULL);
}
