/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/model.h"
#include "base/bytes.h"
#include "lib/test.h"

#include <stdio.h>
#include <string.h>

struct model {
    struct blk *b;
    unsigned char *array;
    unsigned char *buf; /* of the operation at hand, at an odd address now and then */
    uint64_t len, off;
    unsigned n;
};

static void model_check(const struct model *m, const char *what, bool fine)
{
    if (!fine)
        fail_msg("operation %u: %s of %llu bytes at %llu", m->n, what, (unsigned long long)m->len,
                 (unsigned long long)m->off);
}

static void model_done(const struct model *m, const char *what, int r)
{
    if (r < 0)
        fail_msg("operation %u: %s of %llu bytes at %llu: %s", m->n, what,
                 (unsigned long long)m->len, (unsigned long long)m->off, strerror(-r));
}

/* A hole must be zeros, whatever is said about its end must make progress. */
static void model_extent(struct model *m)
{
    struct blk_extent e;

    if (m->off == m->b->size)
        return;
    model_done(m, "extent", blk_extent(m->b, m->off, &e));
    model_check(m, "the end of an extent",
                e.end > m->off && e.end <= m->b->size && e.end % m->b->granule == 0);
    model_check(m, "a hole that is none",
                !e.hole || bytes_are_zero(m->array + m->off, e.end - m->off));
}

static void model_step(struct model *m, uint64_t *state)
{
    unsigned char *at = m->array + m->off;

    switch (test_random(state) % 8) {
    case 0:
    case 1:
    case 2:
        model_done(m, "read", blk_read(m->b, m->buf, m->len, m->off));
        model_check(m, "wrong bytes in a read", memcmp(m->buf, at, m->len) == 0);
        break;
    case 3:
    case 4:
        test_random_bytes(state, m->buf, m->len);
        memcpy(at, m->buf, m->len);
        model_done(m, "write", blk_write(m->b, m->buf, m->len, m->off));
        break;
    case 5:
        memset(at, 0, m->len);
        model_done(m, "discard", blk_discard(m->b, m->len, m->off));
        break;
    case 6:
        memset(at, 0, m->len);
        model_done(m, "write_zeroes", blk_write_zeroes(m->b, m->len, m->off));
        break;
    default:
        model_extent(m);
        if (m->n % 16 == 0)
            model_done(m, "flush", blk_flush(m->b));
    }
}

void test_against_array(struct blk *b, uint64_t *state, unsigned n_ops, size_t max)
{
    AUTO_FREE unsigned char *array = malloc(b->size), *buf = malloc(max + 64),
                            *all = malloc(b->size);
    struct model m = {.b = b, .array = array};

    assert_non_null(array);
    assert_non_null(buf);
    assert_non_null(all);
    assert_int_equal(blk_read(b, array, b->size, 0), 0);
    for (m.n = 0; m.n < n_ops; m.n++) {
        uint64_t left;

        m.off = bytes_round_down(test_random(state) % (b->size + 1), b->granule);
        left = b->size - m.off < max ? b->size - m.off : max;
        m.len = bytes_round_down(test_random(state) % (left + 1), b->granule);
        m.buf = buf + test_random(state) % 64;
        model_step(&m, state);
    }
    assert_int_equal(blk_read(b, all, b->size, 0), 0);
    assert_memory_equal(all, array, b->size);
}
