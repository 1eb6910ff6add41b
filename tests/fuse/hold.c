/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the gate of fuse/hold.c: nobody is inside while it is shut, nothing that was kept is lost
 * or comes twice, and an interrupt finds it wherever it is. */

#include "fuse/hold.h"
#include "lib/test.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#define THREADS 24 /* more than there are shards */

static struct serve_hold *gate(void)
{
    struct serve_hold *h;

    assert_int_equal(serve_hold_open(&h), 0);
    return h;
}

static void open_it_lets_pass(void **state)
{
    struct serve_hold *h = gate();

    (void)state;
    assert_int_equal(serve_hold_enter(h), 0);
    serve_hold_leave(h);
    assert_int_equal(serve_hold_kept(h), 0);
    serve_hold_close(h);
}

static void shut_it_keeps_in_order(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held r[4] = {0};

    (void)state;
    serve_hold_shut(h);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(serve_hold_enter(h), -EAGAIN);
        assert_int_equal(serve_hold_keep(h, &r[i]), 0);
    }
    assert_null(serve_hold_next(h));
    assert_int_equal(serve_hold_kept(h), 4);
    serve_hold_lift(h);
    for (unsigned i = 0; i < 4; i++)
        assert_ptr_equal(serve_hold_next(h), &r[i]);
    assert_null(serve_hold_next(h));
    assert_int_equal(serve_hold_enter(h), 0);
    serve_hold_leave(h);
    serve_hold_close(h);
}

static void it_waits_for_who_is_inside(void **state)
{
    struct serve_hold *h = gate();

    (void)state;
    assert_int_equal(serve_hold_enter(h), 0);
    serve_hold_shut(h);
    assert_false(serve_hold_wait(h, 20));
    serve_hold_leave(h);
    assert_true(serve_hold_wait(h, 20));
    serve_hold_close(h);
}

static void an_interrupt_takes_a_kept_one(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held r[3] = {0};

    (void)state;
    serve_hold_shut(h);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(serve_hold_keep(h, &r[i]), 0);
    assert_true(serve_hold_take(h, &r[1]));
    assert_false(serve_hold_take(h, &r[1]));
    serve_hold_lift(h);
    assert_ptr_equal(serve_hold_next(h), &r[0]);
    assert_ptr_equal(serve_hold_next(h), &r[2]);
    assert_null(serve_hold_next(h));
    serve_hold_close(h);
}

static void interrupted_before_it_is_not_kept(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held r = {0};

    (void)state;
    serve_hold_shut(h);
    assert_false(serve_hold_take(h, &r));
    assert_int_equal(serve_hold_keep(h, &r), -EINTR);
    assert_int_equal(serve_hold_kept(h), 0);
    serve_hold_close(h);
}

static void an_open_gate_keeps_nothing(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held r = {0};

    (void)state;
    assert_int_equal(serve_hold_keep(h, &r), -EAGAIN);
    serve_hold_close(h);
}

static void memory_has_a_bound(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held most = {.bytes = SERVE_HOLD_BYTES - 1}, one = {.bytes = 1},
                      more = {.bytes = 1};

    (void)state;
    serve_hold_shut(h);
    assert_int_equal(serve_hold_keep(h, &most), 0);
    assert_int_equal(serve_hold_keep(h, &one), 0);
    assert_int_equal(serve_hold_keep(h, &more), -ENOMEM);
    assert_true(serve_hold_take(h, &one));
    assert_int_equal(serve_hold_keep(h, &more), 0);
    assert_true(serve_hold_take(h, &most));
    assert_true(serve_hold_take(h, &more));
    serve_hold_close(h);
}

static void a_failed_gate_stays_so(void **state)
{
    struct serve_hold *h = gate();
    struct serve_held r = {0};

    (void)state;
    serve_hold_shut(h);
    assert_int_equal(serve_hold_keep(h, &r), 0);
    serve_hold_fail(h, -EIO);
    assert_ptr_equal(serve_hold_next(h), &r);
    assert_int_equal(serve_hold_enter(h), -EIO);
    serve_hold_lift(h);
    serve_hold_shut(h);
    assert_int_equal(serve_hold_enter(h), -EIO);
    assert_int_equal(serve_hold_keep(h, &r), -EAGAIN);
    serve_hold_close(h);
}

/* Threads send requests, one shuts and lifts, another interrupts; inside, a request looks whether
 * the gate's holder believes that nobody is. */
struct crowd {
    struct serve_hold *h;
    atomic_bool alone, end;
    atomic_uint done, intruders;
};

struct sent {
    struct serve_held held;
    atomic_bool answered;
};

static void answer(struct crowd *c, struct sent *q)
{
    if (atomic_exchange(&q->answered, true))
        atomic_fetch_add(&c->intruders, 1); /* answered twice */
    atomic_fetch_add(&c->done, 1);
}

static void submit(struct crowd *c, struct sent *q)
{
    for (;;) {
        int r = serve_hold_enter(c->h);

        if (r == 0) {
            if (atomic_load(&c->alone))
                atomic_fetch_add(&c->intruders, 1);
            serve_hold_leave(c->h);
            answer(c, q);
            return;
        }
        r = serve_hold_keep(c->h, &q->held);
        if (r == 0)
            return;
        if (r == -EINTR) {
            answer(c, q);
            return;
        }
    }
}

static void drain(struct crowd *c)
{
    struct serve_held *r;

    while ((r = serve_hold_next(c->h)) != NULL)
        submit(c, (struct sent *)r);
}

#define EACH 400
static struct sent all_sent[THREADS][EACH];

struct sender {
    struct crowd *c;
    unsigned number;
};

static void *send_many(void *arg)
{
    struct sender *me = arg;

    for (unsigned i = 0; i < EACH; i++) {
        struct sent *q = &all_sent[me->number][i];

        submit(me->c, q);
        if (i % 5 == 0 && serve_hold_take(me->c->h, &q->held))
            answer(me->c, q);
    }
    return NULL;
}

static void *hold_often(void *arg)
{
    struct crowd *c = arg;
    const struct timespec moment = {.tv_nsec = 200000};

    while (!atomic_load(&c->end)) {
        serve_hold_shut(c->h);
        while (!serve_hold_wait(c->h, 100))
            ;
        atomic_store(&c->alone, true);
        nanosleep(&moment, NULL);
        atomic_store(&c->alone, false);
        serve_hold_lift(c->h);
        drain(c);
    }
    return NULL;
}

static void of_many_threads_none_is_lost_and_none_intrudes(void **state)
{
    struct crowd c = {.h = gate()};
    struct sender senders[THREADS];
    pthread_t threads[THREADS], holder;

    (void)state;
    memset(all_sent, 0, sizeof(all_sent));
    assert_int_equal(pthread_create(&holder, NULL, hold_often, &c), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        senders[i] = (struct sender){&c, i};
        assert_int_equal(pthread_create(&threads[i], NULL, send_many, &senders[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&c.end, true);
    pthread_join(holder, NULL);
    drain(&c);
    assert_int_equal(atomic_load(&c.intruders), 0);
    assert_int_equal(atomic_load(&c.done), THREADS * EACH);
    assert_int_equal(serve_hold_kept(c.h), 0);
    serve_hold_close(c.h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_it_lets_pass),
        cmocka_unit_test(shut_it_keeps_in_order),
        cmocka_unit_test(it_waits_for_who_is_inside),
        cmocka_unit_test(an_interrupt_takes_a_kept_one),
        cmocka_unit_test(interrupted_before_it_is_not_kept),
        cmocka_unit_test(an_open_gate_keeps_nothing),
        cmocka_unit_test(memory_has_a_bound),
        cmocka_unit_test(a_failed_gate_stays_so),
        cmocka_unit_test(of_many_threads_none_is_lost_and_none_intrudes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
