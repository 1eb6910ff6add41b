/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/readahead.c: sequential readers are found, several at once and out of order a
 * little; random ones are left alone; nobody sees old data after a write returned; errors reach who
 * asked. Over a real file, because pieces are filled while neighbours in them change, which a page
 * cache may do and a memcpy may not. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "block/fault.h"
#include "block/file.h"
#include "volume/align.h"
#include "volume/readahead.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1024 * 1024, SIZE = 16 * MIB + 4096 };

struct stack {
    struct pool *pool;
    struct blk *fault, *readahead, *top;
    unsigned char *content;
};

static void open_stack(struct stack *s, unsigned threads, uint64_t max)
{
    char path[] = "/tmp/readahead-XXXXXX";
    int fd = mkstemp(path);
    struct blk_file_spec spec = {.path = path};
    struct blk *file = NULL;
    uint64_t seed = test_seed();

    s->content = malloc(SIZE);
    test_random_bytes(&seed, s->content, SIZE);
    assert_int_equal(write(fd, s->content, SIZE), SIZE);
    close(fd);
    assert_int_equal(blk_file_open(&file, &spec, NULL, NULL), 0);
    unlink(path);
    assert_int_equal(pool_open(&s->pool, threads, NULL), 0);
    assert_int_equal(blk_fault_open(&s->fault, file), 0);
    assert_int_equal(vol_readahead_open(&s->readahead, s->fault, s->pool, max, NULL), 0);
    assert_int_equal(vol_align_open(&s->top, s->readahead, 16, NULL), 0);
}

static void close_stack(struct stack *s)
{
    blk_close(s->top);
    pool_close(s->pool);
    free(s->content);
}

static void read_and_check(struct stack *s, size_t len, uint64_t off)
{
    unsigned char *buf = malloc(len);

    assert_int_equal(blk_read(s->top, buf, len, off), 0);
    assert_memory_equal(buf, s->content + off, len);
    free(buf);
}

static void a_sequential_reader_finds_its_data_ready(void **state)
{
    static const size_t lengths[] = {MIB, 128 * 1024, 16 * 1024, 100 * 1024 + 1, 3 * MIB};

    (void)state;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct vol_readahead_stats stats;
        struct stack s;
        struct blk_fault slow = {.ops = BLK_FAULT_READ, .delay_us = 500};

        open_stack(&s, 3, 4 * MIB);
        blk_fault_add(s.fault, &slow); /* as a disk is; or a reader is always faster */
        for (uint64_t off = 0; off < SIZE; off += lengths[i]) {
            size_t len = SIZE - off < lengths[i] ? (size_t)(SIZE - off) : lengths[i];

            read_and_check(&s, len, off);
            usleep(200);
        }
        vol_readahead_stats(s.readahead, &stats);
        assert_true(stats.used > MIB);
        assert_true(stats.used <= stats.prepared);
        close_stack(&s);
    }
}

static void a_random_reader_is_left_alone(void **state)
{
    struct vol_readahead_stats stats;
    struct stack s;
    uint64_t seed = test_seed();

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    /* far apart, so that no two of them look like a sequence */
    for (unsigned n = 0; n < 500; n++)
        read_and_check(&s, 512, (test_random(&seed) % 16 + n % 16 * 61) % 256 * 65536);
    vol_readahead_stats(s.readahead, &stats);
    assert_int_equal(stats.prepared, 0);
    close_stack(&s);
}

struct reader {
    struct stack *s;
    uint64_t from, to;
    atomic_int *wrong;
    pthread_t thread;
};

static void *read_range(void *arg)
{
    struct reader *r = arg;
    unsigned char *buf = malloc(65536);

    for (uint64_t off = r->from; off < r->to; off += 65536)
        if (blk_read(r->s->top, buf, 65536, off) != 0 ||
            memcmp(buf, r->s->content + off, 65536) != 0)
            atomic_store(r->wrong, 1);
    free(buf);
    return NULL;
}

static void several_streams_at_once_are_right(void **state)
{
    struct stack s;
    struct reader r[4];
    atomic_int wrong = 0;
    struct vol_readahead_stats stats;
    struct blk_fault slow = {.ops = BLK_FAULT_READ, .delay_us = 300};

    (void)state;
    open_stack(&s, 6, 4 * MIB);
    blk_fault_add(s.fault, &slow);
    for (unsigned i = 0; i < 4; i++) {
        r[i] = (struct reader){&s, i * 4 * (uint64_t)MIB, (i + 1) * 4 * (uint64_t)MIB, &wrong, 0};
        assert_int_equal(pthread_create(&r[i].thread, NULL, read_range, &r[i]), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(r[i].thread, NULL);
    assert_int_equal(atomic_load(&wrong), 0);
    vol_readahead_stats(s.readahead, &stats);
    assert_true(stats.used > 0);
    close_stack(&s);
}

/* The kernel hands neighbouring requests to several threads, which may swap them. */
static void a_stream_that_is_a_little_out_of_order_is_one(void **state)
{
    struct vol_readahead_stats stats;
    struct stack s;
    struct blk_fault slow = {.ops = BLK_FAULT_READ, .delay_us = 300};

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    blk_fault_add(s.fault, &slow);
    for (unsigned n = 0; n < 16 * MIB / 65536; n++)
        read_and_check(&s, 65536, (uint64_t)(n ^ 1) * 65536);
    vol_readahead_stats(s.readahead, &stats);
    assert_true(stats.used > MIB);
    close_stack(&s);
}

static void any_operations_equal_an_array(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned threads = 2; threads <= 4; threads++) {
        struct stack s;
        struct crowd_spec m;

        open_stack(&s, threads, 512 * 1024);
        m = (struct crowd_spec){.blk = s.top,
                                .seed = seed + threads,
                                .n_threads = 4,
                                .n_ops = 150,
                                .max_len = 300001,
                                .granule = 1,
                                .zeros = 1};
        crowd_run(&m);
        close_stack(&s);
    }
}

static unsigned n_lent(const struct blk_loan *loan)
{
    unsigned n = 0;

    for (unsigned i = 0; i < loan->n; i++)
        n += loan->keep[i] != NULL;
    return n;
}

static void check_loan(const struct blk_loan *loan, const unsigned char *content, size_t len)
{
    size_t done = 0;

    for (unsigned i = 0; i < loan->n; i++) {
        assert_memory_equal(loan->parts[i].iov_base, content + done, loan->parts[i].iov_len);
        done += loan->parts[i].iov_len;
    }
    assert_int_equal(done, len);
}

static void what_was_lent_stays_while_it_is_written_over(void **state)
{
    enum { LEN = 256 * 1024 };
    struct stack s;
    struct blk_loan loan;
    unsigned char *buf = malloc(LEN), *zeros = calloc(1, LEN), *old = malloc(LEN);
    unsigned n = 0;

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    for (uint64_t off = 0; off + LEN <= SIZE; off += LEN) {
        assert_int_equal(blk_lend(s.top, &loan, buf, LEN, off), 0);
        n += n_lent(&loan);
        memcpy(old, s.content + off, LEN);
        assert_int_equal(blk_write(s.top, zeros, LEN, off), 0);
        memset(s.content + off, 0, LEN);
        read_and_check(&s, LEN, off);
        check_loan(&loan, old, LEN);
        blk_loan_end(&loan);
        usleep(1000);
    }
    assert_true(n > 8);
    /* and nothing is left that a later reader could see */
    for (uint64_t off = 0; off + LEN <= SIZE; off += LEN)
        read_and_check(&s, LEN, off);
    close_stack(&s);
    free(buf);
    free(zeros);
    free(old);
}

struct forgetful {
    struct stack *s;
    atomic_bool ended;
};

/* Returns NULL when the loan had ended. */
static void *forget_all(void *arg)
{
    static char early[] = "the bytes of a loan were wiped";
    struct forgetful *f = arg;

    vol_readahead_forget(f->s->readahead);
    return atomic_load(&f->ended) ? NULL : early;
}

static void who_forgets_waits_for_what_is_lent(void **state)
{
    unsigned char *buf = malloc(MIB);
    struct stack s;
    struct forgetful f = {.s = &s};
    struct blk_loan loan = {.n = 0};
    uint64_t off = 0;
    pthread_t thread;
    void *said;

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    for (; n_lent(&loan) == 0; off += MIB) {
        blk_loan_end(&loan);
        assert_true(off + MIB <= SIZE);
        assert_int_equal(blk_lend(s.top, &loan, buf, MIB, off), 0);
        usleep(1000);
    }
    assert_int_equal(pthread_create(&thread, NULL, forget_all, &f), 0);
    usleep(10000);
    check_loan(&loan, s.content + off - MIB, MIB);
    atomic_store(&f.ended, true);
    blk_loan_end(&loan);
    pthread_join(thread, &said);
    assert_null(said);
    read_and_check(&s, MIB, 0);
    close_stack(&s);
    free(buf);
}

static void loans_of_any_place_and_length_are_right(void **state)
{
    static const size_t lengths[] = {4096, 128 * 1024, 200 * 1024 + 1, MIB, 3 * MIB};
    unsigned char *buf = malloc(3 * MIB);

    (void)state;
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct stack s;

        open_stack(&s, 3, 1 * MIB);
        for (uint64_t off = i * 512; off < SIZE; off += lengths[i]) {
            size_t len = SIZE - off < lengths[i] ? (size_t)(SIZE - off) : lengths[i];
            struct blk_loan loan;

            assert_int_equal(blk_lend(s.top, &loan, buf, len, off), 0);
            check_loan(&loan, s.content + off, len);
            blk_loan_end(&loan);
        }
        close_stack(&s);
    }
    free(buf);
}

static uint64_t used_in_one_pass(struct stack *s)
{
    struct vol_readahead_stats before, after;

    vol_readahead_stats(s->readahead, &before);
    for (uint64_t off = 0; off < SIZE; off += MIB) {
        read_and_check(s, SIZE - off < MIB ? (size_t)(SIZE - off) : MIB, off);
        usleep(3000);
    }
    vol_readahead_stats(s->readahead, &after);
    return after.used - before.used;
}

/* Where an earlier reader ended, its stream waits for more; who comes by is not taken for it. */
static void reading_again_finds_as_much_ready(void **state)
{
    struct stack s;

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    for (unsigned pass = 0; pass < 4; pass++)
        assert_true(used_in_one_pass(&s) > 10 * MIB);
    close_stack(&s);
}

/* A writer raises the version of one block after the other; once a write has returned, a reader
 * must see that version or a later one. Readers go through the disk in order, so that every block
 * they read may have been prepared before it was written. */
enum { BLOCK = 4096, N_BLOCKS = 512 };

struct versions {
    struct stack *s;
    atomic_uint written[N_BLOCKS];
    atomic_bool stop;
    atomic_uint wrong, seen;
};

static void *raise_versions(void *arg)
{
    struct versions *v = arg;
    unsigned char buf[BLOCK];
    uint64_t seed = 1;

    for (unsigned n = 1; !atomic_load(&v->stop); n++) {
        unsigned b = (unsigned)(test_random(&seed) % N_BLOCKS);

        for (size_t i = 0; i < BLOCK; i += sizeof(n))
            memcpy(buf + i, &n, sizeof(n));
        if (blk_write(v->s->top, buf, BLOCK, (uint64_t)b * BLOCK) != 0)
            atomic_fetch_add(&v->wrong, 1);
        atomic_store(&v->written[b], n);
    }
    return NULL;
}

static void check_block(struct versions *v, const unsigned char *buf, unsigned least)
{
    unsigned first;

    memcpy(&first, buf, sizeof(first));
    if (first < least || memcmp(buf, buf + sizeof(first), BLOCK - sizeof(first)) != 0)
        atomic_fetch_add(&v->wrong, 1);
    if (least > 0)
        atomic_fetch_add(&v->seen, 1);
}

static int read_by_loan(struct blk *b, unsigned char *buf, size_t len, uint64_t off)
{
    struct blk_loan loan;
    int r = blk_lend(b, &loan, buf, len, off);

    for (unsigned i = 0; r == 0 && i < loan.n; i++) {
        memmove(buf, loan.parts[i].iov_base, loan.parts[i].iov_len);
        buf += loan.parts[i].iov_len;
    }
    if (r == 0)
        blk_loan_end(&loan);
    return r;
}

static void *follow_versions(void *arg)
{
    enum { AT_ONCE = 8 };
    struct versions *v = arg;
    unsigned char *buf = malloc(AT_ONCE * BLOCK);

    for (unsigned round = 0; round < 40; round++)
        for (unsigned b = 0; b < N_BLOCKS; b += AT_ONCE) {
            unsigned least[AT_ONCE];
            int err;

            for (unsigned i = 0; i < AT_ONCE; i++)
                least[i] = atomic_load(&v->written[b + i]);
            if (round % 2 == 0)
                err = blk_read(v->s->top, buf, AT_ONCE * BLOCK, (uint64_t)b * BLOCK);
            else
                err = read_by_loan(v->s->top, buf, AT_ONCE * BLOCK, (uint64_t)b * BLOCK);
            if (err != 0)
                atomic_fetch_add(&v->wrong, 1);
            for (unsigned i = 0; i < AT_ONCE; i++)
                check_block(v, buf + i * BLOCK, least[i]);
        }
    free(buf);
    return NULL;
}

static void nobody_sees_old_data_after_a_write_returned(void **state)
{
    struct stack s;
    struct versions *v = calloc(1, sizeof(*v));
    unsigned char *zeros = calloc(N_BLOCKS, BLOCK);
    struct vol_readahead_stats stats;
    pthread_t writer, readers[2];

    (void)state;
    open_stack(&s, 3, 1 * MIB);
    v->s = &s;
    assert_int_equal(blk_write(s.top, zeros, N_BLOCKS * BLOCK, 0), 0);
    assert_int_equal(pthread_create(&writer, NULL, raise_versions, v), 0);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, follow_versions, v), 0);
    for (unsigned i = 0; i < 2; i++)
        pthread_join(readers[i], NULL);
    atomic_store(&v->stop, true);
    pthread_join(writer, NULL);
    vol_readahead_stats(s.readahead, &stats);
    assert_int_equal(atomic_load(&v->wrong), 0);
    assert_true(atomic_load(&v->seen) > 1000);
    assert_true(stats.prepared > 0);
    close_stack(&s);
    free(zeros);
    free(v);
}

static void an_error_reaches_who_asks_for_it_and_nobody_else(void **state)
{
    struct stack s;
    struct blk_fault rule = {.ops = BLK_FAULT_READ, .off = 5 * MIB, .len = 4096, .err = EIO};
    unsigned char *buf = malloc(65536);

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    blk_fault_add(s.fault, &rule);
    for (uint64_t off = 0; off < 8 * MIB; off += 65536) {
        int r = blk_read(s.top, buf, 65536, off);

        assert_int_equal(r, off == 5 * MIB ? -EIO : 0);
        if (r == 0)
            assert_memory_equal(buf, s.content + off, 65536);
    }
    blk_fault_clear(s.fault);
    read_and_check(&s, 65536, 5 * MIB);
    free(buf);
    close_stack(&s);
}

static void closing_with_work_under_way_waits_for_it(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 20; n++) {
        struct stack s;
        struct blk_fault slow = {.ops = BLK_FAULT_READ, .delay_us = 2000};

        open_stack(&s, 3, 4 * MIB);
        for (unsigned i = 0; i < 4; i++)
            read_and_check(&s, 16384, i * 16384);
        blk_fault_add(s.fault, &slow);
        read_and_check(&s, 16384, 4 * 16384);
        close_stack(&s);
    }
}

/* The last piece of the disk is a short one; when the disk grows it must not be taken for a whole
 * one. */
static void what_was_prepared_does_not_outlive_the_size(void **state)
{
    unsigned char *buf = malloc(MIB);
    struct stack s;

    (void)state;
    open_stack(&s, 3, 4 * MIB);
    for (unsigned n = 0; n < 10; n++) {
        for (uint64_t off = SIZE - MIB - 4096; off + 65536 <= SIZE; off += 65536)
            read_and_check(&s, 65536, off);
        assert_int_equal(blk_resize(s.top, SIZE - 4096), 0);
        assert_int_equal(s.readahead->size, SIZE - 4096);
        for (uint64_t off = SIZE - MIB - 4096; off + 65536 <= SIZE - 4096; off += 16384)
            read_and_check(&s, 16384, off);
        assert_int_equal(blk_resize(s.top, SIZE), 0);
        assert_int_equal(blk_read(s.top, buf, MIB, SIZE - MIB), 0);
        assert_memory_equal(buf, s.content + SIZE - MIB, MIB);
    }
    close_stack(&s);
    free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequential_reader_finds_its_data_ready),
        cmocka_unit_test(a_random_reader_is_left_alone),
        cmocka_unit_test(several_streams_at_once_are_right),
        cmocka_unit_test(a_stream_that_is_a_little_out_of_order_is_one),
        cmocka_unit_test(any_operations_equal_an_array),
        cmocka_unit_test(what_was_lent_stays_while_it_is_written_over),
        cmocka_unit_test(who_forgets_waits_for_what_is_lent),
        cmocka_unit_test(loans_of_any_place_and_length_are_right),
        cmocka_unit_test(reading_again_finds_as_much_ready),
        cmocka_unit_test(nobody_sees_old_data_after_a_write_returned),
        cmocka_unit_test(an_error_reaches_who_asks_for_it_and_nobody_else),
        cmocka_unit_test(closing_with_work_under_way_waits_for_it),
        cmocka_unit_test(what_was_prepared_does_not_outlive_the_size),
    };

    return cmocka_run_group_tests_name("readahead", tests, NULL, NULL);
}
