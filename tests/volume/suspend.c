/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/suspend.c: a suspended volume answers nothing that needs a key, goes on with the
 * right key only, and then as if nothing had been. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "base/auto.h"
#include "base/secret.h"
#include "keystore/unlock.h"
#include "volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static char folder[] = "/tmp/hushvol-suspend-XXXXXX";
static char path[64], passphrase[64];
static struct secret right;

static void make_container(void)
{
    const struct vol_create c = {.container = path,
                                 .size = 16 * MIB,
                                 .format = "native",
                                 .sparse = true,
                                 .header = {.cipher = "aes-256-xts",
                                            .sector_size = 4096,
                                            .kdf = {.memory = 64 * MIB, .iterations = 3}},
                                 .credential = {.passphrase_file = passphrase}};

    assert_int_equal(vol_create(&c, NULL, NULL), 0);
}

static struct volume *open_volume(bool read_only)
{
    const struct vol_spec spec = {.container = path,
                                  .read_only = read_only,
                                  .threads = 3,
                                  .slot = KEY_SLOT_ANY,
                                  .credential = {.passphrase_file = passphrase}};
    struct volume *v;

    assert_int_equal(vol_open(&v, &spec, NULL, NULL), 0);
    return v;
}

/* What somebody else with the passphrase hands over: read without a lock, beside the volume. */
static void read_key(struct secret *ret)
{
    const struct blk_file_spec spec = {.path = path, .read_only = true, .lock = BLK_LOCK_NONE};
    const struct credential_source source = {.passphrase_file = passphrase};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume key = {0};

    assert_int_equal(key_container_open(&c, &spec, NULL, NULL, NULL), 0);
    assert_int_equal(key_unlock_with(&c, &source, KEY_SLOT_ANY, &key, NULL), 0);
    assert_int_equal(c.format->export(c.store, ret), 0);
}

static int start(void **state)
{
    FILE *f;

    (void)state;
    if (secret_start(NULL) < 0 || mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/disk.hv", folder);
    snprintf(passphrase, sizeof(passphrase), "%s/passphrase", folder);
    f = fopen(passphrase, "we");
    fputs("correct horse\n", f);
    fclose(f);
    make_container();
    read_key(&right);
    return 0;
}

static int end(void **state)
{
    (void)state;
    secret_done(&right);
    unlink(path);
    unlink(passphrase);
    return rmdir(folder);
}

static bool is_suspended(struct volume *v)
{
    struct vol_info info;

    vol_get_info(v, &info);
    return info.suspended;
}

static void it_goes_on_as_if_nothing_had_been(void **state)
{
    struct volume *v = open_volume(false);
    static unsigned char written[3 * MIB], read[3 * MIB];
    uint64_t seed = test_seed();

    (void)state;
    test_random_bytes(&seed, written, sizeof(written));
    for (unsigned round = 0; round < 3; round++) {
        assert_int_equal(blk_write(vol_top(v), written, sizeof(written), 12345), 0);
        for (size_t off = 0; off < sizeof(read); off += 65536) /* read-ahead has something, too */
            assert_int_equal(blk_read(vol_top(v), read + off, 65536, 12345 + off), 0);
        assert_memory_equal(read, written, sizeof(read));
        assert_int_equal(vol_suspend(v, NULL), 0);
        assert_true(is_suspended(v));
        assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
        assert_false(is_suspended(v));
        assert_int_equal(blk_read(vol_top(v), read, sizeof(read), 12345), 0);
        assert_memory_equal(read, written, sizeof(read));
        written[round * MIB] ^= 1;
    }
    crowd_run(&(struct crowd_spec){.blk = vol_top(v),
                                   .seed = seed,
                                   .n_threads = 3,
                                   .n_ops = 200,
                                   .max_len = 300000,
                                   .granule = 1,
                                   .zeros = 1});
    assert_int_equal(vol_close(v), 0);
}

/* The gate above keeps requests away; should one come through, it fails and writes nothing. */
static void without_keys_nothing_is_read_or_written(void **state)
{
    struct volume *v = open_volume(false);
    unsigned char before[8192], bytes[8192] = {1};
    struct blk_extent extent;
    struct blk_stat st;

    (void)state;
    memset(before, 0x5a, sizeof(before));
    assert_int_equal(blk_write(vol_top(v), before, sizeof(before), 0), 0);
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(blk_read(vol_top(v), bytes, sizeof(bytes), 0), -EIO);
    assert_int_equal(blk_write(vol_top(v), bytes, sizeof(bytes), 0), -EIO);
    assert_int_equal(blk_flush(vol_top(v)), 0);
    assert_int_equal(blk_extent(vol_top(v), 0, &extent), 0);
    assert_int_equal(blk_stat(vol_top(v), &st), 0);
    assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
    assert_int_equal(blk_read(vol_top(v), bytes, sizeof(bytes), 0), 0);
    assert_memory_equal(bytes, before, sizeof(bytes));
    assert_int_equal(vol_close(v), 0);
}

static void a_wrong_key_leaves_it_suspended(void **state)
{
    struct volume *v = open_volume(false);
    AUTO_SECRET struct secret wrong = {0};
    struct test_report said;
    unsigned char byte;

    (void)state;
    test_report_init(&said);
    assert_int_equal(secret_copy(&wrong, right.bytes, right.len), 0);
    assert_int_equal(vol_suspend(v, NULL), 0);
    wrong.bytes[wrong.len - 1] ^= 1;
    assert_int_equal(vol_resume(v, &wrong, 0, &said.rep), -EKEYREJECTED);
    assert_true(test_report_has(&said, "not the volume's"));
    wrong.bytes[wrong.len - 1] ^= 1;
    wrong.len--;
    assert_int_equal(vol_resume(v, &wrong, 0, NULL), -EKEYREJECTED);
    wrong.len++;
    assert_true(is_suspended(v));
    assert_int_equal(blk_read(vol_top(v), &byte, 1, 0), -EIO);
    assert_int_equal(vol_resume(v, &wrong, 0, NULL), 0);
    assert_int_equal(blk_read(vol_top(v), &byte, 1, 0), 0);
    assert_int_equal(vol_close(v), 0);
}

static void twice_is_told(void **state)
{
    struct volume *v = open_volume(false);

    (void)state;
    assert_int_equal(vol_resume(v, &right, 0, NULL), -EALREADY);
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(vol_suspend(v, NULL), -EALREADY);
    assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
    assert_int_equal(vol_resume(v, &right, 0, NULL), -EALREADY);
    assert_int_equal(vol_close(v), 0);
}

static void a_read_only_one_can_be_suspended(void **state)
{
    struct volume *v = open_volume(true);
    unsigned char byte;

    (void)state;
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(blk_read(vol_top(v), &byte, 1, 0), -EIO);
    assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
    assert_int_equal(blk_read(vol_top(v), &byte, 1, 0), 0);
    assert_int_equal(vol_close(v), 0);
}

static void it_can_be_closed_suspended(void **state)
{
    struct volume *v = open_volume(false);

    (void)state;
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(vol_close(v), 0);
}

static void a_resize_waits_for_the_resume(void **state)
{
    struct volume *v = open_volume(false);
    uint64_t size = 32 * MIB;

    (void)state;
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(vol_make_room(v, size, NULL, NULL), -EBUSY);
    assert_int_equal(vol_grow(v, size, NULL), -EBUSY);
    assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
    assert_int_equal(vol_make_room(v, size, NULL, NULL), 0);
    assert_int_equal(vol_grow(v, size, NULL), 0);
    assert_int_equal(vol_suspend(v, NULL), 0);
    assert_int_equal(vol_resume(v, &right, 0, NULL), 0);
    assert_int_equal(vol_close(v), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_as_if_nothing_had_been),
        cmocka_unit_test(without_keys_nothing_is_read_or_written),
        cmocka_unit_test(a_wrong_key_leaves_it_suspended),
        cmocka_unit_test(twice_is_told),
        cmocka_unit_test(a_read_only_one_can_be_suspended),
        cmocka_unit_test(it_can_be_closed_suspended),
        cmocka_unit_test(a_resize_waits_for_the_resume),
    };

    return cmocka_run_group_tests(tests, start, end);
}
