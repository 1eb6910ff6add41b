/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves base/histogram.c: its buckets have no gap, and its percentiles are those of a sorted
 * array. */

#include "base/histogram.h"
#include "lib/test.h"

#include <stdlib.h>

static void every_value_has_one_bucket_and_buckets_have_no_gap(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        assert_int_equal(histogram_bucket(histogram_floor(i)), i);
        if (i > 0)
            assert_int_equal(histogram_bucket(histogram_floor(i) - 1), i - 1);
    }
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_floor(0), 0);
    assert_int_equal(histogram_floor(1), 256);
    assert_int_equal(histogram_floor(2), 256 + 64);
    assert_int_equal(histogram_floor(HISTOGRAM_BUCKETS - 1), UINT64_C(1) << 36);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

#define VALUES 5000

/* Any number of values, spread over all powers of two. */
static void one_array(uint64_t *seed, size_t n)
{
    static uint64_t values[VALUES];
    uint64_t counts[HISTOGRAM_BUCKETS] = {0};

    for (size_t i = 0; i < n; i++) {
        values[i] = test_random(seed) >> (28 + test_random(seed) % 36);
        counts[histogram_bucket(values[i])]++;
    }
    qsort(values, n, sizeof(values[0]), compare);
    for (unsigned percent = 1; percent <= 100; percent++) {
        uint64_t want = values[(n * percent + 99) / 100 - 1];
        uint64_t got = histogram_percentile(counts, percent);

        assert_int_equal(histogram_bucket(got), histogram_bucket(want));
        if (want >= 256)
            assert_in_range(got, want - want / 8, want + want / 8);
    }
}

static void percentiles_are_those_of_a_sorted_array(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned round = 0; round < 50; round++)
        one_array(&seed, 1 + test_random(&seed) % VALUES);
    for (size_t n = 1; n <= 120; n++)
        one_array(&seed, n);
}

static void no_value_has_no_percentile(void **state)
{
    static const uint64_t counts[HISTOGRAM_BUCKETS];

    (void)state;
    assert_int_equal(histogram_percentile(counts, 50), 0);
}

static void counters_may_be_as_large_as_they_are(void **state)
{
    uint64_t counts[HISTOGRAM_BUCKETS] = {0};

    (void)state;
    counts[10] = UINT64_MAX / 2;
    counts[20] = UINT64_MAX / 2;
    assert_int_equal(histogram_bucket(histogram_percentile(counts, 49)), 10);
    assert_int_equal(histogram_bucket(histogram_percentile(counts, 99)), 20);
    assert_int_equal(histogram_bucket(histogram_percentile(counts, 100)), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_has_one_bucket_and_buckets_have_no_gap),
        cmocka_unit_test(percentiles_are_those_of_a_sorted_array),
        cmocka_unit_test(no_value_has_no_percentile),
        cmocka_unit_test(counters_may_be_as_large_as_they_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
