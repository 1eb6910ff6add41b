/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/native/slot.c: what opens a slot and what does not. That the bytes are the ones
 * of docs/format.md is proven by tests/keystore/reference.c. */

#include "base/bytes.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { INDEX = 9 };

static struct native_header header_with_params(void)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK] = {0};

    assert_int_equal(native_header_encode(block, &h), 0);
    return h;
}

static void wrap(unsigned char *slot, const struct native_header *h, const char *passphrase,
                 const char *keyfile)
{
    AUTO_SECRET struct secret master = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    container_master(&master);
    container_credential(&cred, passphrase, keyfile);
    assert_int_equal(
        native_slot_wrap(slot, INDEX, h, &container_cost, "name", &cred, &master, NULL), 0);
}

/* 0 only when the very master key comes out. */
static int unwrap(const unsigned char *slot, unsigned index, const struct native_header *h,
                  const char *passphrase, const char *keyfile)
{
    AUTO_SECRET struct secret master = {0}, got = {0};
    AUTO_CREDENTIAL struct credential cred = {0};
    int r;

    container_master(&master);
    container_credential(&cred, passphrase, keyfile);
    r = native_slot_unwrap(&got, slot, index, h, &cred, NULL);
    if (r < 0) {
        assert_null(got.bytes);
        return r;
    }
    assert_int_equal(got.len, NATIVE_MASTER);
    assert_memory_equal(got.bytes, master.bytes, NATIVE_MASTER);
    return 0;
}

static void each_kind_opens_with_its_own_and_nothing_else(void **state)
{
    static const struct {
        const char *passphrase, *keyfile;
        enum key_slot_kind kind;
    } kinds[] = {
        {"old horse", NULL, KEY_SLOT_PASSPHRASE},
        {NULL, "bytes of a key file", KEY_SLOT_KEYFILE},
        {"old horse", "bytes of a key file", KEY_SLOT_BOTH},
    };
    struct native_header h = header_with_params();

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        const char *pass = kinds[i].passphrase, *file = kinds[i].keyfile;
        unsigned char slot[NATIVE_SLOT];
        struct native_slot s;

        wrap(slot, &h, pass, file);
        native_slot_decode(&s, slot);
        assert_int_equal(s.type, kinds[i].kind);
        assert_string_equal(s.label, "name");
        assert_true(s.used && s.created > 1700000000);
        assert_int_equal(native_slot_check(&s, INDEX, NULL), 0);
        assert_int_equal(unwrap(slot, INDEX, &h, pass, file), 0);
        if (pass != NULL)
            assert_int_equal(unwrap(slot, INDEX, &h, "old hors", file), -EKEYREJECTED);
        if (pass != NULL)
            assert_int_equal(unwrap(slot, INDEX, &h, "old horse\n", file), -EKEYREJECTED);
        if (file != NULL)
            assert_int_equal(unwrap(slot, INDEX, &h, pass, "bytes of a key fil"), -EKEYREJECTED);
    }
}

static void a_slot_opens_in_its_place_only(void **state)
{
    struct native_header h = header_with_params(), other = h;
    unsigned char slot[NATIVE_SLOT];

    (void)state;
    wrap(slot, &h, "old horse", NULL);
    assert_int_equal(unwrap(slot, INDEX + 1, &h, "old horse", NULL), -EKEYREJECTED);
    other.uuid[15] ^= 1;
    assert_int_equal(unwrap(slot, INDEX, &other, "old horse", NULL), -EKEYREJECTED);
    other = h;
    other.params_sha256[31] ^= 1;
    assert_int_equal(unwrap(slot, INDEX, &other, "old horse", NULL), -EKEYREJECTED);
}

/* The cost fields are left out: what they would ask for is kdf_check's to refuse. */
static void a_changed_bit_closes_a_slot(void **state)
{
    struct native_header h = header_with_params();
    unsigned char slot[NATIVE_SLOT];

    (void)state;
    wrap(slot, &h, "old horse", NULL);
    for (size_t at = 0; at < NATIVE_SLOT; at++) {
        bool cost = at >= 0x08 && at < 0x14;
        bool free = (at >= 0x58 && at < 0x78) || at >= 0x98; /* reserved; created, label */

        if (cost)
            continue;
        slot[at] ^= 0x10;
        assert_int_equal(unwrap(slot, INDEX, &h, "old horse", NULL), free ? 0 : -EKEYREJECTED);
        slot[at] ^= 0x10;
    }
    bytes_put_le32(slot + 0x0c, 2);
    assert_int_equal(unwrap(slot, INDEX, &h, "old horse", NULL), -EKEYREJECTED);
    bytes_put_le32(slot + 0x0c, 1);
    bytes_put_le32(slot + 0x08, 16);
    assert_int_equal(unwrap(slot, INDEX, &h, "old horse", NULL), -EKEYREJECTED);
}

static void two_slots_for_one_passphrase_share_nothing(void **state)
{
    struct native_header h = header_with_params();
    unsigned char a[NATIVE_SLOT], b[NATIVE_SLOT];

    (void)state;
    wrap(a, &h, "old horse", NULL);
    wrap(b, &h, "old horse", NULL);
    assert_memory_not_equal(a + 0x18, b + 0x18, 16);
    assert_memory_not_equal(a + 0x28, b + 0x28, 16);
    assert_memory_not_equal(a + 0x38, b + 0x38, 32);
    assert_memory_not_equal(a + 0x78, b + 0x78, 32);
}

static void unknown_kinds_are_not_supported(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
    } unknown[] = {{0, 2}, {0, 255}, {1, 0}, {1, 4}, {2, 0}, {2, 2}, {3, 0}, {3, 2}};
    struct native_header h = header_with_params();

    (void)state;
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
        unsigned char slot[NATIVE_SLOT];
        struct native_slot s;
        struct test_report said;

        wrap(slot, &h, "old horse", NULL);
        slot[unknown[i].at] = unknown[i].value;
        native_slot_decode(&s, slot);
        test_report_init(&said);
        assert_int_equal(native_slot_check(&s, 3, &said.rep), -EOPNOTSUPP);
        assert_true(test_report_has(&said, "key slot 3"));
    }
}

static void a_label_may_fill_its_field(void **state)
{
    static const char label[] = "exactly thirty-two bytes of text";
    struct native_header h = header_with_params();
    AUTO_SECRET struct secret master = {0};
    AUTO_CREDENTIAL struct credential cred = {0};
    unsigned char slot[NATIVE_SLOT];
    struct native_slot s;

    (void)state;
    container_master(&master);
    container_credential(&cred, "old horse", NULL);
    assert_int_equal(native_slot_wrap(slot, 0, &h, &container_cost, label, &cred, &master, NULL),
                     0);
    native_slot_decode(&s, slot);
    assert_string_equal(s.label, label);
    assert_true(bytes_are_zero(slot + 0xc0, 0x40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_opens_with_its_own_and_nothing_else),
        cmocka_unit_test(a_slot_opens_in_its_place_only),
        cmocka_unit_test(a_changed_bit_closes_a_slot),
        cmocka_unit_test(two_slots_for_one_passphrase_share_nothing),
        cmocka_unit_test(unknown_kinds_are_not_supported),
        cmocka_unit_test(a_label_may_fill_its_field),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
