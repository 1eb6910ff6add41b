/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/space.c and volume/poison.c over a medium that is full or fails. */

#include "lib/test.h"

#include "block/fault.h"
#include "block/memory.h"
#include "volume/poison.h"
#include "volume/space.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

enum { SIZE = 1024 * 1024 };

struct stack {
    struct test_report rep;
    struct blk *fault, *top;
};

static void open_stack(struct stack *s,
                       int (*layer)(struct blk **, struct blk *, bool, struct report *), bool wait)
{
    struct blk *mem = NULL;

    test_report_init(&s->rep);
    assert_int_equal(blk_memory_open(&mem, SIZE, 1), 0);
    assert_int_equal(blk_fault_open(&s->fault, mem), 0);
    assert_int_equal(layer(&s->top, s->fault, wait, &s->rep.rep), 0);
}

static int open_poison(struct blk **ret, struct blk *below, bool wait, struct report *rep)
{
    (void)wait;
    return vol_poison_open(ret, below, rep);
}

struct writer {
    struct blk *b;
    uint64_t off;
    int result;
    pthread_t thread;
};

static void *write_one(void *arg)
{
    struct writer *w = arg;
    static const unsigned char page[4096] = {1};

    w->result = blk_write(w->b, page, sizeof(page), w->off);
    return NULL;
}

static void start_writer(struct writer *w, struct blk *b, uint64_t off)
{
    *w = (struct writer){.b = b, .off = off, .result = 1};
    assert_int_equal(pthread_create(&w->thread, NULL, write_one, w), 0);
}

static void wait_until_waiting(struct blk *b, unsigned n)
{
    for (unsigned i = 0; i < 20000 && vol_space_waiting(b) != n; i++)
        usleep(1000);
    assert_int_equal(vol_space_waiting(b), n);
}

static void a_write_without_room_waits_and_goes_on_when_there_is_some(void **state)
{
    struct stack s;
    struct writer w[2];
    unsigned char got;

    (void)state;
    open_stack(&s, vol_space_open, true);
    blk_fault_room(s.fault, 0);
    start_writer(&w[0], s.top, 0);
    start_writer(&w[1], s.top, 8192);
    wait_until_waiting(s.top, 2);
    assert_true(test_report_has(&s.rep, "writes wait"));
    assert_int_equal(s.rep.n_lines, 1);
    assert_int_equal(blk_read(s.top, &got, 1, 0), 0); /* reads go on */
    blk_fault_room(s.fault, SIZE);
    for (unsigned i = 0; i < 2; i++) {
        pthread_join(w[i].thread, NULL);
        assert_int_equal(w[i].result, 0);
    }
    assert_true(test_report_has(&s.rep, "writes go on"));
    assert_int_equal(blk_read(s.top, &got, 1, 8192), 0);
    assert_int_equal(got, 1);
    blk_close(s.top);
}

static void giving_up_ends_the_wait_with_the_error(void **state)
{
    struct stack s;
    struct writer w;

    (void)state;
    open_stack(&s, vol_space_open, true);
    blk_fault_room(s.fault, 0);
    start_writer(&w, s.top, 0);
    wait_until_waiting(s.top, 1);
    vol_space_set_wait(s.top, false);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.result, -ENOSPC);
    assert_int_equal(vol_space_waiting(s.top), 0);
    blk_close(s.top);
}

static void without_waiting_the_error_comes_at_once(void **state)
{
    struct stack s;
    unsigned char page[4096] = {0};

    (void)state;
    open_stack(&s, vol_space_open, false);
    blk_fault_room(s.fault, 0);
    assert_int_equal(blk_write(s.top, page, sizeof(page), 0), -ENOSPC);
    assert_int_equal(s.rep.n_lines, 0);
    blk_close(s.top);
}

static void other_errors_do_not_wait(void **state)
{
    struct stack s;
    struct blk_fault rule = {.ops = BLK_FAULT_WRITE, .err = EIO};
    unsigned char page[4096] = {0};

    (void)state;
    open_stack(&s, vol_space_open, true);
    blk_fault_add(s.fault, &rule);
    assert_int_equal(blk_write(s.top, page, sizeof(page), 0), -EIO);
    blk_close(s.top);
}

static void a_failed_flush_makes_the_volume_read_only_for_good(void **state)
{
    struct stack s;
    struct blk_fault rule = {.ops = BLK_FAULT_FLUSH, .err = ENOSPC, .times = 1};
    unsigned char byte = 1;

    (void)state;
    open_stack(&s, open_poison, false);
    assert_int_equal(blk_write(s.top, &byte, 1, 0), 0);
    assert_int_equal(blk_flush(s.top), 0);
    assert_false(vol_poison_struck(s.top));
    blk_fault_add(s.fault, &rule);
    assert_int_equal(blk_flush(s.top), -EIO);
    assert_true(vol_poison_struck(s.top));
    assert_true(test_report_has(&s.rep, "read-only"));
    assert_int_equal(blk_flush(s.top), -EIO); /* although below would say 0 now */
    assert_int_equal(blk_write(s.top, &byte, 1, 0), -EROFS);
    assert_int_equal(blk_discard(s.top, 1, 0), -EROFS);
    assert_int_equal(blk_write_zeroes(s.top, 1, 0), -EROFS);
    assert_int_equal(blk_read(s.top, &byte, 1, 0), 0);
    assert_int_equal(byte, 1);
    assert_int_equal(s.rep.n_lines, 1);
    blk_close(s.top);
}

struct flusher {
    struct blk *b;
    int result;
    pthread_t thread;
};

static void *flush_one(void *arg)
{
    struct flusher *f = arg;

    f->result = blk_flush(f->b);
    return NULL;
}

static void flush_from_threads(struct blk *b, struct flusher *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        f[i] = (struct flusher){.b = b, .result = 1};
        assert_int_equal(pthread_create(&f[i].thread, NULL, flush_one, &f[i]), 0);
        usleep(20000);
    }
    for (unsigned i = 0; i < n; i++)
        pthread_join(f[i].thread, NULL);
}

/* Below tells the error to one of them only, as the kernel does, and late. */
static void no_flush_beside_a_failed_one_says_that_all_is_well(void **state)
{
    struct stack s;
    struct blk_fault slow = {
        .ops = BLK_FAULT_FLUSH, .err = EIO, .times = 1, .delay_us = 200 * 1000};
    struct flusher f[3];

    (void)state;
    open_stack(&s, open_poison, false);
    blk_fault_add(s.fault, &slow);
    flush_from_threads(s.top, f, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(f[i].result, -EIO);
    assert_int_equal(s.rep.n_lines, 1);
    blk_close(s.top);
}

static void flushes_that_come_during_one_share_the_next(void **state)
{
    struct stack s;
    struct blk_fault slow = {.ops = BLK_FAULT_FLUSH, .delay_us = 400 * 1000};
    struct flusher f[5];

    (void)state;
    open_stack(&s, open_poison, false);
    blk_fault_add(s.fault, &slow);
    flush_from_threads(s.top, f, 5);
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(f[i].result, 0);
    assert_in_range(blk_fault_count(s.fault), 2, 3); /* 3: a thread that began late */
    blk_close(s.top);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_write_without_room_waits_and_goes_on_when_there_is_some),
        cmocka_unit_test(giving_up_ends_the_wait_with_the_error),
        cmocka_unit_test(without_waiting_the_error_comes_at_once),
        cmocka_unit_test(other_errors_do_not_wait),
        cmocka_unit_test(a_failed_flush_makes_the_volume_read_only_for_good),
        cmocka_unit_test(no_flush_beside_a_failed_one_says_that_all_is_well),
        cmocka_unit_test(flushes_that_come_during_one_share_the_next),
    };

    return cmocka_run_group_tests_name("space", tests, NULL, NULL);
}
