/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/align.c: random operations of any offset and length against an array at every
 * granule, from eight threads whose ranges meet inside granules. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "block/fault.h"
#include "block/memory.h"
#include "volume/align.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 4 * 1024 * 1024 };

static const uint32_t granules[] = {1, 512, 1024, 4096, 16384, 65536, 131072};
#define N_GRANULES (sizeof(granules) / sizeof(granules[0]))

static struct blk *open_at(uint32_t granule)
{
    struct blk *mem = NULL, *b = NULL;

    assert_int_equal(blk_memory_open(&mem, SIZE, granule), 0);
    assert_int_equal(vol_align_open(&b, mem, 16, NULL), 0);
    return b;
}

static void any_bytes_equal_an_array(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < N_GRANULES; i++) {
        struct blk *b = open_at(granules[i]);
        struct crowd_spec m = {.blk = b,
                               .seed = seed + i,
                               .n_threads = 8,
                               .n_ops = 150,
                               .max_len = 200001,
                               .granule = 1,
                               .zeros = 1};

        crowd_run(&m);
        blk_close(b);
    }
}

/* Every byte of the disk counts up by its own thread; all share every granule. */
struct neighbour {
    struct blk *b;
    uint64_t at;
    atomic_int *wrong;
};

static void *neighbour(void *arg)
{
    struct neighbour *n = arg;

    for (unsigned i = 1; i < 500; i++) {
        unsigned char v = (unsigned char)i, got;

        if (blk_write(n->b, &v, 1, n->at) != 0 || blk_read(n->b, &got, 1, n->at) != 0 || got != v)
            atomic_store(n->wrong, 1);
    }
    return NULL;
}

static void neighbours_in_one_granule_keep_both_writes(void **state)
{
    struct blk *b = open_at(4096);
    struct neighbour n[8];
    pthread_t threads[8];
    atomic_int wrong = 0;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        n[i] = (struct neighbour){b, 4090 + i * 2, &wrong}; /* on both sides of an edge */
        assert_int_equal(pthread_create(&threads[i], NULL, neighbour, &n[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    blk_close(b);
}

/* Eight threads fill one and the same range with one value each; nobody may ever see two values. */
struct filler {
    struct blk *b;
    unsigned char value;
    atomic_int *wrong;
};

static void *filler(void *arg)
{
    struct filler *f = arg;
    unsigned char buf[9000], got[9000];

    memset(buf, f->value, sizeof(buf));
    for (unsigned i = 0; i < 200; i++) {
        if (blk_write(f->b, buf, sizeof(buf), 1234) != 0 ||
            blk_read(f->b, got, sizeof(got), 1234) != 0 ||
            memcmp(got, got + 1, sizeof(got) - 1) != 0)
            atomic_store(f->wrong, 1);
    }
    return NULL;
}

static void overlapping_writes_are_one_after_the_other(void **state)
{
    struct blk *b = open_at(512);
    struct filler f[8];
    pthread_t threads[8];
    atomic_int wrong = 0;

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        f[i] = (struct filler){b, (unsigned char)(i + 1), &wrong};
        assert_int_equal(pthread_create(&threads[i], NULL, filler, &f[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    blk_close(b);
}

static void an_edge_that_cannot_be_read_is_not_overwritten(void **state)
{
    struct blk *mem = NULL, *fault = NULL, *b = NULL;
    struct blk_fault rule = {.ops = BLK_FAULT_READ, .off = 4096, .len = 4096, .err = EIO};
    unsigned char x = 'x';

    (void)state;
    assert_int_equal(blk_memory_open(&mem, SIZE, 4096), 0);
    memset(blk_memory_bytes(mem), 'o', SIZE);
    assert_int_equal(blk_fault_open(&fault, mem), 0);
    assert_int_equal(vol_align_open(&b, fault, 4, NULL), 0);
    blk_fault_add(fault, &rule);
    assert_int_equal(blk_write(b, &x, 1, 5000), -EIO);
    assert_int_equal(blk_memory_bytes(mem)[5000], 'o');
    assert_int_equal(blk_write(b, &x, 1, 100), 0);
    blk_close(b);
}

static void beyond_the_end_is_refused(void **state)
{
    struct blk *b = open_at(4096);
    unsigned char buf[2] = {0};

    (void)state;
    assert_int_equal(blk_write(b, buf, 2, SIZE - 1), -EINVAL);
    assert_int_equal(blk_read(b, buf, 1, SIZE), -EINVAL);
    assert_int_equal(blk_read(b, buf, 2, UINT64_MAX), -EINVAL);
    assert_int_equal(blk_write(b, buf, 1, SIZE - 1), 0);
    blk_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_equal_an_array),
        cmocka_unit_test(neighbours_in_one_granule_keep_both_writes),
        cmocka_unit_test(overlapping_writes_are_one_after_the_other),
        cmocka_unit_test(an_edge_that_cannot_be_read_is_not_overwritten),
        cmocka_unit_test(beyond_the_end_is_refused),
    };

    return cmocka_run_group_tests_name("align", tests, NULL, NULL);
}
