/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/native/ as a whole, over memory: which copy counts, what damage does, in which
 * order an update is written, and that nothing is written that need not be. */

#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "block/record.h"
#include "keystore/format.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum {
    SLOTS = 0x200,
    SEQ = 0x10,
    INCOMPAT = 0x28,
    RO_COMPAT = 0x2c,
    UNIT = 0x3c,
    SLOT_SEQ = 0x1b8
};

static const struct key_format *native;
static const struct kdf_request cheapest = {.memory = 64 << 20, .iterations = 3};

static int start(void **state)
{
    native = key_format_named("native");
    return native == NULL ? -1 : test_start(state);
}

static unsigned char *copy(struct blk *b, unsigned i)
{
    return blk_memory_bytes(b) + (size_t)i * NATIVE_COPY_STEP;
}

/* A container with h in both copies. */
static struct blk *with_header(struct native_header h)
{
    unsigned char block[NATIVE_BLOCK];

    container_block(block, &h);
    return container_open(block);
}

static struct blk *usual(void)
{
    return with_header(container_header());
}

/* As usual, copy i with seq and slot_seq of its own. */
static void renumber(struct blk *b, unsigned i, uint64_t seq, uint64_t slot_seq)
{
    bytes_put_le64(copy(b, i) + SEQ, seq);
    bytes_put_le64(copy(b, i) + SLOT_SEQ, slot_seq);
    container_reseal(copy(b, i), 1);
}

/* Open and unlock; *v may be NULL. */
static int unlock(struct blk *b, const char *passphrase, struct key_volume *v, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume own = {0};
    struct key_store *ks = NULL;
    int r = native->open(&ks, b, b, rep);

    container_credential(&cred, passphrase, NULL);
    if (r == 0)
        r = native->unlock(ks, &cred, KEY_SLOT_ANY, v != NULL ? v : &own, rep);
    native->close(ks);
    return r;
}

static struct key_store *opened(struct blk *b)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;

    container_credential(&cred, "old horse", NULL);
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL), 0);
    return ks;
}

/* --- create, open --- */

static void a_new_container_opens_as_it_was_asked_for(void **state)
{
    struct key_create req = {.cipher = "aes-128-xts",
                             .sector_size = 512,
                             .size = CONTAINER_DISK,
                             .discard = true,
                             .label = "photographs",
                             .kdf = cheapest};
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_slot_info info;
    struct key_store *ks = NULL;
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(native->container_size(&(struct key_create){.size = CONTAINER_DISK}),
                     CONTAINER_SIZE);
    assert_int_equal(blk_memory_open(&b, CONTAINER_SIZE, 1), 0);
    memset(blk_memory_bytes(b), 0x77, CONTAINER_SIZE);
    container_credential(&cred, "old horse", "and a file");
    assert_int_equal(native->recognise(b), 0);
    assert_int_equal(native->create(b, b, &req, &cred, NULL), 0);
    assert_int_equal(native->recognise(b), 1);
    assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
    assert_true(bytes_are_zero(copy(b, 0) + NATIVE_BLOCK, NATIVE_COPY_STEP - NATIVE_BLOCK));
    for (size_t i = NATIVE_DATA; i < CONTAINER_SIZE; i++)
        assert_int_equal(blk_memory_bytes(b)[i], 0x77);

    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->slots(ks, &info, 1, NULL), 1);
    assert_int_equal(info.index, 0);
    assert_int_equal(info.kind, KEY_SLOT_BOTH);
    assert_int_equal(info.cost.m_kib, 64 * 1024);
    assert_int_equal(info.cost.t, 3);
    assert_int_equal(native->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL), 0);
    assert_string_equal(v.format, "native");
    assert_string_equal(v.cipher, "aes-128-xts");
    assert_string_equal(v.label, "photographs");
    assert_int_equal(v.sector_size, 512);
    assert_int_equal(v.data_offset, NATIVE_DATA);
    assert_int_equal(v.size, CONTAINER_DISK);
    assert_int_equal(v.rule.chunk_shift, 32);
    assert_true(v.zero_pieces && v.discard);
    assert_int_equal(v.rule.prk.len, 32);
    assert_memory_equal(v.rule.head, "hushvol v1 xts", v.rule.head_len);
    assert_int_equal(v.rule.tail_len, 32);
    native->close(ks);
}

/* As whoever creates one asks. */
static int check(const struct key_create *req, struct report *rep)
{
    struct key_create prepared = *req;
    int r = native->prepare(&prepared, rep);

    return r < 0 ? r : native->check_create(&prepared, rep);
}

static void what_cannot_be_created_is_refused_before_anything_is_written(void **state)
{
    const struct key_create good = {
        .cipher = "aes-256-xts", .sector_size = 4096, .size = CONTAINER_DISK, .kdf = cheapest};
    struct key_create bad[13];
    const int want[] = {-EOPNOTSUPP, -EINVAL,     -EINVAL,    -EINVAL, -EINVAL,
                        -EINVAL,     -EINVAL,     -EINVAL,    -EINVAL, -EOPNOTSUPP,
                        -EOPNOTSUPP, -EOPNOTSUPP, -EOPNOTSUPP};
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    for (unsigned i = 0; i < 13; i++)
        bad[i] = good;
    bad[0].cipher = "aes-256-gcm";
    bad[1].sector_size = 256;
    bad[2].sector_size = 131072;
    bad[3].sector_size = 4608;
    bad[4].size = 0;
    bad[5].size = CONTAINER_DISK + 512;
    bad[6].size = UINT64_C(1) << 63;
    bad[7].label = "forty-nine bytes are one more than a label may be";
    bad[8].kdf.memory = 1 << 20;
    bad[9].integrity = "hmac-sha256"; /* of other formats */
    bad[10].key_bits = 256;
    bad[11].version = "7";
    bad[12].flags = "boot";
    container_credential(&cred, "old horse", NULL);
    assert_int_equal(blk_memory_open(&b, CONTAINER_SIZE, 1), 0);
    for (unsigned i = 0; i < 13; i++) {
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(check(&bad[i], &said.rep), want[i]);
        assert_int_equal(said.n_lines, 1);
        if (i > 0 && i < 9) /* the others are for prepare alone */
            assert_int_equal(native->create(b, b, &bad[i], &cred, NULL), want[i]);
    }
    assert_true(bytes_are_zero(blk_memory_bytes(b), CONTAINER_SIZE));
    assert_int_equal(check(&good, NULL), 0);
}

/* --- damage --- */

/* b must be refused with this error and exactly one line, and stay as it is. */
static void refused(struct blk *b, int want, const char *words)
{
    AUTO_FREE unsigned char *before = malloc(b->size + 1);
    const struct key_format *format;
    struct test_report said;
    int r;

    memcpy(before, blk_memory_bytes(b), b->size);
    test_report_init(&said);
    r = key_recognise(&format, b, &said.rep);
    if (r == 0)
        r = unlock(b, "old horse", NULL, &said.rep);
    assert_int_equal(r, want);
    assert_int_equal(said.level[said.n_lines - 1], REPORT_ERROR);
    for (unsigned i = 0; i + 1 < said.n_lines; i++)
        assert_int_not_equal(said.level[i], REPORT_ERROR);
    assert_true(test_report_has(&said, words));
    assert_memory_equal(before, blk_memory_bytes(b), b->size);
}

static void one_damaged_copy_is_named_and_the_other_opens(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        AUTO_BLK struct blk *b = usual();
        unsigned char *c = copy(b, i % 2);
        struct test_report said;

        if (i < 2)
            memset(c, 0, NATIVE_BLOCK);
        else if (i < 4)
            test_random_bytes(&seed, c, NATIVE_BLOCK);
        else
            c[test_random(&seed) % NATIVE_BLOCK] ^= (unsigned char)(1 << i % 8);
        test_report_init(&said);
        assert_int_equal(native->recognise(b), 1);
        assert_int_equal(unlock(b, "old horse", NULL, &said.rep), 0);
        assert_int_equal(said.n_lines, 1);
        assert_int_equal(said.level[0], REPORT_WARN);
        assert_true(test_report_has(&said, i % 2 ? "copy 1 is damaged" : "copy 0 is damaged"));
    }
}

static void two_damaged_copies_are_refused(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        AUTO_BLK struct blk *b = usual();

        for (unsigned c = 0; c < 2; c++)
            copy(b, c)[8 + test_random(&seed) % (NATIVE_BLOCK - 8)] ^= 1;
        refused(b, -EBADMSG, "damaged");
    }
}

static void what_is_no_container_is_refused(void **state)
{
    AUTO_BLK struct blk *zeros = NULL, *noise = NULL, *luks = NULL, *empty = NULL;
    uint64_t seed = test_seed();

    (void)state;
    assert_int_equal(blk_memory_open(&zeros, CONTAINER_SIZE, 1), 0);
    refused(zeros, -EBADMSG, "begins with zeros");
    assert_int_equal(blk_memory_open(&noise, CONTAINER_SIZE, 1), 0);
    test_random_bytes(&seed, blk_memory_bytes(noise), CONTAINER_SIZE);
    refused(noise, -EBADMSG, "not a container");
    assert_int_equal(blk_memory_open(&luks, 4096, 1), 0);
    memcpy(blk_memory_bytes(luks), "LUKS\xba\xbe", 6);
    refused(luks, -EOPNOTSUPP, "LUKS");
    assert_int_equal(blk_memory_open(&empty, 0, 1), 0);
    refused(empty, -EBADMSG, "empty");
}

static void a_container_that_was_cut_short_says_so(void **state)
{
    static const uint64_t sizes[] = {8,
                                     100,
                                     4095,
                                     4096,
                                     0x80000,
                                     0x80000 + 100,
                                     0x80000 + 4096,
                                     NATIVE_DATA,
                                     NATIVE_DATA + 1,
                                     CONTAINER_SIZE - 1};

    (void)state;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        AUTO_BLK struct blk *whole = usual();
        AUTO_BLK struct blk *b = NULL;

        assert_int_equal(blk_memory_open(&b, sizes[i], 1), 0);
        memcpy(blk_memory_bytes(b), blk_memory_bytes(whole), sizes[i]);
        refused(b, -EBADMSG, "cut short");
    }
}

static void a_device_of_large_blocks_is_read_in_whole_ones(void **state)
{
    AUTO_BLK struct blk *plain = usual();
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&b, CONTAINER_SIZE, 4096), 0);
    memcpy(blk_memory_bytes(b), blk_memory_bytes(plain), CONTAINER_SIZE);
    assert_int_equal(native->recognise(b), 1);
    assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
}

static void an_unreadable_copy_is_named_and_the_other_opens(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        AUTO_BLK struct blk *b = NULL;
        struct blk_fault bad = {.ops = BLK_FAULT_READ,
                                .off = (uint64_t)i * NATIVE_COPY_STEP,
                                .len = NATIVE_BLOCK,
                                .err = EIO};
        struct test_report said;

        assert_int_equal(blk_fault_open(&b, usual()), 0);
        blk_fault_add(b, &bad);
        test_report_init(&said);
        assert_int_equal(native->recognise(b), 1);
        assert_int_equal(unlock(b, "old horse", NULL, &said.rep), 0);
        assert_true(test_report_has(&said, "cannot be read"));
        bad.off = 0;
        bad.len = 0;
        blk_fault_add(b, &bad);
        assert_int_equal(native->recognise(b), -EIO);
        assert_int_equal(unlock(b, "old horse", NULL, NULL), -EIO);
    }
}

/* --- which copy counts --- */

static void the_newest_copy_counts(void **state)
{
    static const struct {
        uint64_t seq[2], slot_seq[2];
        const char *label;
    } cases[] = {
        {{5, 6}, {9, 1}, "one"},  {{6, 5}, {1, 9}, "zero"}, {{5, 5}, {1, 2}, "one"},
        {{5, 5}, {2, 1}, "zero"}, {{5, 5}, {2, 2}, "zero"}, {{0, UINT64_MAX - 1}, {0, 0}, "one"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BLK struct blk *b = usual();
        AUTO_KEY_VOLUME struct key_volume v = {0};

        for (unsigned c = 0; c < 2; c++) {
            strcpy((char *)copy(b, c) + 0xc8, c == 0 ? "zero" : "one");
            renumber(b, c, cases[i].seq[c], cases[i].slot_seq[c]);
        }
        assert_int_equal(unlock(b, "old horse", &v, NULL), 0);
        assert_string_equal(v.label, cases[i].label);
    }
}

static void an_erased_container_stays_erased_although_the_other_copy_has_slots(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_slot_info info;
    struct key_store *ks = NULL;

    (void)state;
    memset(copy(b, 1) + SLOTS, 0, NATIVE_BLOCK - SLOTS);
    memset(copy(b, 1) + SLOTS + 1, 0x99, 255); /* as removing leaves it */
    renumber(b, 1, 5, 8);
    refused(b, -EKEYREJECTED, "erased");
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->slots(ks, &info, 1, NULL), 0);
    native->close(ks);
}

static void what_the_newest_copy_needs_is_not_avoided_through_the_older(void **state)
{
    AUTO_BLK struct blk *b = usual();

    (void)state;
    bytes_put_le32(copy(b, 1) + INCOMPAT, 2);
    renumber(b, 1, 6, 8);
    refused(b, -EOPNOTSUPP, "features");
    renumber(b, 0, 7, 9);
    assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
}

static void a_newest_copy_out_of_range_gives_way_to_the_other(void **state)
{
    AUTO_BLK struct blk *b = usual();

    (void)state;
    bytes_put_le32(copy(b, 1) + UNIT, 3);
    renumber(b, 1, 6, 8);
    assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
    renumber(b, 0, UINT64_MAX, 8);
    refused(b, -EBADMSG, "claims");
}

static void a_newest_copy_whose_mac_fails_gives_way_to_the_other(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct test_report said;

    (void)state;
    bytes_put_le64(copy(b, 0) + SEQ, 6); /* as if it were newer */
    container_reseal(copy(b, 0), 0);
    test_report_init(&said);
    assert_int_equal(unlock(b, "old horse", NULL, &said.rep), 0);
    assert_true(test_report_has(&said, "copy 0 was damaged or changed"));
    bytes_put_le64(copy(b, 1) + SEQ, 6);
    container_reseal(copy(b, 1), 0);
    refused(b, -EBADMSG, "authentication");
}

static void unknown_read_only_features_allow_reading(void **state)
{
    struct native_header h = container_header();
    AUTO_BLK struct blk *b = NULL;

    (void)state;
    h.ro_compat = 4;
    b = with_header(h);
    refused(b, -EOPNOTSUPP, "read-only");
    b->read_only = true;
    assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
}

/* --- unlock --- */

static void a_wrong_passphrase_gets_one_line(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct test_report said;

    (void)state;
    test_report_init(&said);
    assert_int_equal(unlock(b, "new horse", NULL, &said.rep), -EKEYREJECTED);
    assert_int_equal(said.n_lines, 1);
    assert_string_equal(said.line[0], "no key slot opens with this passphrase");
}

static void a_named_slot_is_the_only_one_tried(void **state)
{
    static const struct {
        int slot, want;
        const char *words;
    } cases[] = {
        {2, 0, NULL},
        {1, -EKEYREJECTED, "key slot 1 is empty"},
        {14, -EINVAL, "no key slot 14"},
        {-2, -EINVAL, "no key slot -2"},
    };
    AUTO_BLK struct blk *b = usual();
    AUTO_CREDENTIAL struct credential cred = {0}, wrong = {0}, file = {0};
    struct key_store *ks = NULL;
    struct test_report said;

    (void)state;
    container_credential(&cred, "old horse", NULL);
    container_credential(&wrong, "new horse", NULL);
    container_credential(&file, NULL, "old horse");
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    test_report_init(&said);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_KEY_VOLUME struct key_volume v = {0};

        assert_int_equal(native->unlock(ks, &cred, cases[i].slot, &v, &said.rep), cases[i].want);
        assert_true(cases[i].want == 0 || test_report_has(&said, cases[i].words));
    }
    assert_int_equal(native->unlock(ks, &wrong, 2, NULL, &said.rep), -EKEYREJECTED);
    assert_true(test_report_has(&said, "key slot 2 does not open"));
    assert_int_equal(native->unlock(ks, &file, 2, NULL, &said.rep), -EKEYREJECTED);
    assert_true(test_report_has(&said, "key slot 2 is one for a passphrase"));
    assert_int_equal(native->unlock(ks, &file, KEY_SLOT_ANY, NULL, &said.rep), -EKEYREJECTED);
    assert_true(test_report_has(&said, "no key slot is one for key files"));
    native->close(ks);
}

/* Copy the slot to another place, where it cannot open, and change a byte or the cost. */
static void add_odd_slot(struct blk *b, unsigned index, size_t at, unsigned char value)
{
    for (unsigned c = 0; c < 2; c++) {
        unsigned char *slots = copy(b, c) + SLOTS;

        memcpy(slots + index * NATIVE_SLOT, slots + 2 * NATIVE_SLOT, NATIVE_SLOT);
        slots[index * NATIVE_SLOT + at] = value;
        container_reseal(copy(b, c), 1);
    }
}

static void a_slot_that_cannot_be_tried_is_passed_over(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
        int want;
        const char *words;
    } odd[] = {
        {0x10, 2, -EBADMSG, "impossible"},          /* lanes */
        {0x0d, 1, -EBADMSG, "impossible"},          /* 257 passes */
        {0x0b, 1, -EBADMSG, "impossible"},          /* 16 GiB */
        {0x02, 9, -EOPNOTSUPP, "does not support"}, /* another derivation */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        AUTO_BLK struct blk *b = usual();
        struct test_report said;

        add_odd_slot(b, 0, odd[i].at, odd[i].value);
        test_report_init(&said);
        assert_int_equal(unlock(b, "old horse", NULL, &said.rep), 0);
        assert_int_equal(said.n_lines, 1);
        assert_true(test_report_has(&said, "key slot 0 is passed over"));
        assert_int_equal(unlock(b, "new horse", NULL, &said.rep), odd[i].want);
        assert_true(test_report_has(&said, odd[i].words));
    }
}

static void slots_of_unknown_kinds_alone_are_no_erased_container(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_slot_info info;
    struct key_store *ks = NULL;

    (void)state;
    add_odd_slot(b, 2, 0x01, 9);
    refused(b, -EOPNOTSUPP, "does not support");
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->slots(ks, &info, 1, NULL), -EOPNOTSUPP);
    native->close(ks);
}

/* --- repair --- */

static void repair_makes_both_copies_the_verified_one(void **state)
{
    static const char *const words[] = {"damaged",     "damaged",     "out of date",
                                        "out of date", "out of date", "out of date"};

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        AUTO_BLK struct blk *b = usual();
        unsigned char want[NATIVE_BLOCK];
        struct test_report said;
        struct key_store *ks;

        if (i < 2)
            memset(copy(b, i), 0x3c, NATIVE_BLOCK);
        else if (i < 4)
            renumber(b, i - 2, 4, 7);
        else {
            bytes_put_le64(copy(b, i - 4) + SEQ, 6); /* newer, but the MAC fails */
            container_reseal(copy(b, i - 4), 0);
        }
        memcpy(want, copy(b, 1 - i % 2), NATIVE_BLOCK);
        ks = opened(b);
        test_report_init(&said);
        assert_int_equal(native->repair(ks, &said.rep), 0);
        assert_true(test_report_has(&said, words[i]));
        assert_int_equal(native->repair(ks, &said.rep), 0);
        assert_int_equal(said.n_lines, 1);
        native->close(ks);
        for (unsigned c = 0; c < 2; c++)
            assert_memory_equal(copy(b, c), want, NATIVE_BLOCK);
    }
}

static void opening_and_a_needless_repair_write_nothing(void **state)
{
    AUTO_BLK struct blk *b = NULL;
    struct key_store *ks;
    size_t n;

    (void)state;
    assert_int_equal(blk_record_open(&b, usual()), 0);
    ks = opened(b);
    assert_int_equal(native->repair(ks, NULL), 0);
    native->close(ks);
    blk_record_log(b, &n);
    assert_int_equal(n, 0);
}

/* --- add --- */

static int add(struct key_store *ks, const char *passphrase, int slot, const char *label,
               struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    struct key_patch p;
    int r;

    container_credential(&cred, passphrase, NULL);
    r = native->seal(ks, KEY_PATCH_ADD, &cred, slot, label, &cheapest, &p, rep);
    if (r == 0)
        r = native->apply(ks, &p, rep);
    return r < 0 ? r : (int)p.slot;
}

static void an_added_slot_opens_and_is_listed(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_slot_info info[NATIVE_SLOTS];
    struct key_store *ks = opened(b);

    (void)state;
    assert_int_equal(add(ks, "second", KEY_SLOT_ANY, "her laptop", NULL), 0);
    assert_int_equal(add(ks, "third", 13, NULL, NULL), 13);
    assert_int_equal(native->slots(ks, info, NATIVE_SLOTS, NULL), 3);
    assert_int_equal(info[0].index, 0);
    assert_string_equal(info[0].label, "her laptop");
    assert_int_equal(info[1].index, 2);
    assert_int_equal(info[2].index, 13);
    assert_string_equal(info[2].label, "");
    native->close(ks);
    assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
    assert_int_equal(bytes_get_le64(copy(b, 0) + SEQ), 7);
    assert_int_equal(bytes_get_le64(copy(b, 0) + SLOT_SEQ), 9);
    assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
    assert_int_equal(unlock(b, "third", NULL, NULL), 0);
}

static void what_cannot_be_added_changes_nothing(void **state)
{
    AUTO_BLK struct blk *b = usual();
    AUTO_FREE unsigned char *before = malloc(CONTAINER_SIZE);
    struct key_store *ks = opened(b);
    struct test_report said;

    (void)state;
    test_report_init(&said);
    memcpy(before, blk_memory_bytes(b), CONTAINER_SIZE);
    assert_int_equal(add(ks, "x", 2, NULL, &said.rep), -EEXIST);
    assert_int_equal(add(ks, "x", 14, NULL, &said.rep), -EINVAL);
    assert_int_equal(add(ks, "x", 0, "thirty-three bytes are one too many", &said.rep), -EINVAL);
    assert_int_equal(said.n_lines, 3);
    native->close(ks);
    for (unsigned i = 0; i < NATIVE_SLOTS; i++)
        if (i != 2)
            add_odd_slot(b, i, 0xff, 0);
    ks = opened(b);
    memcpy(before, blk_memory_bytes(b), CONTAINER_SIZE);
    assert_int_equal(add(ks, "x", KEY_SLOT_ANY, NULL, &said.rep), -ENOSPC);
    assert_true(test_report_has(&said, "all 14 key slots"));
    native->close(ks);
    assert_memory_equal(before, blk_memory_bytes(b), CONTAINER_SIZE);
}

static void a_header_changed_too_often_is_not_changed_again(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_store *ks;

    (void)state;
    renumber(b, 0, UINT64_MAX - 1, 1);
    renumber(b, 1, UINT64_MAX - 1, 1);
    ks = opened(b);
    assert_int_equal(add(ks, "x", KEY_SLOT_ANY, NULL, NULL), -EOVERFLOW);
    native->close(ks);
}

/* What a crash may leave after the first n entries of the log, as a device. */
static struct blk *after_crash(struct blk *recorded, size_t n, uint64_t seed, unsigned density)
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, CONTAINER_SIZE, 1), 0);
    blk_record_replay(recorded, blk_memory_bytes(b), n, seed, density);
    return b;
}

/* Copies before the update: equal, copy 0 damaged, copy 1 damaged, copy 0 older, copy 1 older. */
static struct blk *before_update(unsigned how)
{
    struct blk *b = usual();

    if (how == 1 || how == 2)
        memset(copy(b, how - 1), 0x3c, NATIVE_BLOCK);
    if (how == 3 || how == 4)
        renumber(b, how - 3, 4, 7);
    return b;
}

static void a_crash_during_an_update_leaves_a_header_that_opens(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned how = 0; how < 5; how++) {
        AUTO_BLK struct blk *b = NULL;
        struct key_store *ks;
        size_t n_entries;

        assert_int_equal(blk_record_open(&b, before_update(how)), 0);
        ks = opened(b);
        /* slot 13: the cheap one is tried before it */
        assert_int_equal(add(ks, "second", 13, NULL, NULL), 13);
        native->close(ks);
        blk_record_log(b, &n_entries);
        /* An older copy gives way only when the newer one is on the medium for certain. */
        assert_int_equal(n_entries, how == 0 ? 4 : how < 3 ? 6 : 8);
        for (size_t n = 0; n <= n_entries; n++)
            for (unsigned density = 0; density <= 256; density += 64) {
                AUTO_BLK struct blk *left = after_crash(b, n, test_random(&seed), density);

                assert_int_equal(unlock(left, "old horse", NULL, NULL), 0);
                if (n == n_entries && density == 0)
                    assert_int_equal(unlock(left, "second", NULL, NULL), 0);
            }
    }
}

/* Media that tear a block: the first half of the write is there, the rest is old. */
static void a_torn_write_leaves_a_header_that_opens(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 3; how++)
        for (unsigned n = 0; n < (how == 0 ? 2 : 3); n++) {
            AUTO_BLK struct blk *b = NULL;
            const struct blk_fault tear = {
                .ops = BLK_FAULT_WRITE, .after = n, .err = EIO, .partial = true};
            struct test_report said;
            struct key_store *ks;

            assert_int_equal(blk_fault_open(&b, before_update(how)), 0);
            ks = opened(b);
            blk_fault_add(b, &tear);
            test_report_init(&said);
            assert_int_equal(add(ks, "second", 13, NULL, &said.rep), -EIO);
            assert_int_equal(add(ks, "second", 13, NULL, &said.rep), -EIO);
            assert_true(test_report_has(&said, "earlier update"));
            native->close(ks);
            blk_fault_clear(b);
            assert_int_equal(unlock(b, "old horse", NULL, NULL), 0);
        }
}

static void a_failed_flush_fails_the_update(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 2; n++) {
        AUTO_BLK struct blk *b = NULL;
        const struct blk_fault fail = {.ops = BLK_FAULT_FLUSH, .after = n, .err = EIO};
        struct key_store *ks;

        assert_int_equal(blk_fault_open(&b, usual()), 0);
        ks = opened(b);
        blk_fault_add(b, &fail);
        assert_int_equal(add(ks, "second", 13, NULL, NULL), -EIO);
        native->close(ks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_container_opens_as_it_was_asked_for),
        cmocka_unit_test(what_cannot_be_created_is_refused_before_anything_is_written),
        cmocka_unit_test(one_damaged_copy_is_named_and_the_other_opens),
        cmocka_unit_test(two_damaged_copies_are_refused),
        cmocka_unit_test(what_is_no_container_is_refused),
        cmocka_unit_test(a_container_that_was_cut_short_says_so),
        cmocka_unit_test(a_device_of_large_blocks_is_read_in_whole_ones),
        cmocka_unit_test(an_unreadable_copy_is_named_and_the_other_opens),
        cmocka_unit_test(the_newest_copy_counts),
        cmocka_unit_test(an_erased_container_stays_erased_although_the_other_copy_has_slots),
        cmocka_unit_test(what_the_newest_copy_needs_is_not_avoided_through_the_older),
        cmocka_unit_test(a_newest_copy_out_of_range_gives_way_to_the_other),
        cmocka_unit_test(a_newest_copy_whose_mac_fails_gives_way_to_the_other),
        cmocka_unit_test(unknown_read_only_features_allow_reading),
        cmocka_unit_test(a_wrong_passphrase_gets_one_line),
        cmocka_unit_test(a_named_slot_is_the_only_one_tried),
        cmocka_unit_test(a_slot_that_cannot_be_tried_is_passed_over),
        cmocka_unit_test(slots_of_unknown_kinds_alone_are_no_erased_container),
        cmocka_unit_test(repair_makes_both_copies_the_verified_one),
        cmocka_unit_test(opening_and_a_needless_repair_write_nothing),
        cmocka_unit_test(an_added_slot_opens_and_is_listed),
        cmocka_unit_test(what_cannot_be_added_changes_nothing),
        cmocka_unit_test(a_header_changed_too_often_is_not_changed_again),
        cmocka_unit_test(a_crash_during_an_update_leaves_a_header_that_opens),
        cmocka_unit_test(a_torn_write_leaves_a_header_that_opens),
        cmocka_unit_test(a_failed_flush_fails_the_update),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
