/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/create.c, open.c and stack.c on real files: what was written is there after closing
 * and opening, at every sector size; options and header flags arrive at the layers; a crash at any
 * point of a history of writes and flushes leaves what flush promised. */

#include "lib/crowd.h"
#include "lib/test.h"

#include "base/auto.h"
#include "base/secret.h"
#include "block/memory.h"
#include "block/record.h"
#include "keystore/unlock.h"
#include "volume/stack.h"
#include "volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1024 * 1024 };

static char folder[] = "/tmp/hushvol-open-XXXXXX";
static char path[64], passphrase[64];

static void put(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static int start(void **state)
{
    (void)state;
    if (secret_start(NULL) < 0 || mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/disk.hv", folder);
    snprintf(passphrase, sizeof(passphrase), "%s/passphrase", folder);
    put(passphrase, "correct horse\n");
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(passphrase);
    return rmdir(folder);
}

static struct vol_create creation(uint32_t sector, uint64_t size)
{
    struct vol_create c = {.container = path,
                           .size = size,
                           .format = "native",
                           .sparse = true,
                           .force = true,
                           .header = {.cipher = "aes-256-xts",
                                      .sector_size = sector,
                                      .kdf = {.memory = 64 * MIB, .iterations = 3}},
                           .credential = {.passphrase_file = passphrase}};

    return c;
}

static struct vol_spec opening(void)
{
    struct vol_spec s = {
        .container = path, .slot = KEY_SLOT_ANY, .credential = {.passphrase_file = passphrase}};

    return s;
}

static struct volume *create_and_open(const struct vol_create *c)
{
    struct vol_spec s = opening();
    struct volume *v = NULL;

    assert_int_equal(vol_create(c, NULL, NULL), 0);
    assert_int_equal(vol_open(&v, &s, NULL, NULL), 0);
    return v;
}

static void what_was_written_is_there_after_opening_again(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (uint32_t sector = 512; sector <= 65536; sector *= 2) {
        struct vol_create c = creation(sector, 6 * MIB + 1);
        struct volume *v = create_and_open(&c);
        struct vol_spec s = opening();
        struct crowd_spec m = {.blk = vol_top(v),
                               .seed = seed + sector,
                               .n_threads = 8,
                               .n_ops = 40,
                               .max_len = 300001,
                               .granule = 1,
                               .zeros = 1};
        uint64_t size = vol_top(v)->size;
        unsigned char *before = malloc(size), *after = malloc(size);

        assert_int_equal(size, (6 * MIB + sector) / sector * sector);
        crowd_run(&m);
        assert_int_equal(blk_read(vol_top(v), before, size, 0), 0);
        assert_int_equal(vol_close(v), 0);
        s.read_only = true;
        assert_int_equal(vol_open(&v, &s, NULL, NULL), 0);
        assert_int_equal(blk_read(vol_top(v), after, size, 0), 0);
        assert_memory_equal(before, after, size);
        assert_int_equal(blk_write(vol_top(v), before, 1, 0), -EROFS);
        assert_int_equal(vol_close(v), 0);
        free(before);
        free(after);
    }
}

static void a_new_disk_reads_as_zeros(void **state)
{
    struct vol_create c = creation(4096, 3 * MIB);
    unsigned char *buf = malloc(3 * MIB);

    (void)state;
    for (int sparse = 0; sparse < 2; sparse++) {
        struct volume *v;
        struct stat st;

        c.sparse = sparse;
        v = create_and_open(&c);
        assert_int_equal(blk_read(vol_top(v), buf, 3 * MIB, 0), 0);
        assert_true(buf[0] == 0 && memcmp(buf, buf + 1, 3 * MIB - 1) == 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_size, 4 * MIB);
        assert_int_equal(st.st_mode & 07777, 0600);
        assert_true(sparse ? st.st_blocks * 512 <= MIB : st.st_blocks * 512 >= 4 * MIB);
        assert_int_equal(vol_close(v), 0);
    }
    free(buf);
}

static void options_and_header_flags_arrive(void **state)
{
    struct vol_create c = creation(4096, MIB);
    struct vol_spec s = opening();
    struct test_report rep;
    struct vol_info info;
    const char *names[8];
    unsigned n;
    struct volume *v = create_and_open(&c);

    (void)state;
    vol_get_info(v, &info);
    assert_string_equal(info.format, "native");
    assert_string_equal(info.cipher, "aes-256-xts");
    assert_int_equal(info.sector_size, 4096);
    assert_true(info.discard && info.enospc_wait && !info.direct && !info.read_only);
    n = vol_layers(v, names, 8);
    assert_string_equal(names[0], "poison");
    assert_string_equal(names[n - 1], "file");
    vol_close(v);

    s.discard = s.enospc_wait = VOL_NO;
    s.direct = BLK_DIRECT_ON;
    s.threads = 1;
    assert_int_equal(vol_open(&v, &s, NULL, NULL), 0);
    vol_get_info(v, &info);
    assert_true(!info.discard && !info.enospc_wait && info.direct);
    assert_int_equal(info.threads, 1);
    vol_close(v);

    c.sparse = false;
    v = create_and_open(&c);
    vol_get_info(v, &info);
    assert_true(!info.discard && !info.enospc_wait);
    vol_close(v);
    s = opening();
    s.discard = VOL_YES;
    test_report_init(&rep);
    assert_int_equal(vol_open(&v, &s, NULL, &rep.rep), 0);
    assert_true(test_report_has(&rep, "discard stays off"));
    vol_get_info(v, &info);
    assert_false(info.discard);
    vol_close(v);
}

static void a_wrong_passphrase_opens_nothing(void **state)
{
    struct vol_create c = creation(4096, MIB);
    struct vol_spec s = opening();
    struct volume *v = create_and_open(&c);

    (void)state;
    vol_close(v);
    v = NULL;
    put(passphrase, "wrong horse\n");
    assert_int_equal(vol_open(&v, &s, NULL, NULL), -EKEYREJECTED);
    assert_null(v);
    put(passphrase, "correct horse\n");
}

static void a_second_writer_is_kept_out(void **state)
{
    struct vol_create c = creation(4096, MIB);
    struct vol_spec s = opening();
    struct volume *v = create_and_open(&c), *second = NULL;

    (void)state;
    assert_int_equal(vol_open(&second, &s, NULL, NULL), -EBUSY);
    s.read_only = true;
    assert_int_equal(vol_open(&second, &s, NULL, NULL), -EBUSY);
    assert_int_equal(vol_create(&c, NULL, NULL), -EBUSY);
    vol_close(v);
    assert_int_equal(vol_open(&v, &s, NULL, NULL), 0);
    assert_int_equal(vol_open(&second, &s, NULL, NULL), 0); /* readers share */
    vol_close(v);
    vol_close(second);
}

static void creating_refuses_what_is_there_and_impossible_geometry(void **state)
{
    struct vol_create c = creation(4096, MIB);

    (void)state;
    assert_int_equal(vol_create(&c, NULL, NULL), 0);
    c.force = false;
    assert_int_equal(vol_create(&c, NULL, NULL), -EEXIST);
    c.force = true;
    c.size = 0;
    assert_int_equal(vol_create(&c, NULL, NULL), -EINVAL);
    c.size = UINT64_MAX;
    assert_int_equal(vol_create(&c, NULL, NULL), -EINVAL);
    c = creation(4097, MIB);
    assert_int_equal(vol_create(&c, NULL, NULL), -EINVAL);
    c = creation(131072, MIB);
    assert_true(vol_create(&c, NULL, NULL) < 0);
    c = creation(4096, MIB);
    c.header.cipher = "rot13";
    assert_int_equal(vol_create(&c, NULL, NULL), -EOPNOTSUPP);
    c = creation(4096, MIB);
    c.format = "floppy";
    assert_int_equal(vol_create(&c, NULL, NULL), -EOPNOTSUPP);
}

/* A stack over a recorder over memory, with a key that no container ever had. */
static void open_recorded(struct vol_stack *s, struct blk **record)
{
    AUTO_KEY_VOLUME struct key_volume key = {.cipher = "aes-256-xts",
                                             .sector_size = 16384,
                                             .data_offset = MIB,
                                             .size = 2 * MIB,
                                             .zero_pieces = true,
                                             .rule.chunk_shift = 32};
    struct vol_spec spec = {.threads = 2, .no_readahead = true}; /* we change what is below */
    struct blk *mem = NULL;

    assert_int_equal(secret_make(&key.rule.prk, 32), 0);
    assert_int_equal(blk_memory_open(&mem, 3 * MIB, 1), 0);
    assert_int_equal(blk_record_open(record, mem), 0);
    assert_int_equal(vol_stack_open(s, *record, &key, &spec, NULL), 0);
}

enum { SECTOR = 512, N_WRITES = 60, FLUSH_EVERY = 7 };

struct history {
    size_t log_at[N_WRITES + 1];    /* entries in the log after this many writes */
    unsigned flushed[N_WRITES + 1]; /* writes that were flushed by then */
};

/* Write number n fills three sectors from n % 8 * 2 with the byte n. Numbers begin at 1. */
static void history_make(struct history *h, struct vol_stack *s, struct blk *record)
{
    unsigned char buf[3 * SECTOR];

    h->flushed[0] = 0;
    blk_record_log(record, &h->log_at[0]);
    for (unsigned n = 1; n <= N_WRITES; n++) {
        memset(buf, (int)n, sizeof(buf));
        assert_int_equal(blk_write(s->top, buf, sizeof(buf), n % 8 * 2 * SECTOR), 0);
        h->flushed[n] = h->flushed[n - 1];
        if (n % FLUSH_EVERY == 0) {
            assert_int_equal(blk_flush(s->top), 0);
            h->flushed[n] = n;
        }
        blk_record_log(record, &h->log_at[n]);
    }
}

/* The last of the first n writes that covers a sector; 0: none. */
static unsigned last_write(unsigned n, unsigned sector)
{
    for (unsigned i = n; i > 0; i--) {
        unsigned first = i % 8 * 2;

        if (sector >= first && sector < first + 3)
            return i;
    }
    return 0;
}

/* Every 16 bytes hold the value of the last flush or a later one: sectors of a plain volume tear as
 * a raw disk's do, but never into anything that was not written there. */
static void check_crash(struct vol_stack *s, const struct history *h, unsigned n)
{
    unsigned char buf[SECTOR];

    for (unsigned sector = 0; sector < 18; sector++) {
        unsigned oldest = last_write(h->flushed[n], sector);

        assert_int_equal(blk_read(s->top, buf, SECTOR, sector * SECTOR), 0);
        for (unsigned i = 0; i < SECTOR; i += 16) {
            assert_true(buf[i] == oldest || (buf[i] > h->flushed[n] && buf[i] <= n));
            assert_memory_equal(buf + i, buf + i + 1, 15);
        }
    }
}

static void a_crash_at_any_point_keeps_what_was_flushed(void **state)
{
    struct history h;
    struct vol_stack s = {0}, again = {0};
    struct blk *record = NULL, *record_again = NULL;
    unsigned char *image = malloc(3 * MIB);
    uint64_t seed = test_seed();

    (void)state;
    open_recorded(&s, &record);
    history_make(&h, &s, record);
    open_recorded(&again, &record_again);
    for (unsigned n = 0; n <= N_WRITES; n++)
        for (unsigned density = 0; density <= 256; density += 64) {
            blk_record_replay(record, image, h.log_at[n], test_random(&seed), density);
            memcpy(blk_memory_bytes(record_again->below), image, 3 * MIB);
            check_crash(&again, &h, n);
        }
    vol_stack_close(&s);
    vol_stack_close(&again);
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_is_there_after_opening_again),
        cmocka_unit_test(a_new_disk_reads_as_zeros),
        cmocka_unit_test(options_and_header_flags_arrive),
        cmocka_unit_test(a_wrong_passphrase_opens_nothing),
        cmocka_unit_test(a_second_writer_is_kept_out),
        cmocka_unit_test(creating_refuses_what_is_there_and_impossible_geometry),
        cmocka_unit_test(a_crash_at_any_point_keeps_what_was_flushed),
    };

    return cmocka_run_group_tests_name("open", tests, start, end);
}
