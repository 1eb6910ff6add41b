/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/crowd.h"

#include "lib/test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shared {
    const struct crowd_spec *spec;
    unsigned char *array; /* each byte is written by the thread that owns its stripe only */
    size_t stripe;
};

struct worker {
    struct shared *s;
    pthread_t thread;
    unsigned number;
    uint64_t random;
    char said[160]; /* empty: all went well */
};

/* A random range inside one stripe of this thread's. */
static void pick(struct worker *w, uint64_t *off, size_t *len)
{
    const struct crowd_spec *spec = w->s->spec;
    uint64_t n_stripes = spec->blk->size / w->s->stripe;
    uint64_t n_mine = (n_stripes - w->number + spec->n_threads - 1) / spec->n_threads;
    uint64_t stripe = test_random(&w->random) % n_mine * spec->n_threads + w->number;
    uint64_t n_granules = w->s->stripe / spec->granule;
    uint64_t first = test_random(&w->random) % n_granules;
    uint64_t most = n_granules - first;

    if (most > spec->max_len / spec->granule)
        most = spec->max_len / spec->granule;
    *off = stripe * w->s->stripe + first * spec->granule;
    *len = (size_t)((1 + test_random(&w->random) % most) * spec->granule);
}

static int change(struct worker *w, unsigned char *buf, size_t len, uint64_t off)
{
    struct blk *b = w->s->spec->blk;
    unsigned what = w->s->spec->zeros ? (unsigned)(test_random(&w->random) % 8) : 2;

    if (what > 1) {
        test_random_bytes(&w->random, buf, len);
        memcpy(w->s->array + off, buf, len);
        return blk_write(b, buf, len, off);
    }
    memset(w->s->array + off, 0, len);
    return what == 0 ? blk_discard(b, len, off) : blk_write_zeroes(b, len, off);
}

static int look(struct worker *w, unsigned char *buf, size_t len, uint64_t off)
{
    int r = blk_read(w->s->spec->blk, buf, len, off);

    if (r == 0 && memcmp(buf, w->s->array + off, len) != 0)
        snprintf(w->said, sizeof(w->said), "thread %u: %zu bytes at %llu are not what was written",
                 w->number, len, (unsigned long long)off);
    return r;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    unsigned char *buf = malloc(w->s->spec->max_len);

    for (unsigned n = 0; n < w->s->spec->n_ops && w->said[0] == '\0'; n++) {
        uint64_t off;
        size_t len;
        int r;

        pick(w, &off, &len);
        if (test_random(&w->random) % 64 == 0)
            r = blk_flush(w->s->spec->blk);
        else if (test_random(&w->random) % 2)
            r = change(w, buf, len, off);
        else
            r = look(w, buf, len, off);
        if (r < 0)
            snprintf(w->said, sizeof(w->said), "thread %u: %zu bytes at %llu: error %d", w->number,
                     len, (unsigned long long)off, r);
    }
    free(buf);
    return NULL;
}

void crowd_run(const struct crowd_spec *spec)
{
    struct shared s = {.spec = spec};
    struct worker *workers = calloc(spec->n_threads, sizeof(*workers));
    unsigned char *got = malloc(spec->blk->size);

    /* odd in granules, and about the longest operation long */
    s.stripe = (spec->max_len / spec->granule | 1) * spec->granule;
    s.array = malloc(spec->blk->size);
    assert_true(spec->blk->size / s.stripe >= spec->n_threads);
    assert_int_equal(blk_read(spec->blk, s.array, spec->blk->size, 0), 0);
    for (unsigned i = 0; i < spec->n_threads; i++) {
        workers[i] = (struct worker){.s = &s, .number = i, .random = spec->seed + i * 7919};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < spec->n_threads; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_string_equal(workers[i].said, "");
    }
    assert_int_equal(blk_read(spec->blk, got, spec->blk->size, 0), 0);
    assert_memory_equal(got, s.array, spec->blk->size);
    free(got);
    free(s.array);
    free(workers);
}
