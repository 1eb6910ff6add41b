/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the resize of keystore/native/: after a crash at any point the header opens with the old
 * size or the new one, the keys stay as they are, and nothing impossible is written. */

#include "block/memory.h"
#include "block/record.h"
#include "keystore/format.h"
#include "lib/container.h"
#include "lib/crash.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { LARGE = 4 * CONTAINER_DISK };

static const struct key_format *native;

static int start(void **state)
{
    native = key_format_named("native");
    return native == NULL ? -1 : test_start(state);
}

/* A container whose medium has room for LARGE. */
static struct blk *roomy(void)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];
    struct blk *b;

    container_block(block, &h);
    b = container_open(block);
    assert_int_equal(blk_resize(b, NATIVE_DATA + LARGE), 0);
    return b;
}

static int unlock(struct key_store *ks, struct key_volume *v)
{
    AUTO_CREDENTIAL struct credential cred = {0};

    container_credential(&cred, "old horse", NULL);
    return native->unlock(ks, &cred, KEY_SLOT_ANY, v, NULL);
}

static struct key_store *opened(struct blk *b)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;

    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(unlock(ks, &v), 0);
    return ks;
}

/* What a reader sees, or -errno; *prk, when it is not NULL, gets the key. */
static int64_t size_of(struct blk *b, unsigned char *prk)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    int r = native->open(&ks, b, b, NULL);

    if (r == 0)
        r = unlock(ks, &v);
    native->close(ks);
    if (r == 0 && prk != NULL)
        memcpy(prk, v.rule.prk.bytes, v.rule.prk.len);
    return r < 0 ? r : (int64_t)v.size;
}

static void the_size_changes_and_nothing_else(void **state)
{
    AUTO_BLK struct blk *b = roomy();
    unsigned char before[32], after[32];
    struct key_store *ks = opened(b);

    (void)state;
    assert_int_equal(size_of(b, before), CONTAINER_DISK);
    assert_int_equal(native->resize(ks, LARGE, NULL), 0);
    assert_int_equal(size_of(b, after), LARGE);
    assert_memory_equal(before, after, sizeof(before));
    native->forget(ks, false); /* as a mounted volume does */
    assert_int_equal(native->resize(ks, CONTAINER_DISK / 2, NULL), 0);
    native->close(ks);
    assert_int_equal(size_of(b, after), CONTAINER_DISK / 2);
    assert_memory_equal(before, after, sizeof(before));
}

static void impossible_sizes_are_refused_and_nothing_is_written(void **state)
{
    static const uint64_t bad[] = {
        0, 1, CONTAINER_DISK + 512, UINT64_C(1) << 63, UINT64_MAX - 4095, INT64_MAX - 4095};
    AUTO_BLK struct blk *b = NULL;
    struct test_report said;
    struct key_store *ks;
    size_t n;

    (void)state;
    assert_int_equal(blk_record_open(&b, roomy()), 0);
    ks = opened(b);
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        test_report_init(&said);
        assert_int_equal(native->resize(ks, bad[i], &said.rep), -EINVAL);
        assert_int_equal(said.n_lines, 1);
    }
    assert_int_equal(native->resize(ks, CONTAINER_DISK, NULL), 0); /* nothing to do */
    native->forget(ks, true);
    assert_int_equal(native->resize(ks, LARGE, NULL), -ENOKEY);
    native->close(ks);
    blk_record_log(b, &n);
    assert_int_equal(n, 0);
}

struct expected {
    size_t n_entries;
    uint64_t before, after;
};

static int opens_with_one_of_both(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    const struct expected *e = arg;
    int64_t size = size_of(left, NULL);

    if (crash->n_entries == e->n_entries)
        return size != (int64_t)e->after;
    return size != (int64_t)e->before && size != (int64_t)e->after;
}

static void a_crash_leaves_the_old_size_or_the_new_one(void **state)
{
    static const uint64_t sizes[] = {LARGE, CONTAINER_DISK / 2};
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct expected e = {.before = CONTAINER_DISK, .after = sizes[i]};
        AUTO_BLK struct blk *b = NULL;
        struct key_store *ks;

        assert_int_equal(blk_record_open(&b, roomy()), 0);
        ks = opened(b);
        assert_int_equal(native->resize(ks, sizes[i], NULL), 0);
        native->close(ks);
        blk_record_log(b, &e.n_entries);
        assert_int_equal(e.n_entries, 4); /* two writes, a flush after each */
        test_each_crash(b, 4, &seed, opens_with_one_of_both, &e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_size_changes_and_nothing_else),
        cmocka_unit_test(impossible_sizes_are_refused_and_nothing_is_written),
        cmocka_unit_test(a_crash_leaves_the_old_size_or_the_new_one),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
