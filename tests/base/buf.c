/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/buf.h"
#include "base/auto.h"
#include "lib/test.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static void buffers_are_aligned_apart_and_writable(void **state)
{
    struct bufs *b = NULL;
    struct buf *all[5];

    (void)state;
    assert_int_equal(bufs_open(&b, 5, 5000), 0);
    for (int i = 0; i < 5; i++) {
        all[i] = buf_take(b);
        assert_int_equal(all[i]->size, 5000);
        assert_int_equal((uintptr_t)all[i]->bytes % 4096, 0);
        memset(all[i]->bytes, i + 1, 5000);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(all[i]->bytes[0], i + 1);
        assert_int_equal(all[i]->bytes[4999], i + 1);
        buf_drop(all[i]);
    }
    bufs_close(b);
    bufs_close(NULL);
}

static void the_last_one_used_is_the_next_one_out(void **state)
{
    struct bufs *b = NULL;
    struct buf *first, *second;

    (void)state;
    assert_int_equal(bufs_open(&b, 3, 4096), 0);
    first = buf_take(b);
    second = buf_take(b);
    buf_drop(first);
    assert_ptr_equal(buf_take(b), first);
    buf_drop(second);
    buf_drop(first);
    bufs_close(b);
}

struct wait {
    struct bufs *bufs;
    atomic_bool has;
};

static void *take_and_drop(void *arg)
{
    struct wait *w = arg;
    AUTO_BUF struct buf *mine = buf_take(w->bufs);

    atomic_store(&w->has, true);
    return mine->bytes;
}

static void taking_waits_until_one_is_back(void **state)
{
    struct wait w = {.bufs = NULL};
    struct buf *only;
    pthread_t thread;
    void *bytes;

    (void)state;
    assert_int_equal(bufs_open(&w.bufs, 1, 4096), 0);
    only = buf_take(w.bufs);
    assert_int_equal(pthread_create(&thread, NULL, take_and_drop, &w), 0);
    usleep(20000);
    assert_false(atomic_load(&w.has));
    bytes = only->bytes;
    buf_drop(only);

    void *got;

    assert_int_equal(pthread_join(thread, &got), 0);
    assert_ptr_equal(got, bytes);
    bufs_close(w.bufs);
}

/* Each writes what nobody else writes and finds it again. */
static void *use_many_times(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        AUTO_BUF struct buf *mine = buf_take(arg);

        memcpy(mine->bytes, &i, sizeof(i));
        memcpy(mine->bytes + 64, &(pthread_t){pthread_self()}, sizeof(pthread_t));
        if (memcmp(mine->bytes, &i, sizeof(i)) != 0 ||
            memcmp(mine->bytes + 64, &(pthread_t){pthread_self()}, sizeof(pthread_t)) != 0)
            return arg;
    }
    return NULL;
}

static void a_buffer_has_one_owner_at_a_time(void **state)
{
    struct bufs *b = NULL;
    pthread_t threads[6];
    void *wrong;

    (void)state;
    assert_int_equal(bufs_open(&b, 2, 128), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_many_times, b), 0);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    bufs_close(b);
}

static void more_than_there_is_memory_is_refused(void **state)
{
    struct bufs *b = NULL;

    (void)state;
    assert_int_equal(bufs_open(&b, 2, SIZE_MAX / 2), -ENOMEM);
    assert_int_equal(bufs_open(&b, 2, SIZE_MAX - 100), -ENOMEM);
    assert_int_equal(bufs_open(&b, 4, (size_t)1 << 60), -ENOMEM);
    assert_null(b);
}

/* Of this process. */
static size_t resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    unsigned long all, resident = 0;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%lu %lu", &all, &resident), 2);
    fclose(f);
    return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void what_is_never_taken_is_never_resident(void **state)
{
    struct bufs *b = NULL;
    size_t before = resident_kib();

    (void)state;
    assert_int_equal(bufs_open(&b, 256, 1 << 20), 0);
    assert_true(resident_kib() < before + 32 * 1024);
    bufs_close(b);
    assert_true(resident_kib() < before + 32 * 1024);
}

static void wiping_clears_what_was_used(void **state)
{
    struct bufs *b;
    struct buf *first, *second;

    (void)state;
    assert_int_equal(bufs_open(&b, 3, 8192), 0);
    first = buf_take(b);
    second = buf_take(b);
    memset(first->bytes, 1, first->size);
    memset(second->bytes, 2, second->size);
    buf_drop(second);
    bufs_wipe(b);
    for (size_t i = 0; i < first->size; i++)
        assert_int_equal(first->bytes[i] | second->bytes[i], 0);
    buf_drop(first);
    bufs_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_are_aligned_apart_and_writable),
        cmocka_unit_test(the_last_one_used_is_the_next_one_out),
        cmocka_unit_test(taking_waits_until_one_is_back),
        cmocka_unit_test(a_buffer_has_one_owner_at_a_time),
        cmocka_unit_test(more_than_there_is_memory_is_refused),
        cmocka_unit_test(what_is_never_taken_is_never_resident),
        cmocka_unit_test(wiping_clears_what_was_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
