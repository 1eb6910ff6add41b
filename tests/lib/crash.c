/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/crash.h"

#include "block/memory.h"
#include "lib/test.h"

#include <inttypes.h>

struct walk {
    struct blk *recorded;
    struct blk *left;
    test_crash_fn *fn;
    void *arg;
};

static void try_crash(const struct walk *w, const struct blk_record_crash *crash)
{
    int r;

    blk_record_replay_crash(w->recorded, blk_memory_bytes(w->left), crash);
    r = w->fn(w->left, crash, w->arg);
    if (r != 0)
        fail_msg("%d after a crash that left: n_entries %zu, piece %" PRIu32
                 ", density %u, seed 0x%" PRIx64,
                 r, crash->n_entries, crash->piece, crash->density, crash->seed);
}

static void try_subsets(const struct walk *w, size_t n_entries, size_t n_pieces)
{
    for (uint64_t bits = 0; bits < UINT64_C(1) << n_pieces; bits++) {
        const struct blk_record_crash crash = {
            .n_entries = n_entries, .piece = 512, .density = BLK_RECORD_BITS, .seed = bits};

        try_crash(w, &crash);
    }
}

/* Densities in turn: few pieces are there, half, most. */
static void try_chance(const struct walk *w, size_t n_entries, unsigned n_random, uint64_t *state)
{
    static const unsigned densities[] = {32, 128, 224};
    struct blk_record_crash crash = {.n_entries = n_entries, .piece = 512};

    try_crash(w, &crash);
    crash.density = BLK_RECORD_ALL;
    try_crash(w, &crash);
    for (unsigned i = 0; i < 2 * n_random; i++) {
        crash.piece = i % 2 == 0 ? 512 : 4096;
        crash.density = densities[i / 2 % 3];
        crash.seed = test_random(state);
        try_crash(w, &crash);
    }
}

void test_each_crash(struct blk *recorded, unsigned n_random, uint64_t *state, test_crash_fn *fn,
                     void *arg)
{
    AUTO_BLK struct blk *left = NULL;
    struct walk w = {.recorded = recorded, .fn = fn, .arg = arg};
    size_t n_entries;

    assert_int_equal(blk_memory_open(&left, recorded->size, recorded->granule), 0);
    w.left = left;
    blk_record_log(recorded, &n_entries);
    for (size_t n = 0; n <= n_entries; n++) {
        size_t n_pieces = blk_record_open_pieces(recorded, n, 512);

        if (n_pieces <= TEST_CRASH_SUBSETS)
            try_subsets(&w, n, n_pieces);
        else
            try_chance(&w, n, n_random, state);
    }
}
