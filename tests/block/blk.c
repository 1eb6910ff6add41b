/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/blk.h"
#include "lib/test.h"

/* A layer that counts its calls: what the checks let through, and in what order layers close. */

#include <errno.h>
#include <string.h>

struct spy {
    struct blk blk;
    unsigned n_calls;
    uint64_t len, off; /* of the last call */
    struct blk_extent extent;
    int *n_closed; /* counts up; closed_as is its value then */
    int closed_as;
    struct blk *above; /* whose size resize is to see */
    uint64_t above_size;
    int resize_fails;
};

static int spy_called(struct blk *b, uint64_t len, uint64_t off)
{
    struct spy *s = container_of(b, struct spy, blk);

    s->n_calls++;
    s->len = len;
    s->off = off;
    return 0;
}

static int spy_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    (void)buf;
    return spy_called(b, len, off);
}

static int spy_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    (void)buf;
    return spy_called(b, len, off);
}

static int spy_flush(struct blk *b)
{
    return spy_called(b, 0, 0);
}

static int spy_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    *ret = container_of(b, struct spy, blk)->extent;
    return spy_called(b, 0, off);
}

static int spy_stat(struct blk *b, struct blk_stat *ret)
{
    *ret = (struct blk_stat){.allocated = 7};
    return spy_called(b, 0, 0);
}

static int spy_resize(struct blk *b, uint64_t size)
{
    struct spy *s = container_of(b, struct spy, blk);

    s->above_size = s->above != NULL ? s->above->size : 0;
    if (s->resize_fails < 0)
        return s->resize_fails;
    b->size = size;
    return spy_called(b, size, 0);
}

static void spy_close(struct blk *b)
{
    struct spy *s = container_of(b, struct spy, blk);

    s->closed_as = ++*s->n_closed;
}

static const struct blk_ops spy_ops = {
    .name = "spy",
    .read = spy_read,
    .write = spy_write,
    .flush = spy_flush,
    .discard = spy_called,
    .write_zeroes = spy_called,
    .extent = spy_extent,
    .stat = spy_stat,
    .resize = spy_resize,
    .close = spy_close,
};

static const struct blk_ops pass_ops = {
    .name = "pass",
    .read = blk_pass_read,
    .write = blk_pass_write,
    .flush = blk_pass_flush,
    .discard = blk_pass_discard,
    .write_zeroes = blk_pass_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = blk_pass_resize,
    .close = spy_close,
};

static struct spy spy_with(uint64_t size, uint32_t granule)
{
    return (struct spy){.blk = {.ops = &spy_ops, .size = size, .granule = granule}};
}

static void only_whole_granules_pass(void **state)
{
    struct spy s = spy_with(65536, 4096);
    unsigned char buf[8192];
    struct blk_extent e;

    (void)state;
    assert_int_equal(blk_read(&s.blk, buf, 4095, 0), -EINVAL);
    assert_int_equal(blk_read(&s.blk, buf, 4096, 512), -EINVAL);
    assert_int_equal(blk_write(&s.blk, buf, 512, 4096), -EINVAL);
    assert_int_equal(blk_discard(&s.blk, 4097, 0), -EINVAL);
    assert_int_equal(blk_write_zeroes(&s.blk, 4096, 1), -EINVAL);
    assert_int_equal(blk_extent(&s.blk, 1, &e), -EINVAL);
    assert_int_equal(s.n_calls, 0);
    assert_int_equal(blk_read(&s.blk, buf, 8192, 4096), 0);
    assert_int_equal(s.n_calls, 1);
    assert_int_equal(s.len, 8192);
    assert_int_equal(s.off, 4096);
}

static void nothing_beyond_the_end_passes(void **state)
{
    struct spy s = spy_with(65536, 1);
    unsigned char buf[2];
    struct blk_extent e;

    (void)state;
    assert_int_equal(blk_read(&s.blk, buf, 2, 65535), -EINVAL);
    assert_int_equal(blk_write(&s.blk, buf, 1, 65536), -EINVAL);
    assert_int_equal(blk_write(&s.blk, buf, 0, 65537), -EINVAL);
    assert_int_equal(blk_discard(&s.blk, UINT64_MAX, 1), -EINVAL);
    assert_int_equal(blk_write_zeroes(&s.blk, 1, UINT64_MAX), -EINVAL);
    assert_int_equal(blk_extent(&s.blk, 65536, &e), -EINVAL);
    assert_int_equal(s.n_calls, 0);
    assert_int_equal(blk_write(&s.blk, buf, 1, 65535), 0);
    assert_int_equal(s.n_calls, 1);
}

static void who_has_nothing_to_lend_reads(void **state)
{
    struct spy s = spy_with(65536, 512);
    unsigned char buf[1024];
    struct blk_loan loan;

    (void)state;
    assert_int_equal(blk_lend(&s.blk, &loan, buf, 1024, 512), 0);
    assert_int_equal(s.n_calls, 1);
    assert_int_equal(s.len, 1024);
    assert_int_equal(s.off, 512);
    assert_int_equal(loan.n, 1);
    assert_ptr_equal(loan.parts[0].iov_base, buf);
    assert_int_equal(loan.parts[0].iov_len, 1024);
    blk_loan_end(&loan);
    assert_int_equal(blk_lend(&s.blk, &loan, buf, 1023, 0), -EINVAL);
    assert_int_equal(s.n_calls, 1);
}

static void no_bytes_is_no_request(void **state)
{
    struct spy s = spy_with(65536, 512);

    (void)state;
    assert_int_equal(blk_read(&s.blk, NULL, 0, 65536), 0);
    assert_int_equal(blk_write(&s.blk, NULL, 0, 0), 0);
    assert_int_equal(blk_discard(&s.blk, 0, 512), 0);
    assert_int_equal(blk_write_zeroes(&s.blk, 0, 512), 0);
    assert_int_equal(s.n_calls, 0);
}

static void read_only_refuses_changes_and_flushes_on(void **state)
{
    struct spy s = spy_with(65536, 1);
    unsigned char byte = 0;

    (void)state;
    s.blk.read_only = true;
    assert_int_equal(blk_write(&s.blk, &byte, 1, 0), -EROFS);
    assert_int_equal(blk_discard(&s.blk, 1, 0), -EROFS);
    assert_int_equal(blk_write_zeroes(&s.blk, 1, 0), -EROFS);
    assert_int_equal(s.n_calls, 0);
    assert_int_equal(blk_read(&s.blk, &byte, 1, 0), 0);
    assert_int_equal(blk_flush(&s.blk), 0);
    assert_int_equal(s.n_calls, 2);
}

static void every_op_passes_down(void **state)
{
    struct spy s = spy_with(65536, 512);
    struct blk top = {.ops = &pass_ops, .below = &s.blk, .size = 65536, .granule = 512};
    unsigned char buf[512];
    struct blk_extent e;
    struct blk_stat st;

    (void)state;
    s.extent = (struct blk_extent){.end = 1024, .hole = true};
    assert_int_equal(blk_read(&top, buf, 512, 512), 0);
    assert_int_equal(blk_write(&top, buf, 512, 512), 0);
    assert_int_equal(blk_flush(&top), 0);
    assert_int_equal(blk_discard(&top, 512, 512), 0);
    assert_int_equal(blk_write_zeroes(&top, 512, 512), 0);
    assert_int_equal(blk_extent(&top, 512, &e), 0);
    assert_int_equal(e.end, 1024);
    assert_true(e.hole);
    assert_int_equal(blk_stat(&top, &st), 0);
    assert_int_equal(st.allocated, 7);
    assert_int_equal(s.n_calls, 7);
}

static void an_extent_ends_with_the_layer(void **state)
{
    struct spy s = spy_with(65536, 512);
    struct blk top = {.ops = &pass_ops, .below = &s.blk, .size = 8192, .granule = 512};
    struct blk_extent e;

    (void)state;
    s.extent = (struct blk_extent){.end = 65536};
    assert_int_equal(blk_extent(&top, 0, &e), 0);
    assert_int_equal(e.end, 8192);
}

static void a_new_size_is_checked_first(void **state)
{
    struct spy s = spy_with(65536, 512);

    (void)state;
    assert_int_equal(blk_resize(&s.blk, 65537), -EINVAL);
    assert_int_equal(blk_resize(&s.blk, 65536), 0);
    s.blk.read_only = true;
    assert_int_equal(blk_resize(&s.blk, 4096), -EROFS);
    assert_int_equal(s.n_calls, 0);
    assert_int_equal(s.blk.size, 65536);
}

/* So that at no moment a layer is larger than what it stands on. */
static void growing_begins_below_and_shrinking_above(void **state)
{
    struct spy s = spy_with(65536, 512);
    struct blk top = {.ops = &pass_ops, .below = &s.blk, .size = 65536, .granule = 512};

    (void)state;
    s.above = &top;
    assert_int_equal(blk_resize(&top, 131072), 0);
    assert_int_equal(s.above_size, 65536);
    assert_int_equal(top.size, 131072);
    assert_int_equal(s.blk.size, 131072);
    assert_int_equal(blk_resize(&top, 4096), 0);
    assert_int_equal(s.above_size, 4096);
    assert_int_equal(top.size, 4096);
    assert_int_equal(s.blk.size, 4096);
    s.resize_fails = -ENOMEM;
    assert_int_equal(blk_resize(&top, 8192), -ENOMEM);
    assert_int_equal(top.size, 4096);
}

static void close_goes_from_the_top_down(void **state)
{
    int n_closed = 0;
    struct spy bottom = spy_with(4096, 1), middle = bottom, top = bottom;

    (void)state;
    bottom.n_closed = middle.n_closed = top.n_closed = &n_closed;
    middle.blk.below = &bottom.blk;
    top.blk.below = &middle.blk;
    blk_close(&top.blk);
    assert_int_equal(top.closed_as, 1);
    assert_int_equal(middle.closed_as, 2);
    assert_int_equal(bottom.closed_as, 3);
    blk_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_whole_granules_pass),
        cmocka_unit_test(nothing_beyond_the_end_passes),
        cmocka_unit_test(who_has_nothing_to_lend_reads),
        cmocka_unit_test(no_bytes_is_no_request),
        cmocka_unit_test(read_only_refuses_changes_and_flushes_on),
        cmocka_unit_test(every_op_passes_down),
        cmocka_unit_test(an_extent_ends_with_the_layer),
        cmocka_unit_test(a_new_size_is_checked_first),
        cmocka_unit_test(growing_begins_below_and_shrinking_above),
        cmocka_unit_test(close_goes_from_the_top_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
