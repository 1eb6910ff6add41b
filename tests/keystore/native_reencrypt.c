/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/native/record.c and reencrypt.c without data: the bytes, which record counts, and
 * what becomes of the slots. That nothing is lost proves tests/volume/reencrypt.c. */

#include "keystore/native/reencrypt.h"

#include "base/bytes.h"
#include "block/memory.h"
#include "keystore/native/slot.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { AT_SEQ = 0x08, AT_DONE = 0x10, AT_ZONE = 0x18, AT_PARAMS = 0x20, RECORD = 0xe0 };
enum { SLOTS = 0x200, SALT = 0x60 };

static const struct key_format *native;
static const struct key_reencrypt *re;
static const struct kdf_request as_before;

static int start(void **state)
{
    native = key_format_named("native");
    re = native->reencrypt;
    return test_start(state);
}

/* --- bytes --- */

/* A header as in lib/container.c and the keys of a re-encryption to its master key. */
struct known {
    struct native_header header;
    unsigned char block[NATIVE_BLOCK];
    struct secret keys;
    struct native_record record;
};

static void known_make(struct known *k)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};

    *k = (struct known){.header = container_header(),
                        .record = {.seq = 7, .done = 8192, .zone = 4096}};
    container_master(&master);
    container_block(k->block, &k->header);
    assert_int_equal(native_header_prk(&prk, &k->header, &master), 0);
    assert_int_equal(native_record_keys(&k->keys, &k->header, &prk), 0);
    memcpy(k->record.old_params, native_header_params(k->block), NATIVE_PARAMS);
    memcpy(k->record.old_params + NATIVE_PARAMS_SALT, "the salt that it had before this", 32);
    assert_int_equal(native_record_wrap(k->record.wrapped,
                                        (const unsigned char *)"the master key that it had once.",
                                        &k->keys),
                     0);
}

static int decode(const struct known *k, struct native_record *ret, const unsigned char *block)
{
    return native_record_decode(ret, block, &k->header, native_header_params(k->block), &k->keys);
}

/* Computed from docs/format.md 10.4 with Python's hashlib and the cryptography package. */
static void records_and_digests_are_what_the_document_says(void **state)
{
    static const unsigned char wrapped[] = {0x2d, 0xf4, 0x0d, 0x5a, 0x59, 0xeb, 0xe6, 0xb3,
                                            0x37, 0x14, 0x58, 0xfa, 0x61, 0x7a, 0xf8, 0x8a,
                                            0x08, 0x1f, 0x14, 0x12, 0xce, 0x5b, 0x61, 0x19,
                                            0x20, 0xce, 0xf6, 0xf0, 0xbb, 0xe9, 0x1b, 0x39};
    static const unsigned char mac[] = {0xad, 0x6b, 0x42, 0x43, 0x3a, 0x33, 0xdb, 0x59,
                                        0xef, 0x78, 0x95, 0x02, 0xce, 0x1c, 0x1b, 0x1d,
                                        0x76, 0x7b, 0xe8, 0x11, 0xf0, 0xdb, 0x5e, 0x4d,
                                        0x4d, 0x99, 0x1c, 0xc5, 0xf3, 0x8b, 0x1e, 0x4f};
    static const unsigned char digest[] = {0x62, 0xbb, 0xbd, 0xaa, 0x69, 0xee, 0x8d, 0xcc,
                                           0x8d, 0x5a, 0xc9, 0x0b, 0xfa, 0x74, 0x99, 0x2a};
    unsigned char block[NATIVE_BLOCK], pieces[2 * KEY_PIECE], digests[2 * KEY_DIGEST];
    struct known k;

    (void)state;
    known_make(&k);
    assert_int_equal(native_record_encode(block, &k.record, &k.keys), 0);
    assert_memory_equal(block, "HUSHREC", 8);
    assert_int_equal(bytes_get_le64(block + AT_SEQ), 7);
    assert_int_equal(bytes_get_le64(block + AT_DONE), 8192);
    assert_int_equal(bytes_get_le32(block + AT_ZONE), 4096);
    assert_memory_equal(block + AT_PARAMS, k.record.old_params, NATIVE_PARAMS);
    assert_memory_equal(block + 0xa0, wrapped, 32);
    assert_memory_equal(block + 0xc0, mac, 32);
    assert_true(bytes_are_zero(block + RECORD, NATIVE_BLOCK - RECORD));
    for (unsigned i = 0; i < sizeof(pieces); i++)
        pieces[i] = (unsigned char)i;
    native_record_digest(digests, pieces, sizeof(pieces), 8192, &k.keys);
    assert_memory_equal(digests + KEY_DIGEST, digest, KEY_DIGEST);
    assert_memory_not_equal(digests, digest, KEY_DIGEST); /* the same bytes elsewhere */
    secret_done(&k.keys);
}

static void a_record_with_any_bit_changed_is_none(void **state)
{
    unsigned char block[NATIVE_BLOCK];
    struct native_record r;
    struct known k;

    (void)state;
    known_make(&k);
    assert_int_equal(native_record_encode(block, &k.record, &k.keys), 0);
    assert_int_equal(decode(&k, &r, block), 0);
    assert_memory_equal(&r, &k.record, sizeof(r));
    for (unsigned bit = 0; bit < RECORD * 8; bit++) {
        block[bit / 8] ^= (unsigned char)(1 << bit % 8);
        assert_int_equal(decode(&k, &r, block), -EBADMSG);
        block[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    k.keys.bytes[NATIVE_RECORD_KEY] ^= 1;
    assert_int_equal(decode(&k, &r, block), -EBADMSG);
    secret_done(&k.keys);
}

static void a_record_that_says_what_cannot_be_is_none(void **state)
{
    static const struct {
        uint64_t seq, done;
        uint32_t zone;
        unsigned param; /* that many bytes into the old parameters, one is changed */
        int want;
    } cases[] = {
        {1, 0, 0, 0x28, 0},
        {UINT64_MAX - 1, CONTAINER_DISK, 0, 0x47, 0},
        {1, 0, CONTAINER_DISK, 0x28, 0},
        {0, 0, 0, 0x28, -EBADMSG},
        {UINT64_MAX, 0, 0, 0x28, -EBADMSG},
        {1, 512, 0, 0x28, -EBADMSG},
        {1, 0, 512, 0x28, -EBADMSG},
        {1, CONTAINER_DISK + 4096, 0, 0x28, -EBADMSG},
        {1, UINT64_MAX - 4095, 8192, 0x28, -EBADMSG},
        {1, CONTAINER_DISK, 4096, 0x28, -EBADMSG},
        {1, 0, CONTAINER_DISK + 4096, 0x28, -EBADMSG},
        {1, 0, NATIVE_ZONE_MAX + 4096, 0x28, -EBADMSG},
        {1, 0, 0, 0x00, -EBADMSG},
        {1, 0, 0, 0x01, -EBADMSG},
        {1, 0, 0, 0x27, -EBADMSG},
        {1, 0, 0, 0x48, -EBADMSG},
        {1, 0, 0, 0x7f, -EBADMSG},
    };
    unsigned char block[NATIVE_BLOCK];
    struct native_record r;

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct known k;

        known_make(&k);
        if (cases[i].zone > NATIVE_ZONE_MAX) /* that, and nothing else, is wrong */
            k.header.capacity = UINT64_C(1) << 40;
        k.record.seq = cases[i].seq;
        k.record.done = cases[i].done;
        k.record.zone = cases[i].zone;
        k.record.old_params[cases[i].param] ^= 1;
        assert_int_equal(native_record_encode(block, &k.record, &k.keys), 0);
        if (decode(&k, &r, block) != cases[i].want)
            fail_msg("case %u", i);
        secret_done(&k.keys);
    }
}

/* --- start --- */

static unsigned char *slot_in(unsigned char *block, unsigned i)
{
    return native_header_slot(block, i);
}

/* Slot 2 "old horse", 5 a key file, 9 "spare"; 11 empty, but not zero. */
static struct blk *three_slots(void)
{
    AUTO_SECRET struct secret master = {0};
    AUTO_CREDENTIAL struct credential file = {0}, spare = {0};
    struct native_header h = container_header();
    const struct kdf_cost dear = {16, 2, 1};
    unsigned char block[NATIVE_BLOCK];

    container_block(block, &h);
    container_master(&master);
    container_credential(&file, NULL, "a key file");
    container_credential(&spare, "spare", NULL);
    assert_int_equal(
        native_slot_wrap(slot_in(block, 5), 5, &h, &dear, "of a file", &file, &master, NULL), 0);
    assert_int_equal(
        native_slot_wrap(slot_in(block, 9), 9, &h, &container_cost, NULL, &spare, &master, NULL),
        0);
    memset(slot_in(block, 11) + 1, 0x99, NATIVE_SLOT - 1);
    container_reseal(block, 1);
    return container_open(block);
}

struct opened {
    struct key_store *ks;
    struct key_volume v;
};

static int open_with(struct opened *o, struct blk *b, const char *passphrase, const char *file,
                     struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    int r;

    *o = (struct opened){0};
    container_credential(&cred, passphrase, file);
    assert_int_equal(native->open(&o->ks, b, b, rep), 0);
    r = native->unlock(o->ks, &cred, KEY_SLOT_ANY, &o->v, rep);
    if (r < 0) {
        native->close(o->ks);
        o->ks = NULL;
    }
    return r;
}

static void close_it(struct opened *o)
{
    key_volume_done(&o->v);
    native->close(o->ks);
}

static int begin(struct opened *o, int with_file, unsigned file_slot, const struct kdf_request *kdf,
                 struct report *rep)
{
    AUTO_CREDENTIAL struct credential horse = {0}, file = {0};
    struct key_keep keep[] = {{2, &horse}, {file_slot, &file}};

    container_credential(&horse, "old horse", NULL);
    container_credential(&file, NULL, "a key file");
    return re->start(o->ks, keep, with_file ? 2 : 1, kdf, &o->v, rep);
}

static void slots_stay_as_they_were_or_go(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    const unsigned char *bytes = blk_memory_bytes(b);
    unsigned char before[NATIVE_BLOCK];
    struct key_slot_info info[KEY_SLOTS_MAX];
    struct opened o;

    (void)state;
    memcpy(before, bytes, sizeof(before));
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 1, 5, &as_before, NULL), 0);
    assert_int_equal(native->slots(o.ks, info, KEY_SLOTS_MAX, NULL), 2);
    assert_int_equal(info[0].index, 2);
    assert_string_equal(info[0].label, "slot");
    assert_int_equal(info[1].index, 5);
    assert_string_equal(info[1].label, "of a file");
    assert_int_equal(info[1].cost.m_kib, 16);
    assert_int_equal(info[1].cost.t, 2);
    assert_int_equal(bytes[SLOTS + 9 * NATIVE_SLOT], 0);
    assert_memory_not_equal(bytes + SLOTS + 9 * NATIVE_SLOT, before + SLOTS + 9 * NATIVE_SLOT, 64);
    assert_memory_equal(bytes + SLOTS + 11 * NATIVE_SLOT, before + SLOTS + 11 * NATIVE_SLOT,
                        NATIVE_SLOT);
    assert_memory_not_equal(bytes + SALT, before + SALT, 32);
    close_it(&o);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(
            open_with(&o, b, i == 0 ? "old horse" : NULL, i == 0 ? NULL : "a key file", NULL), 0);
        assert_true(o.v.mixed && o.v.boundary == 0 && o.v.zone == 0);
        close_it(&o);
    }
    assert_int_equal(open_with(&o, b, "spare", NULL, NULL), -EKEYREJECTED);
}

static void the_old_key_is_still_known(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    AUTO_SECRET struct secret prk = {0};
    unsigned char tail[32];
    struct opened o;

    (void)state;
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(secret_copy(&prk, o.v.rule.prk.bytes, o.v.rule.prk.len), 0);
    memcpy(tail, o.v.rule.tail, sizeof(tail));
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    for (unsigned again = 0; again < 2; again++) {
        assert_true(o.v.mixed);
        assert_memory_equal(o.v.old_rule.prk.bytes, prk.bytes, prk.len);
        assert_memory_equal(o.v.old_rule.tail, tail, sizeof(tail));
        assert_memory_not_equal(o.v.rule.prk.bytes, prk.bytes, prk.len);
        assert_memory_not_equal(o.v.rule.tail, tail, sizeof(tail));
        close_it(&o);
        assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    }
    close_it(&o);
}

static void a_cost_that_is_asked_for_is_every_slot_s(void **state)
{
    const struct kdf_request cheapest = {.memory = 64 << 20, .iterations = 3};
    AUTO_BLK struct blk *b = three_slots();
    struct key_slot_info info[KEY_SLOTS_MAX];
    struct opened o;

    (void)state;
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 1, 5, &cheapest, NULL), 0);
    assert_int_equal(native->slots(o.ks, info, KEY_SLOTS_MAX, NULL), 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(info[i].cost.m_kib, 64 << 10);
        assert_int_equal(info[i].cost.t, 3);
    }
    close_it(&o);
}

/* A refusal, with these words, that has changed no byte. */
static void refused(struct blk *b, int with_file, unsigned file_slot, int want, const char *words)
{
    AUTO_FREE unsigned char *before = malloc(b->size);
    struct test_report said;
    struct opened o;

    memcpy(before, blk_memory_bytes(b), b->size);
    test_report_init(&said);
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, with_file, file_slot, &as_before, &said.rep), want);
    assert_true(test_report_has(&said, words));
    close_it(&o);
    assert_memory_equal(blk_memory_bytes(b), before, b->size);
}

static void what_cannot_begin_changes_nothing(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    unsigned char *copies[] = {blk_memory_bytes(b), blk_memory_bytes(b) + NATIVE_COPY_STEP};

    (void)state;
    refused(b, 1, 6, -ENOENT, "6 is empty");
    b->read_only = true;
    refused(b, 0, 0, -EROFS, "reading only");
    b->read_only = false;
    for (unsigned i = 0; i < 2; i++) {
        copies[i][SLOTS + 9 * NATIVE_SLOT + 1] = 77; /* of a kind from the future */
        container_reseal(copies[i], 1);
    }
    refused(b, 0, 0, -EOPNOTSUPP, "slot 9");
}

/* --- under way --- */

static void what_has_to_wait_is_refused(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    AUTO_BLK struct blk *to = NULL;
    struct test_report said;
    struct opened o;

    (void)state;
    test_report_init(&said);
    assert_int_equal(blk_memory_open(&to, NATIVE_DATA, 1), 0);
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, &said.rep), -EBUSY);
    assert_true(test_report_has(&said, "not finished"));
    assert_int_equal(native->resize(o.ks, CONTAINER_DISK / 2, NULL), -EBUSY);
    assert_int_equal(native->backup(o.ks, to, NULL), -EBUSY);
    close_it(&o);
}

static void slots_can_be_changed(void **state)
{
    const struct kdf_request cheapest = {.memory = 64 << 20, .iterations = 3};
    AUTO_BLK struct blk *b = three_slots();
    AUTO_CREDENTIAL struct credential cred = {0};
    struct key_patch patch;
    struct opened o;

    (void)state;
    container_credential(&cred, "in the middle", NULL);
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    assert_int_equal(
        native->seal(o.ks, KEY_PATCH_ADD, &cred, KEY_SLOT_ANY, NULL, &cheapest, &patch, NULL), 0);
    native->forget(o.ks, true);
    assert_int_equal(native->apply(o.ks, &patch, NULL), 0);
    close_it(&o);
    assert_int_equal(open_with(&o, b, "in the middle", NULL, NULL), 0);
    assert_true(o.v.mixed);
    close_it(&o);
}

/* Reopen b: is it there? */
static void expect_at(struct blk *b, uint64_t boundary, uint32_t zone)
{
    struct opened o;

    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(o.v.boundary, boundary);
    assert_int_equal(o.v.zone, zone);
    close_it(&o);
}

static void records_take_turns(void **state)
{
    static unsigned char digests[KEY_DIGESTS_MAX], noted[KEY_DIGESTS_MAX];
    AUTO_BLK struct blk *b = three_slots();
    unsigned char *records = blk_memory_bytes(b) + NATIVE_RECORD_AT;
    struct test_report said;
    struct opened o;

    (void)state;
    memset(digests, 0x5a, sizeof(digests));
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    expect_at(b, 0, 0);
    assert_int_equal(re->zone_begin(o.ks, 4096, 8192, digests, NULL), 0);
    expect_at(b, 4096, 8192);
    assert_int_equal(re->zone_digests(o.ks, noted, NULL), 0);
    assert_memory_equal(noted, digests, 8192 / KEY_PIECE * KEY_DIGEST);
    assert_int_equal(re->zone_end(o.ks, NULL), 0);
    expect_at(b, 12288, 0);
    assert_int_equal(bytes_get_le64(records + AT_SEQ), 5);
    assert_int_equal(bytes_get_le64(records + NATIVE_BLOCK + AT_SEQ), 4);
    close_it(&o);
    records[AT_DONE] ^= 1; /* torn: the one before it is in force */
    expect_at(b, 4096, 8192);
    records[NATIVE_BLOCK + AT_DONE] ^= 1;
    test_report_init(&said);
    assert_int_equal(open_with(&o, b, "old horse", NULL, &said.rep), -EBADMSG);
    assert_true(test_report_has(&said, "both records"));
    records[AT_DONE] ^= 1;
    expect_at(b, 12288, 0);
}

/* Either place of a record goes bad, with a zone begun or none yet: the other one says the same. */
static void one_place_that_goes_bad_costs_nothing(void **state)
{
    static unsigned char digests[KEY_DIGESTS_MAX];
    AUTO_BLK struct blk *b = three_slots();
    unsigned char *records = blk_memory_bytes(b) + NATIVE_RECORD_AT;
    struct opened o;

    (void)state;
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    for (unsigned begun = 0; begun < 3; begun++) {
        if (begun == 2)
            assert_int_equal(re->zone_end(o.ks, NULL), 0);
        if (begun > 0)
            assert_int_equal(re->zone_begin(o.ks, begun * 8192, 8192, digests, NULL), 0);
        for (unsigned i = 0; i < 2; i++) {
            records[i * NATIVE_BLOCK + AT_DONE] ^= 1;
            expect_at(b, begun * 8192, begun > 0 ? 8192 : 0);
            records[i * NATIVE_BLOCK + AT_DONE] ^= 1;
        }
    }
    close_it(&o);
}

static void a_volume_that_forgot_its_keys_gets_both_back(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    AUTO_SECRET struct secret exported = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct opened o;

    (void)state;
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    assert_int_equal(native->export(o.ks, &exported), 0);
    assert_non_null(o.ks->record_keys.bytes);
    native->forget(o.ks, true);
    assert_null(o.ks->record_keys.bytes);
    assert_int_equal(native->import(o.ks, &exported, &v, NULL), 0);
    assert_true(v.mixed);
    assert_memory_equal(v.old_rule.prk.bytes, o.v.old_rule.prk.bytes, 32);
    assert_memory_equal(v.rule.prk.bytes, o.v.rule.prk.bytes, 32);
    close_it(&o);
}

static void the_end_leaves_nothing_of_the_old_key(void **state)
{
    AUTO_BLK struct blk *b = three_slots();
    struct opened o;

    (void)state;
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_int_equal(begin(&o, 0, 0, &as_before, NULL), 0);
    assert_int_equal(re->finish(o.ks, NULL), 0);
    close_it(&o);
    assert_true(bytes_are_zero(blk_memory_bytes(b) + NATIVE_RECORD_AT,
                               NATIVE_DIGESTS_AT + NATIVE_DIGESTS_LEN - NATIVE_RECORD_AT));
    assert_int_equal(open_with(&o, b, "old horse", NULL, NULL), 0);
    assert_false(o.v.mixed);
    assert_null(o.v.old_rule.prk.bytes);
    assert_int_equal(native->resize(o.ks, CONTAINER_DISK / 2, NULL), 0);
    close_it(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_and_digests_are_what_the_document_says),
        cmocka_unit_test(a_record_with_any_bit_changed_is_none),
        cmocka_unit_test(a_record_that_says_what_cannot_be_is_none),
        cmocka_unit_test(slots_stay_as_they_were_or_go),
        cmocka_unit_test(the_old_key_is_still_known),
        cmocka_unit_test(a_cost_that_is_asked_for_is_every_slot_s),
        cmocka_unit_test(what_cannot_begin_changes_nothing),
        cmocka_unit_test(what_has_to_wait_is_refused),
        cmocka_unit_test(slots_can_be_changed),
        cmocka_unit_test(records_take_turns),
        cmocka_unit_test(one_place_that_goes_bad_costs_nothing),
        cmocka_unit_test(a_volume_that_forgot_its_keys_gets_both_back),
        cmocka_unit_test(the_end_leaves_nothing_of_the_old_key),
    };

    return cmocka_run_group_tests_name("keystore/native_reencrypt", tests, start, NULL);
}
