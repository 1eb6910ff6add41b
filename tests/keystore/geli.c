/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/geli/: that metadata made by FreeBSD and by independent writers opens with its
 * keys and no other and gives the keys that the vectors state, that what was made here reads back,
 * and that nothing in a forged block gets past the checks. */

#include "lib/geli.h"
#include "block/memory.h"
#include "keystore/geli/store.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

static const struct key_format *geli;

static int start(void **state)
{
    geli = key_format_named("geli");
    return geli == NULL ? -1 : test_start(state);
}

/* --- vectors --- */

/* What the entry says, from its whole block or, without one, from its fields. */
static struct geli_meta meta_of(const struct geli_vector *v)
{
    unsigned char block[GELI_BLOCK] = {0}, slots[GELI_SLOTS * GELI_SLOT];
    struct geli_meta m = {.version = (uint32_t)geli_vector_number(v, "version"),
                          .ealgo = (uint16_t)geli_vector_number(v, "ealgo"),
                          .keylen = (uint16_t)geli_vector_number(v, "keylen"),
                          .keys = (uint8_t)geli_vector_number(v, "keys"),
                          .iterations = (int32_t)geli_vector_number(v, "iterations")};

    if (geli_vector_bytes(v, "metadata", block, sizeof(block)) > 0) {
        assert_int_equal(geli_meta_decode(&m, block, NULL), 0);
        return m;
    }
    assert_int_equal(geli_vector_bytes(v, "salt", m.salt, sizeof(m.salt)), GELI_SALT);
    assert_int_equal(geli_vector_bytes(v, "slots", slots, sizeof(slots)), sizeof(slots));
    memcpy(m.slot, slots, sizeof(slots));
    return m;
}

/* Opens one of the slots in use: returns which, or -EKEYREJECTED. */
static int open_any(const struct geli_meta *m, const struct credential *cred, struct secret *user,
                    struct secret *master)
{
    int r = geli_user_key(user, m, cred, NULL);

    for (unsigned i = 0; r == 0 && i < GELI_SLOTS; i++)
        if (m->keys >> i & 1 && geli_slot_unwrap(master, m->slot[i], m, user, NULL) == 0)
            return (int)i;
    return r < 0 ? r : -EKEYREJECTED;
}

static void check_vector(const struct geli_vector *v)
{
    AUTO_SECRET struct secret user = {0}, master = {0};
    AUTO_CREDENTIAL struct credential cred = {0};
    unsigned char want[GELI_MASTER], slot[GELI_SLOT];
    const struct geli_meta m = meta_of(v);
    int opened;

    geli_vector_credential(v, &cred);
    if (geli_vector_text(v, "file") != NULL) /* the real images: their passphrase is in the text */
        container_credential(&cred, "password", NULL);
    opened = open_any(&m, &cred, &user, &master);
    if (opened < 0)
        fail_msg("%s does not open", geli_vector_name(v));
    if (geli_vector_bytes(v, "user_key", want, sizeof(want)) > 0)
        assert_memory_equal(user.bytes, want, GELI_USER_KEY);
    if (geli_vector_bytes(v, "master_key", want, sizeof(want)) > 0)
        assert_memory_equal(master.bytes, want, GELI_MASTER);
    assert_int_equal(geli_slot_wrap(slot, &m, &user, &master, NULL), 0);
    assert_memory_equal(slot, m.slot[opened], GELI_SLOT);
}

static bool is_slow(const struct geli_vector *v)
{
    return geli_vector_number(v, "iterations") > 500000 && getenv("HUSHVOL_TEST_SLOW") == NULL;
}

static void known_metadata_opens_and_gives_the_known_keys(void **state)
{
    unsigned n = 0;

    (void)state;
    for (const struct geli_vector *v = geli_vectors_first(); v != NULL; v = geli_vector_next(v)) {
        if (geli_vector_text(v, "keys") == NULL && geli_vector_text(v, "metadata") == NULL)
            continue; /* of PBKDF2 alone */
        if (is_slow(v))
            continue;
        check_vector(v);
        n++;
    }
    assert_int_equal(n, getenv("HUSHVOL_TEST_SLOW") == NULL ? 37 : 39);
}

static void no_other_passphrase_opens_known_metadata(void **state)
{
    (void)state;
    for (const struct geli_vector *v = geli_vectors_first(); v != NULL; v = geli_vector_next(v)) {
        AUTO_SECRET struct secret user = {0}, master = {0};
        AUTO_CREDENTIAL struct credential wrong = {0}, cred = {0};
        struct geli_meta m;

        if (geli_vector_text(v, "metadata") == NULL)
            continue;
        m = meta_of(v);
        container_credential(&wrong, "another horse", NULL);
        assert_int_equal(open_any(&m, &wrong, &user, &master), -EKEYREJECTED);
        geli_vector_credential(v, &cred);
        if (cred.n_keyfiles > 0) { /* the passphrase without its key files, the files without it */
            secret_done(&cred.keyfiles);
            cred.n_keyfiles = 0;
            assert_int_equal(open_any(&m, &cred, &user, &master), -EKEYREJECTED);
        }
    }
}

static void an_encoded_block_is_the_one_that_was_decoded(void **state)
{
    (void)state;
    for (const struct geli_vector *v = geli_vectors_first(); v != NULL; v = geli_vector_next(v)) {
        unsigned char block[GELI_BLOCK] = {0}, again[GELI_BLOCK];
        struct geli_meta m;

        if (geli_vector_bytes(v, "metadata", block, sizeof(block)) == 0)
            continue;
        assert_int_equal(geli_meta_decode(&m, block, NULL), 0);
        assert_int_equal(geli_meta_encode(again, &m), 0);
        assert_memory_equal(again, block, GELI_BLOCK);
    }
}

/* The provider of a vector, all of it if it is small, else just its end. */
static struct blk *provider_of(const struct geli_vector *v)
{
    uint64_t size = (uint64_t)geli_vector_number(v, "provsize");
    uint64_t sector = (uint64_t)geli_vector_number(v, "provider_sector");
    struct blk *b = NULL;

    if (size == 0 || size > 1 << 20)
        return NULL;
    assert_int_equal(blk_memory_open(&b, size, 1), 0);
    geli_vector_bytes(v, "metadata", blk_memory_bytes(b) + size - sector, GELI_BLOCK);
    return b;
}

static void known_providers_open_as_a_whole(void **state)
{
    unsigned n = 0;

    (void)state;
    for (const struct geli_vector *v = geli_vectors_first(); v != NULL; v = geli_vector_next(v)) {
        AUTO_BLK struct blk *b = provider_of(v);
        AUTO_CREDENTIAL struct credential cred = {0};
        AUTO_KEY_VOLUME struct key_volume volume = {0};
        const struct key_format *format = NULL;
        struct key_store *ks = NULL;

        if (b == NULL)
            continue;
        assert_int_equal(key_recognise(&format, b, NULL), 0);
        assert_ptr_equal(format, geli);
        assert_int_equal(geli->open(&ks, b, b, NULL), 0);
        assert_int_equal(ks->sector, geli_vector_number(v, "provider_sector"));
        geli_vector_credential(v, &cred);
        assert_int_equal(geli->unlock(ks, &cred, KEY_SLOT_ANY, &volume, NULL), 0);
        assert_int_equal(volume.size, geli_vector_number(v, "mediasize"));
        assert_int_equal(volume.sector_size, geli_vector_number(v, "sectorsize"));
        assert_int_equal(geli->check(b, b, NULL), 0);
        geli->close(ks);
        n++;
    }
    assert_true(n >= 20);
}

/* docs/geli-format.md 2, 6: which keys a version has. */
static void each_version_derives_its_keys_in_its_way(void **state)
{
    static const struct {
        uint32_t version;
        bool auth;
        enum key_derivation derivation;
        enum { EB, IVK, CK0 } prk;
    } want[] = {
        {0, false, KEY_DERIVE_SINGLE, EB}, {1, true, KEY_DERIVE_SINGLE, EB},
        {4, false, KEY_DERIVE_SINGLE, EB}, {4, true, KEY_DERIVE_SINGLE, EB},
        {5, false, KEY_DERIVE_HMAC, IVK},  {5, true, KEY_DERIVE_SINGLE, CK0},
        {6, false, KEY_DERIVE_HMAC, IVK},  {6, true, KEY_DERIVE_HMAC, IVK},
        {7, false, KEY_DERIVE_HMAC, EB},   {7, true, KEY_DERIVE_HMAC, EB},
    };
    AUTO_SECRET struct secret master = {0};

    (void)state;
    assert_int_equal(secret_make(&master, GELI_MASTER), 0);
    secret_random(master.bytes, master.len);
    for (unsigned i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        struct geli_meta m = {.version = want[i].version,
                              .flags = want[i].auth ? GELI_AUTH : 0,
                              .ealgo = 11,
                              .keylen = 192,
                              .aalgo = 18,
                              .provsize = 1 << 20,
                              .sectorsize = 4096};
        AUTO_KEY_VOLUME struct key_volume v = {0};
        unsigned char key[64];

        assert_int_equal(geli_volume(&v, &m, 512, &master), 0);
        assert_string_equal(v.cipher, "aes-192-cbc");
        assert_int_equal(v.iv, KEY_IV_OFFSET_HASH);
        assert_memory_equal(v.iv_key.bytes, master.bytes, 64);
        assert_int_equal(v.rule.derivation, want[i].derivation);
        assert_int_equal(v.rule.chunk_shift, want[i].auth ? 29 : 32);
        memcpy(key, master.bytes + (want[i].prk == EB ? 64 : 0), 64);
        if (want[i].prk == CK0)
            assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, "SHA512", NULL, key, 64,
                                      (const unsigned char *)"ekey\0\0\0\0\0\0\0", 12, key, 64,
                                      NULL));
        else if (want[i].prk == EB && want[i].auth)
            assert_non_null(EVP_Q_mac(NULL, "HMAC", NULL, "SHA512", NULL, key, 64,
                                      (const unsigned char *)"\x10", 1, key, 64, NULL));
        assert_memory_equal(v.rule.prk.bytes, key, 64);
        assert_string_equal(v.auth.hash, want[i].auth ? "hmac-sha256" : "");
        assert_int_equal(v.auth.piece, want[i].auth ? 512 : 0);
        assert_int_equal(v.size,
                         want[i].auth ? ((1 << 20) - 512) / (9 * 512) * 4096 : (1 << 20) - 4096);
    }
}

/* --- containers --- */

static int unlock(struct blk *b, const char *passphrase, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    int r = geli->open(&ks, b, b, rep);

    container_credential(&cred, passphrase, NULL);
    if (r == 0)
        r = geli->unlock(ks, &cred, KEY_SLOT_ANY, &v, rep);
    geli->close(ks);
    return r < 0 ? r : (int)v.slot;
}

static void a_new_container_opens_with_its_key_alone(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    struct test_report said;

    (void)state;
    assert_int_equal(unlock(b, "old horse", NULL), 0);
    test_report_init(&said);
    assert_int_equal(unlock(b, "old horses", &said.rep), -EKEYREJECTED);
    assert_int_equal(said.n_lines, 1);
    assert_int_equal(unlock(b, "", NULL), -EKEYREJECTED);
    assert_int_equal(geli->check(b, b, NULL), 0);
}

static void every_cipher_and_length_makes_slots_that_open(void **state)
{
    (void)state;
    for (const struct geli_cipher *c = geli_ciphers; c->name != NULL; c++)
        for (unsigned bits = c->bits_min; bits <= c->bits_max; bits += c->bits_step) {
            struct key_create req = geli_container_request();
            AUTO_CREDENTIAL struct credential cred = {0};
            AUTO_BLK struct blk *b = NULL;

            if (c->evp == NULL && bits != 512 && bits != 1)
                continue;
            req.cipher = c->name;
            req.key_bits = bits;
            container_credential(&cred, "old horse", "and a key file");
            assert_int_equal(geli->prepare(&req, NULL), 0);
            assert_int_equal(blk_memory_open(&b, geli->container_size(&req), 1), 0);
            assert_int_equal(geli->create(b, b, &req, &cred, NULL), 0);
            assert_int_equal(unlock(b, "old horse", NULL), -EKEYREJECTED);
            assert_int_equal(geli->check(b, b, NULL), 0);
        }
}

static void a_cipher_may_have_its_bits_in_the_name(void **state)
{
    struct key_create req = geli_container_request();

    (void)state;
    req.cipher = "camellia-192-cbc";
    assert_int_equal(geli->prepare(&req, NULL), 0);
    assert_string_equal(req.cipher, "camellia-cbc");
    assert_int_equal(req.key_bits, 192);
    assert_string_equal(req.data_cipher, "camellia-192-cbc");
    req.cipher = "aes-256-xts"; /* which is not 192 */
    assert_int_equal(geli->prepare(&req, NULL), -EOPNOTSUPP);
}

static void iterations_are_what_was_asked_for(void **state)
{
    static const struct {
        const char *passphrase, *keyfile;
        uint32_t asked;
        int32_t stored; /* -2: refused */
    } cases[] = {
        {"old horse", NULL, 3, 3},   {"old horse", NULL, KDF_NO_PASSES, 0},
        {"old horse", "file", 1, 1}, {NULL, "file", 0, GELI_NO_PASSPHRASE},
        {NULL, "file", 5, -2},       {"old horse", NULL, 0x80000000, -2},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct key_create req = geli_container_request();
        AUTO_CREDENTIAL struct credential cred = {0};
        AUTO_BLK struct blk *b = NULL;
        struct key_store *ks = NULL;
        int r;

        req.kdf.iterations = cases[i].asked;
        container_credential(&cred, cases[i].passphrase, cases[i].keyfile);
        r = geli->prepare(&req, NULL);
        assert_int_equal(blk_memory_open(&b, GELI_TEST_SIZE, 1), 0);
        if (r == 0)
            r = geli->create(b, b, &req, &cred, NULL);
        assert_int_equal(r, cases[i].stored == -2 ? -EINVAL : 0);
        if (r < 0)
            continue;
        assert_int_equal(geli->open(&ks, b, b, NULL), 0);
        assert_int_equal(ks->meta.iterations, cases[i].stored);
        geli->close(ks);
    }
}

/* --- what is refused --- */

static void reseal(struct blk *b, struct geli_meta *m)
{
    assert_int_equal(geli_meta_encode(blk_memory_bytes(b) + b->size - 512, m), 0);
}

static void every_field_is_checked(void **state)
{
    static const struct {
        const char *words;
        size_t off, len;
        uint64_t value;
        int want;
    } cases[] = {
        {"version", 16, 4, 8, -EOPNOTSUPP},
        {"version", 16, 4, UINT32_MAX, -EOPNOTSUPP},
        {"flags", 20, 4, 0x10200, -EBADMSG},
        {"flags", 20, 4, 0x400200, -EBADMSG},
        {"flags", 20, 4, 0x80000000, -EBADMSG},
        {"flags", 20, 4, 0x400, -EOPNOTSUPP},
        {"flags", 20, 4, 0x201, -EBADMSG},
        {"cipher", 24, 2, 0, -EOPNOTSUPP},
        {"cipher", 24, 2, 1, -EOPNOTSUPP},
        {"cipher", 24, 2, 0xffff, -EOPNOTSUPP},
        {"bits", 26, 2, 0, -EBADMSG},
        {"bits", 26, 2, 192, -EBADMSG},
        {"bits", 26, 2, 512, -EBADMSG},
        {"bits", 26, 2, 0xffff, -EBADMSG},
        {"bytes", 30, 8, 0, -EBADMSG},
        {"bytes", 30, 8, GELI_TEST_SIZE - 1, -EBADMSG},
        {"bytes", 30, 8, GELI_TEST_SIZE + 512, -EBADMSG},
        {"bytes", 30, 8, UINT64_MAX, -EBADMSG},
        {"sectors", 38, 4, 0, -EBADMSG},
        {"sectors", 38, 4, 256, -EBADMSG},
        {"sectors", 38, 4, 513, -EBADMSG},
        {"sectors", 38, 4, 0x80000000, -EOPNOTSUPP},
        {"sectors", 38, 4, 262144, -EOPNOTSUPP},
        {"room", 38, 4, 131072, -EBADMSG},
        {"iterations", 43, 4, 0xfffffffe, -EBADMSG},
        {"iterations", 43, 4, 0x80000000, -EBADMSG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        AUTO_BLK struct blk *b = geli_container_open();
        unsigned char *block = blk_memory_bytes(b) + b->size - 512;
        struct key_store *ks = NULL;
        struct test_report said;

        for (size_t at = 0; at < cases[i].len; at++)
            block[cases[i].off + at] = (unsigned char)(cases[i].value >> 8 * at);
        assert_int_equal(EVP_Digest(block, 495, block + 495, NULL, EVP_md5(), NULL), 1);
        test_report_init(&said);
        assert_int_equal(geli->recognise(b), 1);
        assert_int_equal(geli->open(&ks, b, b, &said.rep), cases[i].want);
        assert_int_equal(said.n_lines, 1);
        assert_true(test_report_has(&said, cases[i].words));
    }
}

static void a_wrong_checksum_and_unknown_authentication_are_refused(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    struct key_store *ks = NULL;
    struct geli_meta m;

    (void)state;
    for (size_t at = 16; at < 511; at += 5) {
        blk_memory_bytes(b)[b->size - 512 + at] ^= 0x10;
        assert_true(geli->open(&ks, b, b, NULL) < 0);
        blk_memory_bytes(b)[b->size - 512 + at] ^= 0x10;
    }
    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    m = ks->meta;
    geli->close(ks);
    m.flags |= GELI_AUTH;
    m.aalgo = 17;
    reseal(b, &m);
    assert_int_equal(geli->open(&ks, b, b, NULL), -EOPNOTSUPP);
    m.aalgo = 18;
    m.version = 0;
    reseal(b, &m);
    assert_int_equal(geli->open(&ks, b, b, NULL), -EBADMSG);
}

static void a_size_that_does_not_fit_is_said_with_both_numbers(void **state)
{
    AUTO_BLK struct blk *b = NULL, *small = geli_container_open();
    struct key_store *ks = NULL;
    struct test_report said;

    (void)state;
    assert_int_equal(blk_memory_open(&b, 2 * GELI_TEST_SIZE, 1), 0);
    memcpy(blk_memory_bytes(b) + GELI_TEST_SIZE, blk_memory_bytes(small), GELI_TEST_SIZE);
    test_report_init(&said);
    assert_int_equal(geli->open(&ks, b, b, &said.rep), -EBADMSG);
    assert_true(test_report_has(&said, "66048"));
    assert_true(test_report_has(&said, "132096"));
}

/* An older block of larger sectors may lie before the one that counts, and the other way round. */
static void of_two_blocks_the_one_that_is_whole_counts(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    unsigned char *end = blk_memory_bytes(b) + b->size;
    struct key_store *ks = NULL;

    (void)state;
    memcpy(end - 4096, end - 512, 512);
    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    assert_int_equal(ks->sector, 512);
    geli->close(ks);
    end[-512 + 100] ^= 1; /* now only the other one is whole, which claims 512-byte sectors */
    assert_int_equal(geli->open(&ks, b, b, NULL), -EBADMSG);
}

static void what_cannot_be_created_is_refused(void **state)
{
    struct key_create bad[14];
    const int want[] = {-EOPNOTSUPP, -EINVAL,     -EINVAL, -EINVAL,     -EINVAL,
                        -EOPNOTSUPP, -EOPNOTSUPP, -EINVAL, -EOPNOTSUPP, -EINVAL,
                        -EINVAL,     -EINVAL,     -EINVAL, -EINVAL};

    (void)state;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        bad[i] = geli_container_request();
    bad[0].cipher = "aes-256-gcm";
    bad[1].key_bits = 192;
    bad[2].sector_size = 256;
    bad[3].sector_size = 262144;
    bad[4].medium_sector = 4096; /* more than the sectors of the disk */
    bad[5].label = "holidays";
    bad[6].cipher = "";
    bad[7].flags = "boot,loud";
    bad[8].integrity = "hmac-sha3";
    bad[9].version = "8";
    bad[10].version = "4"; /* had no XTS */
    bad[11].kdf.memory = 64 << 20;
    bad[12].integrity = "hmac-md5";
    bad[12].cipher = "aes-cbc";
    bad[12].version = "0";
    bad[13].cipher = "camellia";
    bad[13].version = "3";
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(geli->prepare(&bad[i], &said.rep), want[i]);
        assert_int_equal(said.n_lines, 1);
    }
}

/* --- suspended volumes --- */

static void a_volume_takes_its_own_key_back_and_no_other(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0}, again = {0}, no = {0};
    AUTO_SECRET struct secret bytes = {0};
    struct key_store *ks = NULL;

    (void)state;
    container_credential(&cred, "old horse", NULL);
    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    assert_int_equal(geli->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL), 0);
    assert_int_equal(geli->export(ks, &bytes), 0);
    geli->forget(ks, true);
    assert_null(ks->master.bytes);
    bytes.bytes[77] ^= 1;
    assert_int_equal(geli->import(ks, &bytes, &no, NULL), -EKEYREJECTED);
    bytes.bytes[77] ^= 1;
    assert_int_equal(geli->import(ks, &bytes, &again, NULL), 0);
    assert_memory_equal(again.rule.prk.bytes, v.rule.prk.bytes, v.rule.prk.len);
    assert_memory_equal(again.uuid, v.uuid, sizeof(v.uuid));
    geli->close(ks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_metadata_opens_and_gives_the_known_keys),
        cmocka_unit_test(no_other_passphrase_opens_known_metadata),
        cmocka_unit_test(an_encoded_block_is_the_one_that_was_decoded),
        cmocka_unit_test(known_providers_open_as_a_whole),
        cmocka_unit_test(each_version_derives_its_keys_in_its_way),
        cmocka_unit_test(a_new_container_opens_with_its_key_alone),
        cmocka_unit_test(every_cipher_and_length_makes_slots_that_open),
        cmocka_unit_test(a_cipher_may_have_its_bits_in_the_name),
        cmocka_unit_test(iterations_are_what_was_asked_for),
        cmocka_unit_test(every_field_is_checked),
        cmocka_unit_test(a_wrong_checksum_and_unknown_authentication_are_refused),
        cmocka_unit_test(a_size_that_does_not_fit_is_said_with_both_numbers),
        cmocka_unit_test(of_two_blocks_the_one_that_is_whole_counts),
        cmocka_unit_test(what_cannot_be_created_is_refused),
        cmocka_unit_test(a_volume_takes_its_own_key_back_and_no_other),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
