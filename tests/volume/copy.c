/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/copy.h"
#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "block/record.h"
#include "lib/files.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { KIB = 1024, MIB = 1024 * 1024 };

static struct blk *memory(uint64_t size, int byte)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, size, 1), 0);
    memset(blk_memory_bytes(b), byte, size);
    return b;
}

/* Data and zeros in turn, of odd lengths. */
static struct blk *patches(uint64_t size, uint64_t *seed)
{
    struct blk *b = memory(size, 0);

    for (uint64_t off = 0; off < size; off += test_random(seed) % (300 * KIB)) {
        size_t len = (size_t)(test_random(seed) % (200 * KIB));

        len = len < size - off ? len : (size_t)(size - off);
        test_random_bytes(seed, blk_memory_bytes(b) + off, len);
        off += len;
        if (off >= size)
            break;
    }
    return b;
}

static void assert_copied(struct blk *from, const unsigned char *to, uint64_t size)
{
    uint64_t both = from->size < size ? from->size : size;
    AUTO_FREE unsigned char *want = calloc(1, size);

    assert_int_equal(blk_read(from, want, (size_t)both, 0), 0);
    assert_memory_equal(to, want, size);
}

static void the_copy_reads_as_the_source_whatever_was_there(void **state)
{
    static const uint64_t sizes[] = {5 * MIB + 512, 3 * MIB + 512, 7 * MIB, 512};
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *from = patches(5 * MIB + 512, &seed);

    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        AUTO_BLK struct blk *to = memory(sizes[i / 2], 0xdd);
        const struct vol_copy copy = {.from = from, .to = to, .sparse = i % 2 == 1};

        assert_int_equal(vol_copy_run(&copy, NULL), 0);
        assert_copied(from, blk_memory_bytes(to), sizes[i / 2]);
        assert_int_equal(vol_copy_compare(&copy, NULL), 0);
    }
}

static void one_changed_byte_is_found_and_named(void **state)
{
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *from = patches(4 * MIB, &seed);
    AUTO_BLK struct blk *to = memory(5 * MIB, 0);
    const struct vol_copy copy = {.from = from, .to = to, .sparse = true};
    const size_t places[] = {0, MIB - 1, MIB, 2 * MIB + 1234, 4 * MIB - 1, 4 * MIB, 5 * MIB - 1};

    (void)state;
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    for (unsigned i = 0; i < 7; i++) {
        struct test_report said;
        char place[32];

        test_report_init(&said);
        blk_memory_bytes(to)[places[i]] ^= 0x10;
        assert_int_equal(vol_copy_compare(&copy, &said.rep), -EIO);
        snprintf(place, sizeof(place), "byte %zu ", places[i]);
        assert_true(test_report_has(&said, place));
        assert_int_equal(said.n_lines, 1);
        blk_memory_bytes(to)[places[i]] ^= 0x10;
    }
    assert_int_equal(vol_copy_compare(&copy, NULL), 0);
}

/* How much a copy reads and writes, from the log of what it changes. */
static uint64_t written(struct blk *recorded)
{
    const struct blk_record_entry *log;
    uint64_t sum = 0;
    size_t n;

    log = blk_record_log(recorded, &n);
    for (size_t i = 0; i < n; i++)
        sum += log[i].op == BLK_RECORD_WRITE ? log[i].len : 0;
    return sum;
}

static void zeros_are_not_written(void **state)
{
    AUTO_BLK struct blk *from = memory(4 * MIB, 0);
    AUTO_BLK struct blk *to = NULL;
    struct vol_copy copy = {.from = from, .sparse = true};

    (void)state;
    assert_int_equal(blk_record_open(&to, memory(4 * MIB, 0)), 0);
    copy.to = to;
    blk_memory_bytes(from)[4096 + 17] = 1;   /* one block */
    blk_memory_bytes(from)[3 * MIB - 1] = 1; /* and the two at the sides */
    blk_memory_bytes(from)[3 * MIB] = 1;     /* of where a request ends */
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    assert_int_equal(written(to), 3 * 4096);
    assert_memory_equal(blk_memory_bytes(to->below), blk_memory_bytes(from), 4 * MIB);
}

static void without_sparse_all_data_is_written(void **state)
{
    AUTO_BLK struct blk *from = memory(3 * MIB, 0);
    AUTO_BLK struct blk *to = NULL;
    struct vol_copy copy = {.from = from};

    (void)state;
    assert_int_equal(blk_record_open(&to, memory(4 * MIB, 0xdd)), 0);
    copy.to = to;
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    assert_int_equal(written(to), 4 * MIB);
    assert_true(bytes_are_zero(blk_memory_bytes(to->below), 4 * MIB));
}

/* A file of a terabyte with three blocks of data: what neither side has is not looked at. */
static void holes_cost_nothing(void **state)
{
    const uint64_t size = UINT64_C(1) << 40;
    AUTO_BLK struct blk *from = NULL, *to = NULL;
    struct vol_copy copy = {.sparse = true};

    (void)state;
    assert_int_equal(test_create(&from, test_path(test_disk, "from"), size, false, false), 0);
    assert_int_equal(test_create(&to, test_path(test_disk, "to"), size, false, false), 0);
    copy.from = from;
    copy.to = to;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(blk_write(from, "data", 4, i * (size / 2 - 8)), 0);
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    assert_int_equal(vol_copy_compare(&copy, NULL), 0);
    assert_true(test_allocated(to) <= test_allocated(from));
    assert_int_equal(blk_write(to, "x", 1, size / 4), 0); /* where the source has a hole */
    assert_int_equal(vol_copy_compare(&copy, NULL), -EIO);
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    assert_int_equal(vol_copy_compare(&copy, NULL), 0);
}

static void a_failure_says_what_and_where(void **state)
{
    static const struct {
        bool source;
        unsigned op;
        int err;
        const char *words;
    } cases[] = {
        {true, BLK_FAULT_READ, EIO, "cannot read the source at byte 2097152"},
        {false, BLK_FAULT_WRITE, ENOSPC, "cannot write the copy at byte 2097152: No space left"},
    };

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        const struct blk_fault fault = {
            .ops = cases[i].op, .off = 2 * MIB + 5, .len = 1, .err = cases[i].err};
        AUTO_BLK struct blk *from = NULL, *to = NULL;
        struct vol_copy copy = {0};
        struct test_report said;

        assert_int_equal(blk_fault_open(&from, memory(4 * MIB, 1)), 0);
        assert_int_equal(blk_fault_open(&to, memory(4 * MIB, 0)), 0);
        blk_fault_add(cases[i].source ? from : to, &fault);
        copy.from = from;
        copy.to = to;
        test_report_init(&said);
        assert_int_equal(vol_copy_run(&copy, &said.rep), -cases[i].err);
        assert_true(test_report_has(&said, cases[i].words));
        assert_int_equal(said.n_lines, 1);
    }
}

struct meter {
    struct progress progress;
    uint64_t done, total, stop_at;
    unsigned n;
};

static int meter_step(struct progress *p, uint64_t done, uint64_t total)
{
    struct meter *m = container_of(p, struct meter, progress);

    assert_true(done >= m->done && done <= total);
    m->done = done;
    m->total = total;
    m->n++;
    return m->stop_at > 0 && done >= m->stop_at ? -EINTR : 0;
}

static void progress_counts_what_is_moved_and_can_stop_it(void **state)
{
    AUTO_BLK struct blk *from = memory(8 * MIB, 1), *to = memory(8 * MIB, 0);
    struct meter meter = {.progress.step = meter_step};
    const struct vol_copy copy = {.from = from, .to = to, .progress = &meter.progress};
    struct test_report said;

    (void)state;
    assert_int_equal(vol_copy_run(&copy, NULL), 0);
    assert_int_equal(meter.done, 8 * MIB);
    assert_int_equal(meter.total, 8 * MIB);
    assert_true(meter.n >= 8);
    meter = (struct meter){.progress.step = meter_step, .stop_at = 3 * MIB};
    test_report_init(&said);
    assert_int_equal(vol_copy_run(&copy, &said.rep), -EINTR);
    assert_int_equal(said.n_lines, 0);
    assert_true(meter.done < 8 * MIB);
}

static void zeros_at_the_end_are_recognised(void **state)
{
    AUTO_BLK struct blk *b = memory(4 * MIB, 0);
    struct meter meter = {.progress.step = meter_step, .stop_at = 1};

    (void)state;
    assert_int_equal(vol_copy_is_zero(b, 0, NULL, NULL), 1);
    blk_memory_bytes(b)[3 * MIB] = 1;
    assert_int_equal(vol_copy_is_zero(b, 0, NULL, NULL), 0);
    assert_int_equal(vol_copy_is_zero(b, 3 * MIB, NULL, NULL), 0);
    assert_int_equal(vol_copy_is_zero(b, 3 * MIB + 1, NULL, NULL), 1);
    assert_int_equal(vol_copy_is_zero(b, 4 * MIB, NULL, NULL), 1);
    assert_int_equal(vol_copy_is_zero(b, 0, &meter.progress, NULL), -EINTR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_reads_as_the_source_whatever_was_there),
        cmocka_unit_test(one_changed_byte_is_found_and_named),
        cmocka_unit_test(zeros_are_not_written),
        cmocka_unit_test(without_sparse_all_data_is_written),
        cmocka_unit_test_teardown(holes_cost_nothing, test_files_clear),
        cmocka_unit_test(a_failure_says_what_and_where),
        cmocka_unit_test(progress_counts_what_is_moved_and_can_stop_it),
        cmocka_unit_test(zeros_at_the_end_are_recognised),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
