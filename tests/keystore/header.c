/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/native/header.c: every field at its extremes, every bit under the checksum and
 * the MAC. That the bytes are the ones of docs/format.md is proven by tests/keystore/reference.c.
 */

#include "base/bytes.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>

enum { SUM = 0x1e0, MAC = 0x1c0, MACED = 0x1b8 };

static void a_header_comes_back_as_it_was(void **state)
{
    struct native_header h = container_header(), back;
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    h.seq = UINT64_MAX - 1;
    h.slot_seq = UINT64_MAX - 2;
    h.minor = 77;
    h.ro_compat = 0x80000000;
    h.compat = UINT32_MAX;
    h.cipher = 2;
    h.unit = 65536;
    h.logical_block = 65536;
    h.chunk_shift = 63;
    h.data_offset = UINT64_C(1) << 62;
    h.flags = UINT32_MAX;
    h.capacity = (UINT64_C(1) << 62) - 65536;
    memset(h.label, 'x', KEY_LABEL_MAX);
    container_block(block, &h);
    memset(&back, 0, sizeof(back));
    assert_int_equal(native_header_decode(&back, block, NULL), 0);
    assert_memory_equal(&back, &h, sizeof(h));
}

struct field {
    size_t at;
    unsigned len;
    uint64_t value;
    int want; /* of decode, negative errno */
    const char *words;
};

static const struct field fields[] = {
    {0x000, 1, 'h', -EBADMSG, "does not begin"},
    {0x007, 1, 1, -EBADMSG, "does not begin"},
    {0x008, 2, 0, -EOPNOTSUPP, "version 0.0"},
    {0x008, 2, 2, -EOPNOTSUPP, "version 2.0"},
    {0x008, 2, 0xffff, -EOPNOTSUPP, "version 65535.0"},
    {0x00a, 2, 0xffff, 0, NULL},
    {0x00c, 4, 0, -EBADMSG, "0 bytes long"},
    {0x00c, 4, 8192, -EBADMSG, "8192 bytes long"},
    {0x010, 8, 0, 0, NULL},
    {0x010, 8, UINT64_MAX - 1, 0, NULL},
    {0x010, 8, UINT64_MAX, -EBADMSG, "sequence"},
    {0x028, 4, 1, 0, NULL},
    {0x028, 4, 2, -EOPNOTSUPP, "0x2"},
    {0x028, 4, UINT32_MAX, -EOPNOTSUPP, "0xffffffff"},
    {0x02c, 4, UINT32_MAX, 0, NULL},
    {0x030, 4, UINT32_MAX, 0, NULL},
    {0x034, 4, UINT32_MAX, 0, NULL},
    {0x038, 1, 0, -EOPNOTSUPP, "mode 0"},
    {0x038, 1, 2, -EOPNOTSUPP, "authenticated"},
    {0x038, 1, 3, -EOPNOTSUPP, "mode 3"},
    {0x039, 1, 0, 0, NULL},
    {0x039, 1, 2, 0, NULL},
    {0x039, 1, 3, -EOPNOTSUPP, "cipher 3"},
    {0x039, 1, 255, -EOPNOTSUPP, "cipher 255"},
    {0x03a, 1, 0, -EOPNOTSUPP, "kdf 0"},
    {0x03a, 1, 2, -EOPNOTSUPP, "kdf 2"},
    {0x03b, 1, 1, -EOPNOTSUPP, "nodemac 1"},
    {0x03c, 4, 0, -EBADMSG, "sectors of 0"},
    {0x03c, 4, 256, -EBADMSG, "sectors of 256"},
    {0x03c, 4, 512, 0, NULL},
    {0x03c, 4, 4097, -EBADMSG, "sectors of 4097"},
    {0x03c, 4, 65536, 0, NULL},
    {0x03c, 4, 131072, -EBADMSG, "sectors of 131072"},
    {0x03c, 4, 0x80000000, -EBADMSG, "sectors of 2147483648"},
    {0x040, 4, 0, -EBADMSG, "logical blocks of 0"},
    {0x040, 4, 768, -EBADMSG, "logical blocks of 768"},
    {0x040, 4, 4096, 0, NULL},
    {0x040, 4, 131072, -EBADMSG, "logical blocks of 131072"},
    {0x044, 4, 11, -EBADMSG, "chunks of 2^11"},
    {0x044, 4, 12, 0, NULL},
    {0x044, 4, 63, 0, NULL},
    {0x044, 4, 64, -EBADMSG, "chunks of 2^64"},
    {0x044, 4, UINT32_MAX, -EBADMSG, "chunks of 2^4294967295"},
    {0x048, 8, 0, -EBADMSG, "data at byte 0"},
    {0x048, 8, 0x80000, -EBADMSG, "data at byte"},
    {0x048, 8, 0x81000, 0, NULL},
    {0x048, 8, 0x100001, -EBADMSG, "data at byte"},
    {0x048, 8, UINT64_C(0x7ffffffffffff000), -EBADMSG, "a disk of"},
    {0x048, 8, UINT64_C(0x8000000000000000), -EBADMSG, "data at byte"},
    {0x048, 8, UINT64_C(0xfffffffffffff000), -EBADMSG, "data at byte"},
    {0x050, 8, 0x100000, -EBADMSG, "a log"},
    {0x058, 8, 1, -EBADMSG, "a log"},
    {0x080, 8, UINT64_MAX, 0, NULL},
    {0x0b8, 4, UINT32_MAX, 0, NULL},
    {0x0c0, 8, 0, -EBADMSG, "a disk of 0"},
    {0x0c0, 8, 4095, -EBADMSG, "a disk of 4095"},
    {0x0c0, 8, UINT64_C(0x7fffffffffeff000), 0, NULL},
    {0x0c0, 8, UINT64_C(0x7ffffffffff00000), -EBADMSG, "a disk of"},
    {0x0c0, 8, UINT64_C(0xfffffffffffff000), -EBADMSG, "a disk of"},
    {0x1b8, 8, UINT64_MAX - 1, 0, NULL},
    {0x1b8, 8, UINT64_MAX, -EBADMSG, "sequence"},
};

static void put(unsigned char *block, const struct field *f)
{
    unsigned char v[8];

    bytes_put_le64(v, f->value);
    memcpy(block + f->at, v, f->len);
}

static void every_field_is_checked_at_its_extremes(void **state)
{
    struct native_header h = container_header(), back;
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        struct test_report said;
        int r;

        test_report_init(&said);
        container_block(block, &h);
        put(block, &fields[i]);
        container_reseal(block, 1);
        r = native_header_decode(&back, block, &said.rep);
        if (r != fields[i].want)
            print_error("field at %#zx = %#llx\n", fields[i].at,
                        (unsigned long long)fields[i].value);
        assert_int_equal(r, fields[i].want);
        assert_int_equal(said.n_lines, r != 0);
        if (r != 0)
            assert_true(test_report_has(&said, fields[i].words));
    }
}

static void a_changed_bit_fails_the_checksum(void **state)
{
    struct native_header h = container_header(), back;
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    container_block(block, &h);
    for (size_t at = 0; at < NATIVE_BLOCK; at++) {
        block[at] ^= (unsigned char)(1u << at % 8);
        assert_int_equal(native_header_decode(&back, block, NULL), -EBADMSG);
        block[at] ^= (unsigned char)(1u << at % 8);
    }
    assert_int_equal(native_header_decode(&back, block, NULL), 0);
}

static int verify(const unsigned char *block, const struct native_header *h)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};

    container_master(&master);
    assert_int_equal(native_header_prk(&prk, h, &master), 0);
    return native_header_verify(block, h, &prk);
}

static void the_mac_covers_all_but_the_slots(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    container_block(block, &h);
    for (size_t at = 0; at < NATIVE_BLOCK; at++) {
        bool covered = at < MACED || (at >= MAC && at < SUM);

        block[at] ^= (unsigned char)(1u << at % 8);
        assert_int_equal(verify(block, &h), covered ? -EBADMSG : 0);
        block[at] ^= (unsigned char)(1u << at % 8);
    }
}

static void another_parameter_block_gives_another_mac_key(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    container_block(block, &h);
    h.params_sha256[0] ^= 1;
    assert_int_equal(verify(block, &h), -EBADMSG);
}

static void bytes_of_later_versions_are_kept(void **state)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];

    (void)state;
    container_block(block, &h);
    memset(block + 0x100, 0x5a, 0xb8);
    memset(block + 0x080, 0x5b, 0x38);
    h.seq++;
    assert_int_equal(native_header_encode(block, &h), 0);
    for (size_t at = 0x100; at < 0x1b8; at++)
        assert_int_equal(block[at], 0x5a);
    for (size_t at = 0x080; at < 0x0b8; at++)
        assert_int_equal(block[at], 0x5b);
}

static void ciphers_have_one_name_each(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(native_cipher_number(native_cipher_name(i)), i);
    assert_string_equal(native_cipher_name(1), "aes-256-xts");
    assert_null(native_cipher_name(3));
    assert_int_equal(native_cipher_number("aes-256-gcm"), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_header_comes_back_as_it_was),
        cmocka_unit_test(every_field_is_checked_at_its_extremes),
        cmocka_unit_test(a_changed_bit_fails_the_checksum),
        cmocka_unit_test(the_mac_covers_all_but_the_slots),
        cmocka_unit_test(another_parameter_block_gives_another_mac_key),
        cmocka_unit_test(bytes_of_later_versions_are_kept),
        cmocka_unit_test(ciphers_have_one_name_each),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
