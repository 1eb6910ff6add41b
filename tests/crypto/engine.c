/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves crypto/engine.c and crypto/chunkkey.c: against python's primitives across a change of
 * keys, any part of a sector equals that part of the whole, threads do not disturb each other. */

#include "lib/test.h"

#include "base/secret.h"
#include "crypto/chunkkey.h"
#include "crypto/engine.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct secret prk;
static struct chunk_rule rule;

static int make_rule(void **state)
{
    (void)state;
    if (secret_start(NULL) < 0 || secret_make(&prk, 32) < 0)
        return -1;
    for (unsigned i = 0; i < 32; i++)
        prk.bytes[i] = (unsigned char)(3 * i + 1);
    rule = (struct chunk_rule){.prk = &prk, .shift = 32, .head_len = 5, .tail_len = 32};
    memcpy(rule.head, "label", 5);
    memset(rule.tail, 0xa5, sizeof(rule.tail));
    return 0;
}

static int drop_rule(void **state)
{
    (void)state;
    secret_done(&prk);
    return 0;
}

static struct sector_engine *open_engine(const char *cipher, uint32_t sector, unsigned n_lanes)
{
    struct sector_engine_spec spec = {
        .cipher = cipher_named(cipher), .sector_size = sector, .keys = &rule, .n_lanes = n_lanes};
    struct sector_engine *e = NULL;

    assert_int_equal(sector_engine_open(&e, &spec, NULL), 0);
    return e;
}

static void hex(char *out, const unsigned char *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        sprintf(out + 2 * i, "%02x", p[i]);
    out[2 * len] = '\0';
}

/* Run chunk_xts.py over len bytes. */
static void reference(unsigned char *out, const unsigned char *in, size_t len, uint64_t off,
                      uint32_t key_len, uint32_t sector)
{
    char command[1024], h_prk[65], h_head[65], h_tail[65], from[] = "/tmp/engine-XXXXXX";
    int fd = mkstemp(from);
    FILE *f;

    hex(h_prk, prk.bytes, 32);
    hex(h_head, rule.head, rule.head_len);
    hex(h_tail, rule.tail, rule.tail_len);
    assert_int_equal(write(fd, in, len), (ssize_t)len);
    close(fd);
    snprintf(command, sizeof(command),
             "/usr/bin/python3 tests/crypto/chunk_xts.py %s %s %s %u %u %u %llu <%s", h_prk, h_head,
             h_tail, rule.shift, key_len, sector, (unsigned long long)off, from);
    f = popen(command, "r");
    assert_non_null(f);
    assert_int_equal(fread(out, 1, len, f), len);
    assert_int_equal(pclose(f), 0);
    unlink(from);
}

static const uint32_t sectors[] = {512, 1024, 2048, 4096, 8192, 16384, 32768, 65536};
#define N_SECTORS (sizeof(sectors) / sizeof(sectors[0]))

static void ciphertext_is_what_python_computes_on_both_sides_of_a_chunk(void **state)
{
    enum { LEN = 4 * 65536 };
    const uint64_t off = (UINT64_C(5) << 32) - LEN / 2;
    unsigned char *in = malloc(LEN), *got = malloc(LEN), *want = malloc(LEN);
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, in, LEN);
    for (unsigned i = 0; i < N_SECTORS; i++)
        for (unsigned c = 0; c < 2; c++) {
            const char *cipher = c ? "aes-128-xts" : "aes-256-xts";
            struct sector_engine *e = open_engine(cipher, sectors[i], 1);

            assert_int_equal(sector_encrypt(e, got, in, LEN, off), 0);
            reference(want, in, LEN, off, c ? 32 : 64, sectors[i]);
            assert_memory_equal(got, want, LEN);
            assert_int_equal(sector_decrypt(e, got, got, LEN, off), 0);
            assert_memory_equal(got, in, LEN);
            sector_engine_close(e);
        }
    free(in);
    free(got);
    free(want);
}

static void any_pieces_equal_that_part_of_the_whole(void **state)
{
    enum { LEN = 2 * 65536 };
    unsigned char *in = malloc(LEN), *whole = malloc(LEN), *part = malloc(LEN);
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, in, LEN);
    for (unsigned i = 0; i < N_SECTORS; i++) {
        struct sector_engine *e = open_engine("aes-256-xts", sectors[i], 2);

        assert_int_equal(sector_encrypt(e, whole, in, LEN, 0), 0);
        for (unsigned n = 0; n < 100; n++) {
            size_t off = test_random(&seed) % (LEN / 512) * 512;
            size_t len = (1 + test_random(&seed) % ((LEN - off) / 512)) * 512;

            assert_int_equal(sector_encrypt(e, part, in + off, len, off), 0);
            assert_memory_equal(part, whole + off, len);
            assert_int_equal(sector_decrypt(e, part, part, len, off), 0);
            assert_memory_equal(part, in + off, len);
        }
        sector_engine_close(e);
    }
    free(in);
    free(whole);
    free(part);
}

static void zero_pieces_of_ciphertext_read_as_zeros_and_no_others(void **state)
{
    enum { LEN = 65536 };
    static const unsigned char zeros[512];
    unsigned char *in = malloc(LEN), *cipher = malloc(LEN), *got = malloc(LEN);
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, in, LEN);
    for (unsigned i = 0; i < N_SECTORS; i++) {
        struct sector_engine *e = open_engine("aes-256-xts", sectors[i], 1);
        uint64_t holes[2] = {test_random(&seed), test_random(&seed)};

        assert_int_equal(sector_encrypt(e, cipher, in, LEN, 0), 0);
        for (unsigned n = 0; n < LEN / 512; n++)
            if (holes[n / 64] >> (n % 64) & 1)
                memset(cipher + n * 512, 0, 512);
        cipher[0] = 0; /* a piece that only begins with zeros is data */
        for (unsigned in_place = 0; in_place < 2; in_place++) {
            memcpy(got, cipher, LEN);
            assert_int_equal(sector_decrypt_zeros(e, got, in_place ? got : cipher, LEN, 0), 0);
            for (unsigned n = 1; n < LEN / 512; n++)
                assert_memory_equal(got + n * 512,
                                    holes[n / 64] >> (n % 64) & 1 ? zeros : in + n * 512, 512);
        }
        sector_engine_close(e);
    }
    free(in);
    free(cipher);
    free(got);
}

static void the_null_cipher_changes_nothing(void **state)
{
    struct sector_engine *e = open_engine("null", 4096, 1);
    unsigned char in[1024], out[1024];

    (void)state;
    memset(in, 0x5a, sizeof(in));
    assert_int_equal(sector_encrypt(e, out, in, sizeof(in), 512), 0);
    assert_memory_equal(in, out, sizeof(in));
    sector_engine_close(e);
}

static void equal_halves_of_an_xts_key_are_refused(void **state)
{
    /* No rule of ours derives such a key in the life of the universe, so the cipher is bent: with
     * the halves' length 0, every key has equal ones. */
    struct cipher bent = *cipher_named("aes-256-xts");
    struct sector_engine_spec spec = {
        .cipher = &bent, .sector_size = 512, .keys = &rule, .n_lanes = 1};
    struct sector_engine *e = NULL;
    unsigned char buf[512] = {0};

    (void)state;
    bent.key_len = 1;
    assert_int_equal(sector_engine_open(&e, &spec, NULL), 0);
    assert_int_equal(sector_encrypt(e, buf, buf, sizeof(buf), 0), -EKEYREJECTED);
    sector_engine_close(e);
}

static void sector_sizes_that_are_none_are_refused(void **state)
{
    static const uint32_t bad[] = {0, 1, 256, 513, 4095, 262144, UINT32_MAX};

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct sector_engine_spec spec = {.cipher = cipher_named("aes-256-xts"),
                                          .sector_size = bad[i],
                                          .keys = &rule,
                                          .n_lanes = 1};
        struct sector_engine *e = NULL;
        struct test_report rep;

        test_report_init(&rep);
        assert_int_equal(sector_engine_open(&e, &spec, &rep.rep), -EINVAL);
        assert_true(test_report_has(&rep, "does not take sectors of"));
        assert_null(e);
    }
}

struct hammer {
    struct sector_engine *e;
    const unsigned char *in, *want;
    uint64_t seed;
    atomic_int wrong;
};

enum { HAMMER_LEN = 65536, HAMMER_CHUNKS = 100 };

/* Many chunks, so that contexts and keys are replaced all the time. */
static void *hammer(void *arg)
{
    struct hammer *h = arg;
    unsigned char *out = malloc(HAMMER_LEN);

    for (unsigned n = 0; n < 300; n++) {
        uint64_t chunk = test_random(&h->seed) % HAMMER_CHUNKS;
        uint64_t off = chunk << 32;

        if (sector_encrypt(h->e, out, h->in, 4096, off) != 0 ||
            memcmp(out, h->want + chunk * 4096, 4096) != 0 ||
            sector_decrypt(h->e, out, out, 4096, off) != 0 || memcmp(out, h->in, 4096) != 0)
            atomic_store(&h->wrong, 1);
    }
    free(out);
    return NULL;
}

static void threads_share_lanes_without_mixing_keys(void **state)
{
    struct sector_engine *e = open_engine("aes-256-xts", 4096, 2);
    unsigned char *in = calloc(1, 4096), *want = malloc((size_t)HAMMER_CHUNKS * 4096);
    struct hammer h[8];
    pthread_t threads[8];
    struct sector_stats stats;

    (void)state;
    for (unsigned c = 0; c < HAMMER_CHUNKS; c++)
        assert_int_equal(sector_encrypt(e, want + c * 4096, in, 4096, (uint64_t)c << 32), 0);
    assert_memory_not_equal(want, want + 4096, 4096);
    for (unsigned i = 0; i < 8; i++) {
        h[i] = (struct hammer){.e = e, .in = in, .want = want, .seed = i};
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &h[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(atomic_load(&h[i].wrong), 0);
    }
    sector_engine_stats(e, &stats);
    assert_int_equal(stats.bytes_deciphered, 8 * 300 * 4096);
    assert_true(stats.cipher_ns > 0);
    sector_engine_close(e);
    free(in);
    free(want);
}

static void forgotten_keys_come_back_only_with_the_prk(void **state)
{
    struct sector_engine *e = open_engine("aes-256-xts", 4096, 2);
    AUTO_SECRET struct secret other = {0};
    unsigned char plain[8192], first[8192], out[8192];

    (void)state;
    memset(plain, 0x77, sizeof(plain));
    assert_int_equal(sector_encrypt(e, first, plain, sizeof(plain), 4096), 0);
    sector_engine_forget(e);
    assert_int_equal(sector_encrypt(e, out, plain, sizeof(plain), 4096), -EIO);
    assert_int_equal(sector_decrypt(e, out, first, sizeof(first), 4096), -EIO);
    assert_int_equal(secret_copy(&other, prk.bytes, prk.len), 0);
    other.bytes[0] ^= 1;
    assert_int_equal(
        sector_engine_rekey(e, &(struct sector_secrets){.prk = &other}, UINT64_C(1) << 40), 0);
    assert_int_equal(sector_encrypt(e, out, plain, sizeof(plain), 4096), 0);
    assert_memory_not_equal(out, first, sizeof(first));
    sector_engine_forget(e);
    sector_engine_forget(e);
    assert_int_equal(
        sector_engine_rekey(e, &(struct sector_secrets){.prk = &prk}, UINT64_C(1) << 40), 0);
    assert_int_equal(sector_encrypt(e, out, plain, sizeof(plain), 4096), 0);
    assert_memory_equal(out, first, sizeof(first));
    assert_int_equal(sector_decrypt(e, out, first, sizeof(first), 4096), 0);
    assert_memory_equal(out, plain, sizeof(plain));
    sector_engine_close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ciphertext_is_what_python_computes_on_both_sides_of_a_chunk),
        cmocka_unit_test(any_pieces_equal_that_part_of_the_whole),
        cmocka_unit_test(zero_pieces_of_ciphertext_read_as_zeros_and_no_others),
        cmocka_unit_test(the_null_cipher_changes_nothing),
        cmocka_unit_test(equal_halves_of_an_xts_key_are_refused),
        cmocka_unit_test(sector_sizes_that_are_none_are_refused),
        cmocka_unit_test(threads_share_lanes_without_mixing_keys),
        cmocka_unit_test(forgotten_keys_come_back_only_with_the_prk),
    };

    return cmocka_run_group_tests_name("engine", tests, make_rule, drop_rule);
}
