/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves base/pool.c: every piece runs exactly once whoever runs it, errors come out by piece
 * number, many callers share a pool. */

#include "lib/test.h"

#include "base/pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define N_PIECES 64

struct counted {
    atomic_uint ran[N_PIECES];
    unsigned fail_at, fail_at_too; /* UINT32_MAX: none */
    unsigned sleep_us;
    atomic_uint at_once, most_at_once;
};

static int count_piece(void *arg, unsigned piece)
{
    struct counted *c = arg;
    unsigned now = atomic_fetch_add(&c->at_once, 1) + 1;
    unsigned most = atomic_load(&c->most_at_once);

    while (now > most && !atomic_compare_exchange_weak(&c->most_at_once, &most, now))
        ;
    if (c->sleep_us > 0)
        usleep(c->sleep_us);
    atomic_fetch_add(&c->ran[piece], 1);
    atomic_fetch_sub(&c->at_once, 1);
    if (piece == c->fail_at)
        return -EIO;
    return piece == c->fail_at_too ? -ENOSPC : 0;
}

static void counted_init(struct counted *c)
{
    *c = (struct counted){.fail_at = UINT32_MAX, .fail_at_too = UINT32_MAX};
}

static void every_piece_runs_once(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 5; threads++) {
        struct pool *p = NULL;

        assert_int_equal(pool_open(&p, threads, NULL), 0);
        for (unsigned n = 0; n <= N_PIECES; n++) {
            struct counted c;

            counted_init(&c);
            assert_int_equal(pool_run(p, count_piece, &c, n), 0);
            for (unsigned i = 0; i < N_PIECES; i++)
                assert_int_equal(atomic_load(&c.ran[i]), i < n ? 1 : 0);
        }
        pool_close(p);
    }
}

static void workers_and_the_caller_work_at_once(void **state)
{
    struct pool *p = NULL;
    struct counted c;
    struct pool_stats stats;

    (void)state;
    counted_init(&c);
    c.sleep_us = 20000;
    assert_int_equal(pool_open(&p, 4, NULL), 0);
    assert_int_equal(pool_run(p, count_piece, &c, 16), 0);
    assert_int_equal(atomic_load(&c.most_at_once), 4);
    pool_get_stats(p, &stats);
    assert_int_equal(stats.n_threads, 4);
    assert_int_equal(stats.n_batches, 1);
    assert_int_equal(stats.n_pieces, 16);
    assert_true(stats.n_pieces_worker > 0 && stats.n_pieces_worker < 16);
    pool_close(p);
}

static void the_error_of_the_first_failed_piece_comes_out(void **state)
{
    struct pool *p = NULL;

    (void)state;
    assert_int_equal(pool_open(&p, 3, NULL), 0);
    for (unsigned round = 0; round < 200; round++) {
        struct counted c;

        counted_init(&c);
        c.fail_at = 2;
        c.fail_at_too = 3;
        assert_int_equal(pool_run(p, count_piece, &c, N_PIECES), -EIO);
        assert_int_equal(atomic_load(&c.ran[0]), 1);
    }
    pool_close(p);
}

static void pieces_after_a_failure_are_left_out(void **state)
{
    struct counted c;

    (void)state;
    counted_init(&c);
    c.fail_at = 5;
    assert_int_equal(pool_run(NULL, count_piece, &c, N_PIECES), -EIO);
    assert_int_equal(atomic_load(&c.ran[5]), 1);
    assert_int_equal(atomic_load(&c.ran[6]), 0);
}

/* Returns NULL when all went well. */
static void *many_batches(void *arg)
{
    static char failed[] = "a batch failed", not_once[] = "a piece did not run once";

    for (unsigned round = 0; round < 300; round++) {
        struct counted c;

        counted_init(&c);
        if (pool_run(arg, count_piece, &c, 2 + round % 20) != 0)
            return failed;
        for (unsigned i = 0; i < 2 + round % 20; i++)
            if (atomic_load(&c.ran[i]) != 1)
                return not_once;
    }
    return NULL;
}

static void callers_share_a_pool(void **state)
{
    struct pool *p = NULL;
    pthread_t callers[8];

    (void)state;
    assert_int_equal(pool_open(&p, 3, NULL), 0);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, many_batches, p), 0);
    for (unsigned i = 0; i < 8; i++) {
        void *said;

        assert_int_equal(pthread_join(callers[i], &said), 0);
        assert_null(said);
    }
    pool_close(p);
}

struct job {
    struct pool_job job;
    atomic_uint ran;
    atomic_bool *go; /* NULL: at once */
};

static void job_fn(void *arg)
{
    struct job *j = arg;

    while (j->go != NULL && !atomic_load(j->go))
        usleep(100);
    atomic_fetch_add(&j->ran, 1);
}

static void wait_ran(struct job *j, unsigned n)
{
    for (unsigned i = 0; i < 100000 && atomic_load(&j->ran) != n; i++)
        usleep(100);
    assert_int_equal(atomic_load(&j->ran), n);
}

static void jobs_run_in_order_and_can_be_taken_back_until_they_do(void **state)
{
    struct pool *p = NULL;
    atomic_bool go = false;
    struct job first = {.go = &go}, second = {0}, third = {0};

    (void)state;
    assert_int_equal(pool_open(&p, 2, NULL), 0);
    first.job = (struct pool_job){.fn = job_fn, .arg = &first};
    second.job = (struct pool_job){.fn = job_fn, .arg = &second};
    third.job = (struct pool_job){.fn = job_fn, .arg = &third};
    pool_submit(p, &first.job);
    pool_submit(p, &second.job);
    pool_submit(p, &third.job);
    assert_true(pool_cancel(p, &second.job));
    assert_false(pool_cancel(p, &second.job));
    atomic_store(&go, true);
    wait_ran(&third, 1);
    assert_int_equal(atomic_load(&first.ran), 1);
    assert_int_equal(atomic_load(&second.ran), 0);
    assert_false(pool_cancel(p, &third.job));
    pool_submit(p, &second.job);
    wait_ran(&second, 1);
    pool_close(p);
}

static void who_would_only_wait_does_a_job(void **state)
{
    struct pool *p = NULL;
    atomic_bool go = false;
    struct job busy = {.go = &go}, mine = {0};

    (void)state;
    assert_int_equal(pool_open(&p, 2, NULL), 0);
    busy.job = (struct pool_job){.fn = job_fn, .arg = &busy};
    mine.job = (struct pool_job){.fn = job_fn, .arg = &mine};
    pool_submit(p, &busy.job);
    while (pool_cancel(p, &busy.job)) { /* until the worker is in it */
        pool_submit(p, &busy.job);
        usleep(1000);
    }
    assert_false(pool_help(p));
    pool_submit(p, &mine.job);
    assert_true(pool_help(p));
    assert_int_equal(atomic_load(&mine.ran), 1);
    assert_false(pool_cancel(p, &mine.job));
    assert_false(pool_help(p));
    atomic_store(&go, true);
    wait_ran(&busy, 1);
    pool_close(p);
}

/* Two pieces: the caller's ends at once, the worker's only when the job was done. */
struct shared_batch {
    struct pool *p;
    pthread_t caller;
    atomic_uint begun;
    struct job job;
};

static bool becomes(atomic_uint *value, unsigned wanted)
{
    for (unsigned i = 0; i < 50000 && atomic_load(value) != wanted; i++)
        usleep(100);
    return atomic_load(value) == wanted;
}

static int shared_piece(void *arg, unsigned piece)
{
    struct shared_batch *b = arg;

    (void)piece;
    atomic_fetch_add(&b->begun, 1);
    if (!becomes(&b->begun, 2))
        return -ETIME;
    if (!pthread_equal(pthread_self(), b->caller))
        return becomes(&b->job.ran, 1) ? 0 : -EIO;
    pool_submit(b->p, &b->job.job);
    return 0;
}

static void the_caller_of_a_batch_does_a_job_before_it_waits(void **state)
{
    struct shared_batch b = {.caller = pthread_self()};

    (void)state;
    assert_int_equal(pool_open(&b.p, 2, NULL), 0);
    b.job.job = (struct pool_job){.fn = job_fn, .arg = &b.job};
    assert_int_equal(pool_run(b.p, shared_piece, &b, 2), 0);
    assert_int_equal(atomic_load(&b.job.ran), 1);
    pool_close(b.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_runs_once),
        cmocka_unit_test(workers_and_the_caller_work_at_once),
        cmocka_unit_test(the_error_of_the_first_failed_piece_comes_out),
        cmocka_unit_test(pieces_after_a_failure_are_left_out),
        cmocka_unit_test(callers_share_a_pool),
        cmocka_unit_test(jobs_run_in_order_and_can_be_taken_back_until_they_do),
        cmocka_unit_test(who_would_only_wait_does_a_job),
        cmocka_unit_test(the_caller_of_a_batch_does_a_job_before_it_waits),
    };

    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
