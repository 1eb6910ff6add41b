/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/native/backup.c, dump.c and check.c: a backup opens what the container opens,
 * putting one back leaves the old or the new header wherever it is stopped, nothing secret is
 * shown, and what is wrong with a header is said. */

#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "block/record.h"
#include "keystore/format.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { SLOT_2 = 0x400, M_KIB = SLOT_2 + 8, WRAPPED = SLOT_2 + 0x38, UNIT = 0x3c };

static const struct key_format *native;

static int start(void **state)
{
    native = key_format_named("native");
    return native == NULL ? -1 : test_start(state);
}

static unsigned char *copy(struct blk *b, unsigned i)
{
    return blk_memory_bytes(b) + (size_t)i * NATIVE_COPY_STEP;
}

/* A container whose slot 2 opens with passphrase. */
static struct blk *container(struct native_header h, const char *passphrase)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_SECRET struct secret master = {0};
    unsigned char block[NATIVE_BLOCK];

    container_block(block, &h);
    container_credential(&cred, passphrase, NULL);
    container_master(&master);
    assert_int_equal(
        native_slot_wrap(block + SLOT_2, 2, &h, &container_cost, "slot", &cred, &master, NULL), 0);
    container_reseal(block, 1);
    return container_open(block);
}

static struct blk *usual(void)
{
    return container(container_header(), "old horse");
}

static struct key_store *opened(struct blk *header, struct blk *data)
{
    struct key_store *ks = NULL;

    assert_int_equal(native->open(&ks, header, data, NULL), 0);
    return ks;
}

/* What unlocking says; the other end of header and data is the caller's. */
static int unlock(struct blk *header, struct blk *data, const char *passphrase)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    int r = native->open(&ks, header, data, NULL);

    container_credential(&cred, passphrase, NULL);
    if (r == 0)
        r = native->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL);
    native->close(ks);
    return r;
}

static struct blk *backup_of(struct blk *b)
{
    struct key_store *ks = opened(b, b);
    struct blk *to = NULL;

    assert_int_equal(blk_memory_open(&to, native->header_size(ks), 1), 0);
    assert_int_equal(native->backup(ks, to, NULL), 0);
    native->close(ks);
    return to;
}

static void a_backup_opens_what_the_container_opens(void **state)
{
    AUTO_BLK struct blk *b = usual(), *saved = NULL;

    (void)state;
    memset(copy(b, 0), 0x3c, NATIVE_BLOCK);
    saved = backup_of(b);
    assert_memory_equal(copy(saved, 0), copy(b, 1), NATIVE_BLOCK);
    assert_memory_equal(copy(saved, 1), copy(b, 1), NATIVE_BLOCK);
    assert_int_equal(unlock(saved, b, "old horse"), 0);
    assert_int_equal(native->check(saved, b, NULL), 0);
}

static void a_backup_of_an_erased_header_brings_it_back(void **state)
{
    AUTO_BLK struct blk *b = usual(), *saved = backup_of(b);
    struct key_store *ks;

    (void)state;
    memset(copy(b, 0), 0xa5, NATIVE_BLOCK);
    memset(copy(b, 1), 0x5a, NATIVE_BLOCK);
    ks = opened(saved, b);
    assert_int_equal(native->restore(ks, b, NULL), 0);
    native->close(ks);
    assert_int_equal(unlock(b, b, "old horse"), 0);
    assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
}

/* Copies before the restore: equal, copy 0 damaged, copy 1 damaged, copy 0 or copy 1 older. */
static struct blk *before_restore(unsigned how)
{
    struct blk *b = container(container_header(), "new horse");

    if (how == 1 || how == 2)
        memset(copy(b, how - 1), 0x3c, NATIVE_BLOCK);
    if (how == 3 || how == 4) {
        memcpy(copy(b, how - 3) + SLOT_2, "\0", 1);
        bytes_put_le64(copy(b, how - 3) + 0x10, 3);
        container_reseal(copy(b, how - 3), 1);
    }
    return b;
}

/* saved is put back into b, which records. */
static void put_back(struct blk *saved, struct blk *b)
{
    struct key_store *ks = opened(saved, b);

    assert_int_equal(native->restore(ks, b, NULL), 0);
    native->close(ks);
}

static void assert_one_opens(struct blk *b, bool complete)
{
    int old = unlock(b, b, "old horse"), new = unlock(b, b, "new horse");

    if (complete)
        assert_int_equal(old, 0);
    else if (old != 0)
        assert_int_equal(new, 0);
}

/* With a backup whose sequence numbers are lower than, equal to and higher than the container's. */
static void a_crash_during_a_restore_leaves_a_header_that_opens(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned how = 0; how < 15; how++) {
        AUTO_BLK struct blk *b = NULL, *source = NULL, *saved = NULL, *left = NULL;
        struct native_header h = container_header();
        size_t n_entries;

        h.seq = 4 + how / 5;
        source = container(h, "old horse");
        saved = backup_of(source);
        assert_int_equal(blk_record_open(&b, before_restore(how % 5)), 0);
        put_back(saved, b);
        assert_int_equal(blk_memory_open(&left, CONTAINER_SIZE, 1), 0);
        blk_record_log(b, &n_entries);
        assert_int_equal(n_entries, 4);
        for (size_t n = 0; n <= n_entries; n++)
            for (unsigned density = 0; density <= BLK_RECORD_ALL; density += 32) {
                const struct blk_record_crash crash = {
                    .n_entries = n, .piece = 512, .density = density, .seed = test_random(&seed)};

                blk_record_replay_crash(b, blk_memory_bytes(left), &crash);
                assert_one_opens(left, n == n_entries);
            }
    }
}

static void a_restore_that_fails_stops_before_the_good_copy(void **state)
{
    const struct blk_fault fail = {.ops = BLK_FAULT_FLUSH, .err = EIO};
    AUTO_BLK struct blk *b = NULL, *memory = container(container_header(), "new horse");
    AUTO_BLK struct blk *source = usual(), *saved = backup_of(source);
    struct test_report said;
    struct key_store *ks;

    (void)state;
    test_report_init(&said);
    assert_int_equal(blk_fault_open(&b, memory), 0);
    memory = NULL;
    blk_fault_add(b, &fail);
    ks = opened(saved, b);
    assert_int_equal(native->restore(ks, b, &said.rep), -EIO);
    assert_true(test_report_has(&said, "cannot write header copy 1"));
    native->close(ks);
    assert_int_equal(unlock(b, b, "new horse"), 0);
}

static int restore_check(struct native_header from, struct native_header now, const char *said)
{
    AUTO_BLK struct blk *a = container(from, "a"), *b = container(now, "b");
    struct key_store *backup = opened(a, a), *ks = opened(b, b);
    struct test_report t;
    int r;

    test_report_init(&t);
    r = native->restore_check(backup, ks, &t.rep);
    assert_int_equal(t.n_lines, r == 0 ? 0 : 1);
    if (r != 0 && !test_report_has(&t, said))
        fail_msg("said \"%s\"", t.line[0]);
    native->close(backup);
    native->close(ks);
    return r;
}

static void what_would_lose_data_is_known_before(void **state)
{
    struct native_header now = container_header(), from = now;

    (void)state;
    from.seq = 3;
    strcpy(from.label, "older");
    assert_int_equal(restore_check(from, now, NULL), 0);
    from.salt[0] ^= 1;
    assert_int_equal(restore_check(from, now, "another volume key"), -EPERM);
    from = now;
    from.capacity -= from.unit;
    assert_int_equal(restore_check(from, now, "was resized"), -EPERM);
    from = now;
    from.incompat = NATIVE_INCOMPAT_REENCRYPT;
    assert_int_equal(restore_check(from, now, "middle of a re-encryption"), -EPERM);
    assert_int_equal(restore_check(now, from, "not finished"), -EBUSY);
}

static void a_running_reencryption_is_not_backed_up(void **state)
{
    struct native_header h = container_header();
    AUTO_BLK struct blk *b = NULL, *to = NULL;
    struct key_store *ks;

    (void)state;
    h.incompat = NATIVE_INCOMPAT_REENCRYPT;
    b = container(h, "old horse");
    ks = opened(b, b);
    assert_int_equal(blk_memory_open(&to, native->header_size(ks), 1), 0);
    assert_int_equal(native->backup(ks, to, NULL), -EBUSY);
    native->close(ks);
    assert_true(bytes_are_zero(blk_memory_bytes(to), to->size));
}

/* --- dump --- */

struct text_dump {
    struct key_dump dump;
    unsigned depth;
    char text[8192];
};

static void add(struct key_dump *d, const char *name, const char *value)
{
    struct text_dump *t = container_of(d, struct text_dump, dump);
    size_t n = strlen(t->text);

    assert_true(n + strlen(name) + strlen(value) + 3 < sizeof(t->text));
    snprintf(t->text + n, sizeof(t->text) - n, "%s=%s\n", name, value);
}

static void add_number(struct key_dump *d, const char *name, uint64_t value)
{
    char text[32];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
    add(d, name, text);
}

static void add_flag(struct key_dump *d, const char *name, bool value)
{
    add(d, name, value ? "true" : "false");
}

static void add_bytes(struct key_dump *d, const char *name, const unsigned char *bytes, size_t len)
{
    char text[256];

    assert_true(2 * len < sizeof(text));
    for (size_t i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    add(d, name, text);
}

static void begin(struct key_dump *d, const char *name)
{
    container_of(d, struct text_dump, dump)->depth++;
    add(d, "begin", name);
}

static void end(struct key_dump *d)
{
    assert_true(container_of(d, struct text_dump, dump)->depth-- > 0);
}

static void dump(struct text_dump *t, struct blk *b)
{
    struct key_store *ks = opened(b, b);

    *t = (struct text_dump){.dump = {.text = add,
                                     .number = add_number,
                                     .flag = add_flag,
                                     .bytes = add_bytes,
                                     .begin = begin,
                                     .end = end}};
    native->dump(ks, &t->dump);
    native->close(ks);
    assert_int_equal(t->depth, 0);
}

static void a_dump_has_the_fields_of_both_copies(void **state)
{
    static const char *const wanted[] = {
        "begin=copy_0\noffset=0\nstate=whole\ncurrent=true\n",
        "seq=5\n",
        "uuid=30313233-3435-3637-3839-616263646500\n",
        "cipher_name=aes-256-xts\n",
        "capacity=65536\n",
        "slot_seq=7\n",
        "begin=slot_2\n",
        "opens_with=a passphrase\n",
        "kdf_memory_kib=8\n",
        "label=slot\n",
        "begin=copy_1\noffset=524288\nstate=damaged\ncurrent=false\n",
    };
    AUTO_BLK struct blk *b = usual();
    struct text_dump t;

    (void)state;
    copy(b, 1)[0xfff] ^= 1;
    dump(&t, b);
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (strstr(t.text, wanted[i]) == NULL)
            fail_msg("\"%s\" is missing in:\n%s", wanted[i], t.text);
    assert_non_null(strstr(strstr(t.text, "copy_1"), "seq=5\n"));
}

static void equal_copies_are_shown_once(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct text_dump t;

    (void)state;
    dump(&t, b);
    assert_non_null(strstr(strstr(t.text, "copy_1"), "same_as_copy_0=true\n"));
    assert_null(strstr(strstr(t.text, "copy_1"), "seq="));
}

/* Eight bytes of the wrapped key, and of its tag, are nowhere in it. */
static void a_dump_shows_nothing_that_a_passphrase_can_be_guessed_with(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct text_dump t;

    (void)state;
    copy(b, 1)[0xfff] ^= 1; /* so that both are shown */
    dump(&t, b);
    for (size_t at = WRAPPED; at + 8 <= SLOT_2 + 0x98; at++) {
        char hex[17];

        if (at + 8 > WRAPPED + 32 && at < SLOT_2 + 0x78) /* reserved: zeros */
            continue;
        for (size_t i = 0; i < 8; i++)
            snprintf(hex + 2 * i, 3, "%02x", copy(b, 0)[at + i]);
        assert_null(strstr(t.text, hex));
    }
}

/* --- check --- */

struct damage {
    const char *said;
    int r;
    unsigned copies; /* bit i: done to copy i */
    size_t at;
    unsigned char value;
    bool sealed; /* with a checksum and a MAC that fit */
};

static void every_fault_of_a_header_is_said(void **state)
{
    static const struct damage damages[] = {
        {"header copy 0: the header is damaged: its checksum does not fit", -EBADMSG, 1, 0x800, 1,
         false},
        {"header copy 1: the header is damaged: its checksum does not fit", -EBADMSG, 2, 0x800, 1,
         false},
        {"header copy 1: the header claims sectors of", -EBADMSG, 2, UNIT, 1, true},
        {"header copy 0 is out of date", -EBADMSG, 2, 0x10, 6, true},
        {"header copy 1 is out of date", -EBADMSG, 2, 0x10, 4, true},
        {"header copy 1: the container has format version 2.0", -EOPNOTSUPP, 3, 0x8, 2, true},
        {"header copy 0: key slot 2 asks for an impossible derivation", -EBADMSG, 3, M_KIB + 3, 255,
         true},
        {"header copy 0: key slot 2 is of a kind", -EOPNOTSUPP, 3, SLOT_2 + 1, 9, true},
        {"header copy 1: no key slot is in use: the container was erased", -EKEYREJECTED, 3, SLOT_2,
         0, true},
        {"header copy 0: the container is cut short", -EBADMSG, 3, 0xc2, 2, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        const struct damage *d = &damages[i];
        AUTO_BLK struct blk *b = usual();
        struct test_report said;
        int r;

        for (unsigned n = 0; n < NATIVE_COPIES; n++) {
            copy(b, n)[d->at] = d->copies >> n & 1 ? d->value : copy(b, n)[d->at];
            if (d->sealed)
                container_reseal(copy(b, n), 1);
        }
        test_report_init(&said);
        r = native->check(b, b, &said.rep);
        if (r != d->r || !test_report_has(&said, d->said))
            fail_msg("row %zu: %d, %s", i, r, said.n_lines > 0 ? said.line[0] : "in silence");
    }
}

static void a_sound_header_gets_no_line(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct test_report said;

    (void)state;
    test_report_init(&said);
    assert_int_equal(native->check(b, b, &said.rep), 0);
    assert_int_equal(said.n_lines, 0);
}

static void a_file_too_short_for_a_header_is_no_header(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    struct test_report said;

    (void)state;
    test_report_init(&said);
    assert_int_equal(blk_memory_open(&b, 512, 1), 0);
    assert_int_equal(native->check(b, b, &said.rep), -EBADMSG);
    assert_true(said.n_lines >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backup_opens_what_the_container_opens),
        cmocka_unit_test(a_backup_of_an_erased_header_brings_it_back),
        cmocka_unit_test(a_crash_during_a_restore_leaves_a_header_that_opens),
        cmocka_unit_test(a_restore_that_fails_stops_before_the_good_copy),
        cmocka_unit_test(what_would_lose_data_is_known_before),
        cmocka_unit_test(a_running_reencryption_is_not_backed_up),
        cmocka_unit_test(a_dump_has_the_fields_of_both_copies),
        cmocka_unit_test(equal_copies_are_shown_once),
        cmocka_unit_test(a_dump_shows_nothing_that_a_passphrase_can_be_guessed_with),
        cmocka_unit_test(every_fault_of_a_header_is_said),
        cmocka_unit_test(a_sound_header_gets_no_line),
        cmocka_unit_test(a_file_too_short_for_a_header_is_no_header),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
