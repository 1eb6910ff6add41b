/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the counting of fuse/stats.c: nothing is lost between threads, and each request is in the
 * range of the time it took. */

#include "fuse/session.h"
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 24 /* more than there are shards */
#define EACH 2000

static struct serve *counters(void)
{
    struct serve *s = aligned_alloc(_Alignof(struct serve), sizeof(*s));

    assert_non_null(s);
    memset(s, 0, sizeof(*s));
    return s;
}

/* Requests of one kind; *from_ns is where the range of the slowest begins. */
static uint64_t requests(struct serve *s, const char *kind, uint64_t *from_ns)
{
    struct json_object *o = serve_latencies(s), *pairs, *pair;
    uint64_t n = 0;

    assert_true(json_object_object_get_ex(o, kind, &pairs));
    for (size_t i = 0; i < json_object_array_length(pairs); i++) {
        pair = json_object_array_get_idx(pairs, i);
        *from_ns = json_object_get_uint64(json_object_array_get_idx(pair, 0));
        n += json_object_get_uint64(json_object_array_get_idx(pair, 1));
    }
    json_object_put(o);
    return n;
}

static void *count_many(void *arg)
{
    for (unsigned i = 0; i < EACH; i++)
        serve_count(arg, i % 2 ? SERVE_READ : SERVE_WRITE, 4096, 0, serve_clock());
    return NULL;
}

static void counts_of_many_threads_add_up(void **state)
{
    struct serve *s = counters();
    pthread_t threads[THREADS];
    uint64_t bytes = 0, from;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, s), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < SERVE_SHARDS; i++)
        bytes += s->shards[i].kind[SERVE_READ].bytes;
    assert_int_equal(bytes, THREADS * EACH / 2 * 4096);
    assert_int_equal(requests(s, "read", &from), THREADS * EACH / 2);
    assert_int_equal(requests(s, "write", &from), THREADS * EACH / 2);
    assert_int_equal(requests(s, "flush", &from), 0);
    free(s);
}

static void a_request_is_counted_by_how_long_it_took(void **state)
{
    struct serve *s = counters();
    uint64_t from = 0, ago_ns = 3 * UINT64_C(1000000000);

    (void)state;
    serve_count(s, SERVE_FLUSH, 0, 0, serve_clock() - ago_ns);
    assert_int_equal(requests(s, "flush", &from), 1);
    assert_in_range(from, ago_ns * 3 / 4, ago_ns);
    free(s);
}

static void a_failed_request_is_an_error_and_nothing_else(void **state)
{
    struct serve *s = counters();
    uint64_t from, errors = 0;

    (void)state;
    serve_count(s, SERVE_READ, 4096, -EIO, serve_clock());
    for (unsigned i = 0; i < SERVE_SHARDS; i++)
        errors += s->shards[i].errors;
    assert_int_equal(errors, 1);
    assert_int_equal(requests(s, "read", &from), 0);
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_of_many_threads_add_up),
        cmocka_unit_test(a_request_is_counted_by_how_long_it_took),
        cmocka_unit_test(a_failed_request_is_an_error_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
