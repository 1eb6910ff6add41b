/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/rangelock.c: overlaps exclude each other, reads share, disjoint ranges do not wait,
 * nobody deadlocks round the circle of shards. */

#include "lib/test.h"

#include "volume/rangelock.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

struct asker {
    struct range_lock *l;
    uint64_t off, end;
    bool exclusive;
    sem_t has, let_go;
    pthread_t thread;
};

static void *ask(void *arg)
{
    struct asker *a = arg;
    struct range_held held;

    range_take(a->l, &held, a->off, a->end, a->exclusive);
    sem_post(&a->has);
    sem_wait(&a->let_go);
    range_drop(&held);
    return NULL;
}

static void ask_start(struct asker *a, struct range_lock *l, uint64_t off, uint64_t end,
                      bool exclusive)
{
    a->l = l;
    a->off = off;
    a->end = end;
    a->exclusive = exclusive;
    sem_init(&a->has, 0, 0);
    sem_init(&a->let_go, 0, 0);
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static int has_within(struct asker *a, unsigned ms)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    t.tv_nsec += (long)(ms % 1000) * 1000000;
    t.tv_sec += ms / 1000 + t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    return sem_timedwait(&a->has, &t) == 0;
}

static void ask_end(struct asker *a)
{
    sem_post(&a->let_go);
    pthread_join(a->thread, NULL);
}

/* Does the second wait for the first? */
static int second_waits(uint64_t off1, uint64_t end1, bool ex1, uint64_t off2, uint64_t end2,
                        bool ex2)
{
    struct range_lock *l = NULL;
    struct asker one, two;
    int waits;

    assert_int_equal(range_lock_open(&l), 0);
    ask_start(&one, l, off1, end1, ex1);
    assert_true(has_within(&one, 20000));
    ask_start(&two, l, off2, end2, ex2);
    waits = !has_within(&two, 40);
    sem_post(&one.let_go);
    if (waits)
        assert_true(has_within(&two, 20000));
    pthread_join(one.thread, NULL);
    ask_end(&two);
    range_lock_close(l);
    return waits;
}

#define MIB (UINT64_C(1) << 20)

static void overlaps_wait_unless_both_read(void **state)
{
    (void)state;
    assert_true(second_waits(0, 512, true, 0, 512, true));
    assert_true(second_waits(0, 512, true, 0, 512, false));
    assert_true(second_waits(0, 512, false, 511, 512, true));
    assert_false(second_waits(0, 512, false, 0, 512, false));
    assert_true(second_waits(MIB - 512, MIB + 512, true, MIB, MIB + 1, true));
    assert_true(second_waits(0, 1000 * MIB, true, 777 * MIB, 777 * MIB + 1, false));
    assert_true(second_waits(63 * MIB, 65 * MIB, true, 64 * MIB, 64 * MIB + 1, true));
}

static void disjoint_ranges_do_not_wait(void **state)
{
    (void)state;
    assert_false(second_waits(0, 512, true, 512, 1024, true));
    assert_false(second_waits(0, 64 * MIB, true, 64 * MIB, 128 * MIB, true)); /* same shards */
    assert_false(second_waits(5, 6, true, 4, 5, true));
    assert_false(second_waits(0, MIB, true, 64 * MIB, 65 * MIB, true));
}

static void a_writer_is_not_overtaken_for_ever(void **state)
{
    struct range_lock *l = NULL;
    struct asker reader, writer, late_reader;

    (void)state;
    assert_int_equal(range_lock_open(&l), 0);
    ask_start(&reader, l, 0, 4096, false);
    assert_true(has_within(&reader, 20000));
    ask_start(&writer, l, 0, 4096, true);
    assert_false(has_within(&writer, 40));
    ask_start(&late_reader, l, 0, 4096, false);
    assert_false(has_within(&late_reader, 40));
    ask_end(&reader);
    assert_true(has_within(&writer, 20000));
    assert_false(has_within(&late_reader, 40));
    ask_end(&writer);
    assert_true(has_within(&late_reader, 20000));
    ask_end(&late_reader);
    range_lock_close(l);
}

enum { CELLS = 256 };
struct crowd {
    struct range_lock *l;
    uint64_t seed;
    atomic_int *cells; /* -1: a writer inside; n > 0: readers */
    atomic_int *wrong;
};

static void *crowd(void *arg)
{
    struct crowd *c = arg;

    for (unsigned n = 0; n < 3000; n++) {
        uint64_t off = test_random(&c->seed) % CELLS;
        uint64_t end = off + 1 + test_random(&c->seed) % (n % 50 == 0 ? CELLS - off : 3);
        bool exclusive = test_random(&c->seed) % 2;
        struct range_held held;

        if (end > CELLS)
            end = CELLS;
        range_take(c->l, &held, off * MIB / 2, end * MIB / 2, exclusive);
        for (uint64_t i = off; i < end; i++) {
            int before =
                exclusive ? atomic_exchange(&c->cells[i], -1) : atomic_fetch_add(&c->cells[i], 1);

            if (exclusive ? before != 0 : before < 0)
                atomic_store(c->wrong, 1);
        }
        for (uint64_t i = off; i < end; i++) {
            if (exclusive)
                atomic_store(&c->cells[i], 0);
            else
                atomic_fetch_sub(&c->cells[i], 1);
        }
        range_drop(&held);
    }
    return NULL;
}

static void a_crowd_never_meets_a_writer_inside(void **state)
{
    static atomic_int cells[CELLS], wrong;
    struct crowd c[8];
    pthread_t threads[8];
    struct range_lock *l = NULL;
    uint64_t seed = test_seed();

    (void)state;
    assert_int_equal(range_lock_open(&l), 0);
    for (unsigned i = 0; i < 8; i++) {
        c[i] = (struct crowd){l, seed + i, cells, &wrong};
        assert_int_equal(pthread_create(&threads[i], NULL, crowd, &c[i]), 0);
    }
    for (unsigned i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    range_lock_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps_wait_unless_both_read),
        cmocka_unit_test(disjoint_ranges_do_not_wait),
        cmocka_unit_test(a_writer_is_not_overtaken_for_ever),
        cmocka_unit_test(a_crowd_never_meets_a_writer_inside),
    };

    return cmocka_run_group_tests_name("rangelock", tests, NULL, NULL);
}
