/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/reencrypt.c and volume/zone.c, and with them keystore/native/reencrypt.c: whatever
 * a crash leaves of a re-encryption opens, reads right, can be written, and can be finished. */

#include "volume/reencrypt.h"

#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "block/record.h"
#include "keystore/native/record.h"
#include "lib/container.h"
#include "lib/crash.h"
#include "lib/test.h"
#include "volume/stack.h"
#include "volume/zone.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DATA = 0x81000, DISK = 192 * 1024, SIZE = DATA + DISK, ZONE = 64 * 1024 };

/* What is on the disk: text, zeros, and runs of 512 bytes of either. */
static unsigned char disk[DISK];
static uint64_t seed;

/* Takes b. */
static void adopt(struct key_container *c, struct blk *b)
{
    *c = (struct key_container){.blk = b, .format = key_format_named("native")};
    assert_int_equal(c->format->open(&c->store, b, b, NULL), 0);
}

static int unlock(struct key_container *c, const char *passphrase, struct key_volume *key,
                  struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    int r;

    container_credential(&cred, passphrase, NULL);
    r = c->format->unlock(c->store, &cred, KEY_SLOT_ANY, key, rep);
    if (r == 0 && !c->blk->read_only)
        r = c->format->repair(c->store, rep);
    return r;
}

/* The volume's stack, which takes what c holds. */
static int build(struct vol_stack *s, struct key_container *c, struct key_volume *key)
{
    const struct vol_spec spec = {.threads = 1};
    int r = zone_settle(c, key, NULL);

    if (r == 0)
        r = vol_stack_open(s, c->blk, key, &spec, NULL);
    if (r == 0)
        c->blk = NULL;
    return r;
}

static struct blk *copy_of(struct blk *left)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, left->size, 1), 0);
    assert_int_equal(blk_read(left, blk_memory_bytes(b), left->size, 0), 0);
    return b;
}

static void write_disk(struct blk *b)
{
    static const unsigned char zeros[512];
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume key = {0};
    struct vol_stack s = {0};

    adopt(&c, b);
    assert_int_equal(unlock(&c, "old horse", &key, NULL), 0);
    assert_int_equal(build(&s, &c, &key), 0);
    for (unsigned at = 0; at < DISK; at += 512)
        if (memcmp(disk + at, zeros, 512) != 0)
            assert_int_equal(blk_write(s.top, disk + at, 512, at), 0);
    s.sectors->below = NULL; /* b stays */
    vol_stack_close(&s);
}

/* A container in memory with disk on it. */
static struct blk *container(uint32_t unit)
{
    unsigned char block[NATIVE_BLOCK];
    struct native_header h = container_header();
    struct blk *b = NULL;

    h.unit = unit;
    h.data_offset = DATA; /* as little as there may be before it */
    h.capacity = DISK;
    container_block(block, &h);
    assert_int_equal(blk_memory_open(&b, SIZE, 1), 0);
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        memcpy(blk_memory_bytes(b) + i * NATIVE_COPY_STEP, block, NATIVE_BLOCK);
    for (unsigned at = 0; at < DISK; at += 512) {
        bool text = at < 65536    ? true
                    : at < 80000  ? false
                    : at < 120000 ? at / 512 % 3
                                  : at > 150000;

        memset(disk + at, 0, 512);
        if (text)
            test_random_bytes(&seed, disk + at, 512);
    }
    write_disk(b);
    return b;
}

/* Start, if it was not, and go on until the end. */
static int run(struct key_container *c, struct key_volume *key, struct progress *progress)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    const struct key_keep keep = {.slot = 2, .cred = &cred};
    const struct kdf_request same = {0};
    const struct vol_reencrypt r = {
        .container = c, .key = key, .threads = 2, .zone = ZONE, .progress = progress};
    uint64_t turned;
    int ret = 0;

    container_credential(&cred, "old horse", NULL);
    if (!key->mixed)
        ret = c->format->reencrypt->start(c->store, &keep, 1, &same, key, NULL);
    return ret < 0 ? ret : vol_reencrypt(&r, &turned, NULL);
}

/* Unlock b and run; b stays the caller's. */
static int run_on(struct blk *b, struct progress *progress)
{
    AUTO_KEY_VOLUME struct key_volume key = {0};
    struct key_container c;
    int r;

    adopt(&c, b);
    r = unlock(&c, "old horse", &key, NULL);
    if (r == 0)
        r = run(&c, &key, progress);
    c.blk = NULL;
    key_container_done(&c);
    return r;
}

enum { OPENS_NOT = 1, READS_WRONG, WRITES_WRONG, NOT_FINISHED };

/* Open a copy of left; for writing, change some of it as well. */
static int opens_and_reads(struct blk *left, bool read_only)
{
    static unsigned char now[DISK], changed[DISK];
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume key = {0};
    struct vol_stack s = {0};
    int r = 0;

    adopt(&c, copy_of(left));
    c.blk->read_only = read_only;
    if (unlock(&c, "old horse", &key, NULL) < 0 || build(&s, &c, &key) < 0)
        return OPENS_NOT;
    if (blk_read(s.top, now, DISK, 0) < 0 || memcmp(now, disk, DISK) != 0)
        r = READS_WRONG;
    if (!read_only) {
        uint64_t off = test_random(&seed) % DISK, len = test_random(&seed) % (DISK - off);

        memcpy(changed, disk, DISK);
        memset(changed + off, 'x', len);
        if (blk_write(s.top, changed + off, len, off) < 0 || blk_read(s.top, now, DISK, 0) < 0 ||
            memcmp(now, changed, DISK) != 0)
            r = r != 0 ? r : WRITES_WRONG;
    }
    vol_stack_close(&s);
    return r;
}

static int can_be_finished(struct blk *left)
{
    AUTO_BLK struct blk *b = copy_of(left);
    int r = run_on(b, NULL) < 0 ? NOT_FINISHED : 0;

    return r != 0 ? r : opens_and_reads(b, true);
}

/* Reading, and in some of the many writing and going on. Where every subset of a header's pieces is
 * tried, some will do: those that are not whole are all the same. */
static int any_crash(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    unsigned more = test_random(&seed) % 16;
    int r;

    (void)arg;
    if (crash->density == BLK_RECORD_BITS && more < 12)
        return 0;
    more = test_random(&seed) % 16;
    r = opens_and_reads(left, true);
    if (r == 0 && more < 2)
        r = opens_and_reads(left, false);
    return r != 0 || more < 1 || more > 2 ? r : can_be_finished(left);
}

static struct blk *recorded(struct blk *b)
{
    struct blk *rec = NULL;

    assert_int_equal(blk_record_open(&rec, b), 0);
    return rec;
}

static void crash_everywhere(uint32_t unit, unsigned n_random)
{
    AUTO_BLK struct blk *rec = recorded(container(unit));

    assert_int_equal(run_on(rec, NULL), 0);
    test_each_crash(rec, n_random, &seed, any_crash, NULL);
}

static void a_crash_anywhere_leaves_what_opens_reads_and_can_be_finished(void **state)
{
    (void)state;
    crash_everywhere(4096, 3);
    crash_everywhere(test_random(&seed) % 2 == 0 ? 512 : 65536, 0);
}

/* The middle of a run, with half of what no flush covers. */
static struct blk *crashed(uint32_t unit)
{
    AUTO_BLK struct blk *rec = recorded(container(unit));
    struct blk *left = NULL;
    size_t n;

    assert_int_equal(run_on(rec, NULL), 0);
    blk_record_log(rec, &n);
    assert_int_equal(blk_memory_open(&left, SIZE, 1), 0);
    for (;;) {
        const struct blk_record_crash crash = {.n_entries = test_random(&seed) % n,
                                               .piece = 512,
                                               .density = 128,
                                               .seed = test_random(&seed)};
        AUTO_KEY_CONTAINER struct key_container c = {0};
        AUTO_KEY_VOLUME struct key_volume key = {0};

        blk_record_replay_crash(rec, blk_memory_bytes(left), &crash);
        adopt(&c, copy_of(left));
        assert_int_equal(unlock(&c, "old horse", &key, NULL), 0);
        if (key.zone > 0) /* in the middle of a zone */
            return left;
    }
}

static void a_crash_while_going_on_after_a_crash_is_no_worse(void **state)
{
    AUTO_BLK struct blk *rec = recorded(crashed(512));

    (void)state;
    assert_int_equal(run_on(rec, NULL), 0);
    test_each_crash(rec, 1, &seed, any_crash, NULL);
}

static void opening_for_reading_writes_nothing(void **state)
{
    AUTO_BLK struct blk *left = crashed(4096);
    AUTO_BLK struct blk *rec = recorded(copy_of(left));
    AUTO_KEY_VOLUME struct key_volume key = {0};
    struct key_container c;
    struct vol_stack s = {0};
    unsigned char now[4096];
    uint64_t begun;
    size_t n;

    (void)state;
    rec->read_only = true;
    adopt(&c, rec);
    assert_int_equal(unlock(&c, "old horse", &key, NULL), 0);
    begun = key.boundary;
    assert_int_equal(build(&s, &c, &key), 0);
    assert_true(key.boundary > begun);
    assert_int_equal(key.zone, 0);
    assert_int_equal(blk_read(s.top, now, sizeof(now), begun), 0);
    assert_memory_equal(now, disk + begun, sizeof(now));
    assert_int_equal(blk_write(s.top, now, sizeof(now), begun), -EROFS);
    blk_record_log(rec, &n);
    assert_int_equal(n, 0);
    s.container->below = NULL; /* rec stays */
    vol_stack_close(&s);
    key_container_done(&c);
}

static void nothing_is_under_the_old_key_afterwards(void **state)
{
    AUTO_BLK struct blk *b = container(4096), *before = copy_of(b);
    AUTO_KEY_CONTAINER struct key_container old = {0};
    AUTO_KEY_VOLUME struct key_volume key = {0};
    const unsigned char *then = blk_memory_bytes(before) + DATA, *now = blk_memory_bytes(b) + DATA;
    static unsigned char text[DISK];
    struct vol_stack s = {0};

    (void)state;
    assert_int_equal(run_on(b, NULL), 0);
    for (unsigned at = 0; at < DISK; at += 512)
        assert_int_equal(bytes_are_zero(then + at, 512), bytes_are_zero(now + at, 512));
    for (unsigned at = 0; at < DISK; at += 16)
        assert_true(bytes_are_zero(now + at, 16) || memcmp(then + at, now + at, 16) != 0);
    assert_true(bytes_are_zero(blk_memory_bytes(b) + NATIVE_RECORD_AT, 0x50000));
    /* The old header over the new data: it opens, and all it shows is noise. */
    memcpy(blk_memory_bytes(before) + DATA, now, DISK);
    adopt(&old, copy_of(before));
    assert_int_equal(unlock(&old, "old horse", &key, NULL), 0);
    assert_int_equal(build(&s, &old, &key), 0);
    assert_int_equal(blk_read(s.top, text, DISK, 0), 0);
    for (unsigned at = 0; at < DISK; at += 16)
        assert_true(bytes_are_zero(disk + at, 16) || memcmp(text + at, disk + at, 16) != 0);
    vol_stack_close(&s);
}

/* --- stopping --- */

struct stopper {
    struct progress progress;
    unsigned n_left;
};

static int stop(struct progress *p, uint64_t done, uint64_t total)
{
    struct stopper *s = container_of(p, struct stopper, progress);

    assert_true(done <= total && total == DISK);
    return s->n_left-- > 0 ? 0 : -EINTR;
}

static void it_stops_between_zones_and_goes_on(void **state)
{
    AUTO_BLK struct blk *b = container(4096);

    (void)state;
    for (unsigned n = 0; n < 5; n++) {
        struct stopper s = {.progress.step = stop, .n_left = n % 2};
        int r = run_on(b, &s.progress);

        assert_true(r == 0 || r == -EINTR);
        assert_int_equal(opens_and_reads(b, true), 0);
        if (n == 0) {
            AUTO_KEY_CONTAINER struct key_container c = {0};
            AUTO_KEY_VOLUME struct key_volume key = {0};

            adopt(&c, copy_of(b));
            assert_int_equal(unlock(&c, "old horse", &key, NULL), 0);
            assert_true(key.mixed && key.boundary == 0 && key.zone == 0);
        }
    }
    assert_int_equal(run_on(b, NULL), 0);
    assert_int_equal(opens_and_reads(b, false), 0);
}

/* Each write and each flush fails once, in its turn: the container opens after each. */
static void a_medium_that_fails_stops_it_and_loses_nothing(void **state)
{
    static const struct {
        unsigned ops;
        int err;
    } faults[] = {{BLK_FAULT_WRITE | BLK_FAULT_DISCARD, ENOSPC},
                  {BLK_FAULT_FLUSH, EIO},
                  {BLK_FAULT_READ, EIO}};

    (void)state;
    for (unsigned i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        int r = -EIO;

        for (unsigned after = 0; r < 0; after++) {
            struct blk_fault rule = {.ops = faults[i].ops,
                                     .off = faults[i].ops == BLK_FAULT_READ ? DATA : 0,
                                     .len = faults[i].ops == BLK_FAULT_READ ? DISK : 0,
                                     .after = after,
                                     .err = faults[i].err,
                                     .partial = true};
            struct blk *b = container(4096), *faulty = NULL;

            assert_int_equal(blk_fault_open(&faulty, b), 0);
            blk_fault_add(faulty, &rule);
            r = run_on(faulty, NULL);
            assert_true(blk_fault_count(faulty) == 0 ? r == 0 : true);
            blk_fault_clear(faulty);
            assert_int_equal(opens_and_reads(b, true), 0);
            assert_int_equal(opens_and_reads(b, false), 0);
            assert_int_equal(can_be_finished(b), 0);
            if (blk_fault_count(faulty) == 0)
                r = 0;
            else
                r = -EIO;
            blk_close(faulty);
        }
    }
}

/* --- a cache that forgets --- */

/* What of e reached the medium: piece by piece, in half of all cases; or all of it. */
static void apply(unsigned char *image, const struct blk_record_entry *e, bool whole)
{
    for (uint64_t at = 0; at < e->len; at += 512) {
        size_t n = e->len - at < 512 ? e->len - at : 512;

        if (!whole && test_random(&seed) % 2 == 0)
            continue;
        if (e->op == BLK_RECORD_WRITE)
            memcpy(image + e->off + at, e->bytes + at, n);
        else
            memset(image + e->off + at, 0, n);
    }
}

/* The first n entries of the log, when the flush failed behind the first n_lost: what no flush
 * before that covers is there by chance, and no later flush changes that. */
static void replay(struct blk *rec, unsigned char *image, size_t n_lost, size_t n)
{
    size_t n_entries, kept = 0, durable = n_lost;
    const struct blk_record_entry *log = blk_record_log(rec, &n_entries);
    const struct blk_record_crash before = {
        .n_entries = 0, .piece = 512, .density = BLK_RECORD_ALL};

    for (size_t i = 0; i < n; i++) {
        size_t *covered = i < n_lost ? &kept : &durable;

        if (log[i].op == BLK_RECORD_FLUSH && log[i].n_durable > *covered)
            *covered = log[i].n_durable;
    }
    blk_record_replay_crash(rec, image, &before);
    for (size_t i = 0; i < n; i++)
        if (log[i].op != BLK_RECORD_FLUSH)
            apply(image, &log[i], i < kept || (i >= n_lost && i < durable));
}

/* The kernel may drop what it could not write, show it all the same, and call the next flush a
 * success. Each flush of a run fails like that in its turn; what goes on afterwards, over the cache
 * that shows too much, is stopped by a crash anywhere. */
static void a_flush_that_failed_is_believed_by_nobody(void **state)
{
    AUTO_BLK struct blk *left = NULL;
    bool failed = true;

    (void)state;
    assert_int_equal(blk_memory_open(&left, SIZE, 1), 0);
    for (unsigned after = 0; failed; after++) {
        struct blk_fault rule = {.ops = BLK_FAULT_FLUSH, .after = after, .times = 1, .err = EIO};
        AUTO_BLK struct blk *faulty = NULL;
        struct blk *rec = recorded(container(4096));
        size_t n_lost, n;

        assert_int_equal(blk_fault_open(&faulty, rec), 0);
        blk_fault_add(faulty, &rule);
        run_on(faulty, NULL);
        failed = blk_fault_count(faulty) > 0;
        blk_record_log(rec, &n_lost);
        if (failed)
            assert_int_equal(run_on(faulty, NULL), 0);
        blk_record_log(rec, &n);
        for (size_t i = n_lost; i <= n && failed; i++) {
            replay(rec, blk_memory_bytes(left), n_lost, i);
            if (opens_and_reads(left, true) != 0)
                fail_msg("flush %u failed behind entry %zu, then a crash behind %zu", after, n_lost,
                         i);
        }
    }
}

static int start(void **state)
{
    seed = test_seed();
    return test_start(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_crash_anywhere_leaves_what_opens_reads_and_can_be_finished),
        cmocka_unit_test(a_crash_while_going_on_after_a_crash_is_no_worse),
        cmocka_unit_test(opening_for_reading_writes_nothing),
        cmocka_unit_test(nothing_is_under_the_old_key_afterwards),
        cmocka_unit_test(it_stops_between_zones_and_goes_on),
        cmocka_unit_test(a_medium_that_fails_stops_it_and_loses_nothing),
        cmocka_unit_test(a_flush_that_failed_is_believed_by_nobody),
    };

    return cmocka_run_group_tests_name("volume/reencrypt", tests, start, NULL);
}
