/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/ends.h"
#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "lib/model.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { MIB = 1024 * 1024, LEN = 100000 };

static struct blk *memory(uint64_t size, int byte)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, size, 1), 0);
    memset(blk_memory_bytes(b), byte, size);
    return b;
}

static struct blk *ends(uint64_t size)
{
    struct blk *b = NULL;

    assert_int_equal(vol_ends_open(&b, size, LEN, NULL), 0);
    return b;
}

static void both_ends_are_bytes_and_the_middle_is_nothing(void **state)
{
    const uint64_t size = UINT64_C(1) << 50;
    AUTO_BLK struct blk *b = ends(size);
    unsigned char buf[4];

    (void)state;
    assert_int_equal(blk_write(b, "head", 4, LEN - 4), 0);
    assert_int_equal(blk_write(b, "tail", 4, size - LEN), 0);
    assert_int_equal(blk_write(b, "last", 4, size - 4), 0);
    assert_int_equal(blk_read(b, buf, 4, LEN - 4), 0);
    assert_memory_equal(buf, "head", 4);
    assert_int_equal(blk_read(b, buf, 4, size - LEN), 0);
    assert_memory_equal(buf, "tail", 4);
    assert_int_equal(blk_write_zeroes(b, 2, size - 4), 0);
    assert_int_equal(blk_read(b, buf, 4, size - 4), 0);
    assert_memory_equal(buf, "\0\0st", 4);
    assert_int_equal(blk_read(b, buf, 4, LEN - 3), -EIO);
    assert_int_equal(blk_write(b, "x", 1, size / 2), -EIO);
    assert_int_equal(blk_write_zeroes(b, 4, size - LEN - 1), -EIO);
    assert_int_equal(blk_flush(b), 0);
}

static void a_small_container_is_here_as_a_whole(void **state)
{
    static const uint64_t sizes[] = {1, 4096, LEN, 2 * LEN};
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        AUTO_BLK struct blk *b = ends(sizes[i]);
        AUTO_BLK struct blk *to = memory(sizes[i], 0);
        AUTO_FREE unsigned char *bytes = malloc(sizes[i]);
        uint64_t half = sizes[i] / 2; /* no request may cross where two ends meet */

        test_random_bytes(&seed, bytes, sizes[i]);
        assert_int_equal(blk_write(b, bytes, half, 0), 0);
        assert_int_equal(blk_write(b, bytes + half, sizes[i] - half, half), 0);
        assert_int_equal(vol_ends_write(b, to, NULL), 0);
        assert_memory_equal(blk_memory_bytes(to), bytes, sizes[i]);
    }
}

static void what_is_written_is_compared_and_the_rest_is_left_alone(void **state)
{
    AUTO_BLK struct blk *b = ends(MIB), *to = memory(MIB, 0x77);
    const uint64_t places[] = {0, 4095, LEN - 1, MIB - 1};
    unsigned char *bytes = blk_memory_bytes(to);
    struct test_report said;

    (void)state;
    test_report_init(&said);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(blk_write(b, "x", 1, places[i]), 0);
    assert_int_equal(vol_ends_compare(b, to, &said.rep), -EIO);
    assert_int_equal(vol_ends_write(b, to, &said.rep), 0);
    assert_int_equal(vol_ends_compare(b, to, &said.rep), 0);
    assert_int_equal(bytes[0], 'x');
    assert_int_equal(bytes[1], 0);
    for (uint64_t off = 4096; off < LEN - LEN % 4096; off++)
        assert_int_equal(bytes[off], 0x77); /* zeros here */
    for (uint64_t off = LEN; off < MIB - LEN % 4096; off++)
        assert_int_equal(bytes[off], 0x77);
    bytes[4094] ^= 1;
    assert_int_equal(vol_ends_compare(b, to, &said.rep), -EIO);
    assert_int_equal(said.n_lines, 2);
}

static void what_cannot_be_written_is_said(void **state)
{
    const struct blk_fault fail = {.ops = BLK_FAULT_WRITE | BLK_FAULT_READ, .err = ENOSPC};
    AUTO_BLK struct blk *b = ends(MIB), *to = NULL;
    struct test_report said;

    (void)state;
    assert_int_equal(blk_fault_open(&to, memory(MIB, 0)), 0);
    blk_fault_add(to, &fail);
    test_report_init(&said);
    assert_int_equal(vol_ends_write(b, to, &said.rep), 0); /* nothing to write */
    assert_int_equal(blk_write(b, "x", 1, 0), 0);
    assert_int_equal(vol_ends_write(b, to, &said.rep), -ENOSPC);
    assert_int_equal(vol_ends_compare(b, to, &said.rep), -ENOSPC);
    assert_int_equal(said.n_lines, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_are_bytes_and_the_middle_is_nothing),
        cmocka_unit_test(a_small_container_is_here_as_a_whole),
        cmocka_unit_test(what_is_written_is_compared_and_the_rest_is_left_alone),
        cmocka_unit_test(what_cannot_be_written_is_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
