/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/stat_sample.c: what a daemon answers becomes a sample, and two samples an interval,
 * also when the volume was mounted anew in between. */

#include "cli/stat_sample.h"
#include "lib/test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define S UINT64_C(1000000000)

/* As the daemon answers. */
static const char answer[] =
    "{\"ok\": true, \"age_ns\": 5000000000,"
    " \"stats\": {\"name\": \"x\", \"seconds\": 5,"
    "  \"read\": {\"requests\": 10, \"bytes\": 40960, \"ns\": 1000000, \"p50_us\": 1},"
    "  \"write\": {\"requests\": 20, \"bytes\": 81920, \"ns\": 3000000},"
    "  \"flush\": {\"requests\": 3, \"bytes\": 0, \"ns\": 7},"
    "  \"errors\": 1, \"opens\": 1, \"waiting_for_space\": 2,"
    "  \"cipher\": {\"ns\": 11, \"bytes_enciphered\": 12, \"bytes_deciphered\": 13},"
    "  \"pool\": {\"batches\": 1, \"pieces\": 14, \"pieces_by_workers\": 5},"
    "  \"readahead\": {\"bytes_prepared\": 16, \"bytes_used\": 15, \"bytes_wasted\": 1}},"
    " \"latencies\": {\"read\": [[512, 4], [100000, 6]], \"write\": [[256, 20]], \"flush\": []}}";

static int decode(struct stat_sample *ret, const char *text)
{
    struct json_object *o = json_tokener_parse(text);
    int r;

    assert_non_null(o);
    r = stat_sample_decode(ret, o, 77);
    json_object_put(o);
    return r;
}

static void an_answer_becomes_a_sample(void **state)
{
    struct stat_sample s;

    (void)state;
    assert_int_equal(decode(&s, answer), 0);
    assert_int_equal(s.pid, 77);
    assert_int_equal(s.age_ns, 5 * S);
    assert_int_equal(s.read.n, 10);
    assert_int_equal(s.read.bytes, 40960);
    assert_int_equal(s.read.ns, 1000000);
    assert_int_equal(s.read.latency[histogram_bucket(512)], 4);
    assert_int_equal(s.read.latency[histogram_bucket(100000)], 6);
    assert_int_equal(s.write.latency[histogram_bucket(256)], 20);
    assert_int_equal(s.flushes, 3);
    assert_int_equal(s.errors, 1);
    assert_int_equal(s.waiting_for_space, 2);
    assert_int_equal(s.cipher_ns, 11);
    assert_int_equal(s.pieces, 14);
    assert_int_equal(s.pieces_by_workers, 5);
    assert_int_equal(s.readahead_prepared, 16);
    assert_int_equal(s.readahead_used, 15);
    assert_int_equal(s.readahead_wasted, 1);
}

/* Each name in turn becomes another one, and each number a string. */
static void an_answer_with_something_missing_is_none(void **state)
{
    static const char *const needed[] = {
        "age_ns",
        "stats",
        "latencies",
        "read",
        "write",
        "flush",
        "requests",
        "bytes",
        "ns",
        "errors",
        "cipher",
        "pool",
        "readahead",
        "pieces",
        "waiting_for_space",
        "pieces_by_workers",
        "bytes_prepared",
        "bytes_used",
        "bytes_wasted",
    };
    struct stat_sample s;

    (void)state;
    for (unsigned i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        char text[sizeof(answer)], name[32], *at;

        memcpy(text, answer, sizeof(text));
        snprintf(name, sizeof(name), "\"%s\"", needed[i]);
        at = strstr(text, name);
        assert_non_null(at);
        at[1] = '#';
        assert_int_equal(decode(&s, text), -EBADMSG);
    }
    assert_int_equal(decode(&s, "{}"), -EBADMSG);
    assert_int_equal(decode(&s, "{\"stats\": 1, \"latencies\": []}"), -EBADMSG);
}

static void a_pair_that_is_none_is_refused(void **state)
{
    static const char *const pairs[] = {"[512, 4]", "[100000, 6]"};
    static const char *const bad[] = {"[512   ]", "\"a pair\"   "};
    struct stat_sample s;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        char text[sizeof(answer)];

        memcpy(text, answer, sizeof(text));
        memcpy(strstr(text, pairs[i]), bad[i], strlen(pairs[i]));
        assert_int_equal(decode(&s, text), -EBADMSG);
    }
}

static struct stat_sample sample(uint64_t age_ns, uint64_t factor)
{
    struct stat_sample s = {
        .pid = 77,
        .age_ns = age_ns,
        .read = {.n = 100 * factor, .bytes = 10000000 * factor, .ns = 20000000 * factor},
        .write = {.n = 10 * factor, .bytes = 1000000 * factor, .ns = 5000000 * factor},
        .flushes = 4 * factor,
        .errors = factor,
        .cipher_ns = 3 * S * factor,
        .pieces = 200 * factor,
        .pieces_by_workers = 50 * factor,
        .readahead_prepared = 8000000 * factor,
        .readahead_used = 6000000 * factor,
        .readahead_wasted = 2000000 * factor,
        .waiting_for_space = factor,
    };

    s.read.latency[histogram_bucket(100000)] = 98 * factor;
    s.read.latency[histogram_bucket(9000000)] = 2 * factor;
    s.write.latency[histogram_bucket(500000)] = 10 * factor;
    return s;
}

static void assert_near(double got, double want, double within)
{
    if (fabs(got - want) > fabs(want) * within)
        fail_msg("%g is not near %g", got, want);
}

/* factor 2 to 3, or all of factor 1: the same amounts, over so many seconds. */
static void assert_one_of_each(const struct stat_interval *i, double seconds)
{
    assert_near(i->seconds, seconds, 1e-9);
    assert_int_equal(i->read.n, 100);
    assert_int_equal(i->read.bytes, 10000000);
    assert_near(i->read.n_per_s, 100 / seconds, 1e-9);
    assert_near(i->read.mb_per_s, 10 / seconds, 1e-9);
    assert_near(i->read.avg_us, 200, 1e-9);
    assert_near(i->read.p50_us, 100, 0.125);
    assert_near(i->read.p99_us, 9000, 0.125);
    assert_int_equal(i->write.n, 10);
    assert_near(i->write.avg_us, 500, 1e-9);
    assert_near(i->write.p99_us, 500, 0.125);
    assert_int_equal(i->flushes, 4);
    assert_near(i->flushes_per_s, 4 / seconds, 1e-9);
    assert_int_equal(i->errors, 1);
    assert_near(i->cipher_cores, 3 / seconds, 1e-9);
    assert_near(i->readahead_hit, 0.6, 1e-9);
    assert_near(i->readahead_waste, 0.25, 1e-9);
    assert_near(i->by_workers, 0.25, 1e-9);
}

static void an_interval_is_what_happened_in_it(void **state)
{
    struct stat_sample before = sample(10 * S, 2), now = sample(12 * S, 3);
    struct stat_interval i;

    (void)state;
    stat_difference(&i, &before, &now);
    assert_false(i.since_mount);
    assert_one_of_each(&i, 2);
    assert_int_equal(i.waiting_for_space, 3);
}

static void the_first_interval_is_since_the_mount(void **state)
{
    struct stat_sample now = sample(4 * S, 1);
    struct stat_interval i;

    (void)state;
    stat_difference(&i, NULL, &now);
    assert_true(i.since_mount);
    assert_one_of_each(&i, 4);
}

static void counters_that_went_back_are_of_another_mount(void **state)
{
    struct stat_sample before = sample(10 * S, 9), now = sample(S, 1), busier = sample(11 * S, 10);
    struct stat_interval i;

    (void)state;
    stat_difference(&i, &before, &now);
    assert_true(i.since_mount);
    assert_one_of_each(&i, 1);
    busier.pid = 78; /* it was mounted longer than the one before, and did more */
    stat_difference(&i, &before, &busier);
    assert_true(i.since_mount);
    assert_int_equal(i.read.n, 1000);
}

static void one_counter_that_seems_to_go_back_did_not_move(void **state)
{
    struct stat_sample before = sample(10 * S, 2), now = sample(12 * S, 3);
    struct stat_interval i;

    (void)state;
    before.flushes = 1000;
    before.write = now.write;
    before.write.n++;
    stat_difference(&i, &before, &now);
    assert_int_equal(i.flushes, 0);
    assert_int_equal(i.write.n, 0);
    assert_int_equal(i.read.n, 100);
}

static void nothing_has_no_shares_and_no_times(void **state)
{
    struct stat_sample s = sample(10 * S, 2);
    struct stat_interval i;
    struct json_object *o, *v = NULL;

    (void)state;
    stat_difference(&i, &s, &s); /* and no time: no division by it */
    assert_true(i.read.n_per_s == 0 && i.read.avg_us == 0 && i.read.p99_us == 0);
    assert_true(i.readahead_hit < 0 && i.readahead_waste < 0 && i.by_workers < 0);
    o = stat_interval_json(&i);
    assert_true(json_object_object_get_ex(o, "readahead_hit", &v));
    assert_null(v);
    json_object_put(o);
}

static void more_used_than_read_is_still_all_of_it(void **state)
{
    struct stat_sample now = sample(S, 1);
    struct stat_interval i;

    (void)state;
    now.readahead_used = now.read.bytes + 4096; /* a request that has not ended yet */
    stat_difference(&i, NULL, &now);
    assert_true(i.readahead_hit == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_becomes_a_sample),
        cmocka_unit_test(an_answer_with_something_missing_is_none),
        cmocka_unit_test(a_pair_that_is_none_is_refused),
        cmocka_unit_test(an_interval_is_what_happened_in_it),
        cmocka_unit_test(the_first_interval_is_since_the_mount),
        cmocka_unit_test(counters_that_went_back_are_of_another_mount),
        cmocka_unit_test(one_counter_that_seems_to_go_back_did_not_move),
        cmocka_unit_test(nothing_has_no_shares_and_no_times),
        cmocka_unit_test(more_used_than_read_is_still_all_of_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
