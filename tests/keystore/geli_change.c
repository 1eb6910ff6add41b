/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves changes of a GELI container's slots, flags, place and size (keystore/geli/change.c,
 * whole.c): what each does and refuses, that what was destroyed is gone, and that a crash at any
 * moment leaves what was there before or what comes after. */

#include "keystore/change.h"

#include "block/memory.h"
#include "block/record.h"
#include "keystore/geli/store.h"
#include "lib/container.h"
#include "lib/crash.h"
#include "lib/geli.h"
#include "lib/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct key_format *geli;
static const struct kdf_request none;

static int start(void **state)
{
    geli = key_format_named("geli");
    return geli == NULL ? -1 : test_start(state);
}

/* The slot that a passphrase opens, or -errno. */
static int opens(struct blk *b, const char *passphrase)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    int r = geli->open(&ks, b, b, NULL);

    container_credential(&cred, passphrase, NULL);
    if (r == 0)
        r = geli->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL);
    geli->close(ks);
    return r < 0 ? r : (int)v.slot;
}

/* b, open and unlocked with this passphrase. */
static void unlocked(struct key_container *c, struct blk *b, const char *passphrase)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};

    *c = (struct key_container){.format = geli};
    assert_int_equal(geli->open(&c->store, b, b, NULL), 0);
    container_credential(&cred, passphrase, NULL);
    assert_int_equal(geli->unlock(c->store, &cred, KEY_SLOT_ANY, &v, NULL), 0);
}

static int add(struct blk *b, const char *by, const char *passphrase, const char *keyfile, int slot,
               const struct kdf_request *kdf)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    unlocked(&c, b, by);
    container_credential(&cred, passphrase, keyfile);
    return key_change_add(&c, &cred, slot, NULL, kdf, NULL);
}

static int change(struct blk *b, const char *by, const char *passphrase, int slot,
                  const struct kdf_request *kdf)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    unlocked(&c, b, by);
    container_credential(&cred, passphrase, NULL);
    return key_change_change(&c, &cred, slot, NULL, kdf, NULL);
}

static int drop(struct blk *b, int slot, bool force)
{
    AUTO_KEY_CONTAINER struct key_container c = {.format = geli};

    assert_int_equal(geli->open(&c.store, b, b, NULL), 0);
    return key_change_remove(&c, slot, force, NULL);
}

static struct geli_meta meta_of(struct blk *b)
{
    struct geli_meta m;

    assert_int_equal(geli_meta_decode(&m, blk_memory_bytes(b) + b->size - 512, NULL), 0);
    return m;
}

/* --- slots --- */

static void two_slots_open_and_a_third_key_has_no_place(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();

    (void)state;
    assert_int_equal(add(b, "old horse", "second", NULL, 0, &none), -EEXIST);
    assert_int_equal(add(b, "old horse", "second", NULL, 2, &none), -EINVAL);
    assert_int_equal(add(b, "old horse", "second", NULL, KEY_SLOT_ANY, &none), 1);
    assert_int_equal(opens(b, "old horse"), 0);
    assert_int_equal(opens(b, "second"), 1);
    assert_int_equal(add(b, "second", "third", NULL, KEY_SLOT_ANY, &none), -ENOSPC);
    assert_int_equal(change(b, "second", "third", 1, &none), 0);
    assert_int_equal(opens(b, "second"), -EKEYREJECTED);
    assert_int_equal(opens(b, "third"), 1);
}

/* docs/geli-format.md 11: both slots share the iterations. */
static void iterations_change_only_while_one_slot_depends_on_them(void **state)
{
    const struct kdf_request seven = {.iterations = 7}, three = {.iterations = 3},
                             zero = {.iterations = KDF_NO_PASSES};
    AUTO_BLK struct blk *b = geli_container_open();

    (void)state;
    assert_int_equal(change(b, "old horse", "new", 0, &seven), 0);
    assert_int_equal(meta_of(b).iterations, 7);
    assert_int_equal(opens(b, "new"), 0);
    assert_int_equal(add(b, "new", "second", NULL, 1, &three), -EINVAL);
    assert_int_equal(add(b, "new", "second", NULL, 1, &seven), 1);
    assert_int_equal(change(b, "new", "newer", 0, &zero), -EINVAL);
    assert_int_equal(drop(b, 1, false), 0);
    assert_int_equal(change(b, "new", "newer", 0, &zero), 0);
    assert_int_equal(meta_of(b).iterations, 0);
    assert_int_equal(opens(b, "newer"), 0);
    assert_int_equal(add(b, "newer", NULL, "a key file", 1, &seven), -EINVAL);
}

static void a_removed_slot_is_overwritten_and_the_last_one_stays(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    struct geli_meta before;

    (void)state;
    assert_int_equal(add(b, "old horse", "second", NULL, 1, &none), 1);
    before = meta_of(b);
    assert_int_equal(drop(b, 0, false), 0);
    assert_int_equal(meta_of(b).keys, 2);
    for (unsigned at = 0; at < GELI_SLOT; at += 16)
        assert_memory_not_equal(meta_of(b).slot[0] + at, before.slot[0] + at, 16);
    assert_memory_equal(meta_of(b).slot[1], before.slot[1], GELI_SLOT);
    assert_int_equal(drop(b, 0, false), -ENOENT);
    assert_int_equal(drop(b, 1, false), -EPERM);
    assert_int_equal(opens(b, "second"), 1);
    assert_int_equal(drop(b, 1, true), 0);
    assert_int_equal(opens(b, "second"), -EKEYREJECTED);
    assert_int_equal(geli->check(b, b, NULL), -EKEYREJECTED);
}

static void an_erased_container_has_no_metadata(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    struct test_report said;

    (void)state;
    blk_memory_bytes(b)[b->size - 512 + 200] ^= 1; /* a damaged one too */
    test_report_init(&said);
    assert_int_equal(key_change_erase(geli, b, b, &said.rep), 0);
    for (size_t i = b->size - 512; i < b->size; i++)
        assert_int_equal(blk_memory_bytes(b)[i], 0);
    assert_int_equal(geli->recognise(b), 0);
    assert_int_equal(key_change_erase(geli, b, b, &said.rep), -EBADMSG);
}

/* --- changes that come from elsewhere --- */

static void seal_second(struct blk *b, struct key_patch *p)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    unlocked(&c, b, "old horse");
    container_credential(&cred, "second", NULL);
    assert_int_equal(geli->seal(c.store, KEY_PATCH_ADD, &cred, 1, NULL, &none, p, NULL), 0);
}

static int apply(struct blk *b, const struct key_patch *p)
{
    struct key_store *ks = NULL;
    int r;

    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    r = geli->apply(ks, p, NULL);
    geli->close(ks);
    return r;
}

static void a_change_is_for_one_container_and_one_state_of_it(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open(), *other = geli_container_open();
    struct key_patch p, bad;

    (void)state;
    seal_second(b, &p);
    assert_int_equal(apply(other, &p), -EINVAL);
    bad = p;
    bad.len--;
    assert_int_equal(apply(b, &bad), -EINVAL);
    bad = p;
    bad.slot = 2;
    assert_int_equal(apply(b, &bad), -EINVAL);
    bad = p;
    bad.what = KEY_PATCH_CHANGE;
    assert_int_equal(apply(b, &bad), -ENOENT);
    bad = p;
    bad.bytes[GELI_SLOT + GELI_SALT] ^= 1; /* other iterations than slot 0 has */
    assert_int_equal(apply(b, &bad), -ESTALE);
    bad = p;
    bad.bytes[GELI_SLOT + GELI_SALT + 4] ^= 1; /* something else was in the slot */
    assert_int_equal(apply(b, &bad), -ESTALE);
    assert_int_equal(opens(b, "second"), -EKEYREJECTED);
    assert_int_equal(apply(b, &p), 0);
    assert_int_equal(opens(b, "second"), 1);
    assert_int_equal(apply(b, &p), -EEXIST);
}

/* --- flags --- */

static void flags_are_set_and_cleared_by_words(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open();
    struct key_store *ks = NULL;

    (void)state;
    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    assert_int_equal(geli->set_flags(ks, "boot,geliboot,displaypass,nodelete,no-autoresize", NULL),
                     0);
    assert_int_equal(meta_of(b).flags,
                     GELI_BOOT | GELI_GELIBOOT | GELI_DISPLAYPASS | GELI_NODELETE);
    assert_int_equal(geli->set_flags(ks, "no-boot,autoresize,no-nodelete", NULL), 0);
    assert_int_equal(meta_of(b).flags, GELI_GELIBOOT | GELI_DISPLAYPASS | GELI_AUTORESIZE);
    assert_int_equal(geli->set_flags(ks, "auth", NULL), -EINVAL);
    assert_int_equal(geli->set_flags(ks, "boot,", NULL), -EINVAL);
    assert_int_equal(geli->set_flags(ks, "", NULL), -EINVAL);
    assert_int_equal(geli->set_flags(ks, "onetime", NULL), -EINVAL);
    assert_int_equal(meta_of(b).flags, GELI_GELIBOOT | GELI_DISPLAYPASS | GELI_AUTORESIZE);
    geli->close(ks);
    assert_int_equal(opens(b, "old horse"), 0);
}

/* --- backups --- */

static void a_backup_restores_what_was_lost_and_refuses_what_it_does_not_fit(void **state)
{
    AUTO_BLK struct blk *b = geli_container_open(), *bk = NULL, *larger = NULL;
    struct key_store *ks = NULL, *backup = NULL;

    (void)state;
    assert_int_equal(geli->open(&ks, b, b, NULL), 0);
    assert_int_equal(blk_memory_open(&bk, geli->header_size(ks), 1), 0);
    assert_int_equal(geli->backup(ks, bk, NULL), 0);
    assert_memory_equal(blk_memory_bytes(bk), blk_memory_bytes(b) + b->size - 512, 512);
    geli->close(ks);
    assert_int_equal(key_change_erase(geli, b, b, NULL), 0);
    assert_int_equal(geli->recognise(bk), 1);
    assert_int_equal(geli->open(&backup, bk, b, NULL), 0);
    assert_int_equal(geli->restore_check(backup, NULL, NULL), 0);
    assert_int_equal(geli->restore(backup, b, NULL), 0);
    geli->close(backup);
    assert_int_equal(opens(b, "old horse"), 0);

    assert_int_equal(blk_memory_open(&larger, 2 * GELI_TEST_SIZE, 1), 0);
    assert_int_equal(geli->open(&backup, bk, larger, NULL), 0);
    assert_int_equal(geli->restore_check(backup, NULL, NULL), -EPERM);
    assert_int_equal(geli->restore(backup, larger, NULL), 0); /* who insists */
    geli->close(backup);
    assert_int_equal(opens(larger, "old horse"), 0);
}

/* geli(8) leaves a backup that it changed without the last byte of its sector. */
static void a_backup_serves_as_a_detached_header_also_without_its_last_byte(void **state)
{
    for (unsigned len = 511; len <= 512; len++) {
        AUTO_BLK struct blk *b = geli_container_open(), *bk = NULL;
        AUTO_CREDENTIAL struct credential cred = {0};
        AUTO_KEY_VOLUME struct key_volume v = {0};
        struct key_store *ks = NULL;

        (void)state;
        assert_int_equal(blk_memory_open(&bk, len, 1), 0);
        memcpy(blk_memory_bytes(bk), blk_memory_bytes(b) + b->size - 512, len);
        assert_int_equal(geli->recognise(bk), 1);
        assert_int_equal(geli->open(&ks, bk, b, NULL), 0);
        container_credential(&cred, "old horse", NULL);
        assert_int_equal(geli->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL), 0);
        assert_int_equal(v.size, GELI_TEST_DISK);
        assert_int_equal(geli->set_flags(ks, "boot", NULL), 0);
        geli->close(ks);
        assert_int_equal(geli->open(&ks, bk, b, NULL), 0);
        assert_true(ks->meta.flags & GELI_BOOT);
        geli->close(ks);
    }
}

/* --- crashes --- */

/* One of these passphrases opens what a crash left. */
struct survivors {
    const char *a, *b;
};

static int one_opens(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    const struct survivors *s = arg;

    (void)crash;
    return opens(left, s->a) >= 0 || opens(left, s->b) >= 0 ? 0 : -1;
}

static void a_crash_while_a_key_changes_leaves_the_old_or_the_new_one(void **state)
{
    uint64_t seed = test_seed();
    struct survivors s = {"old horse", "new"};
    struct blk *b = geli_container_open(), *rec = NULL;
    AUTO_BLK struct blk *top = NULL;
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    (void)state;
    assert_int_equal(blk_record_open(&rec, b), 0);
    top = rec;
    unlocked(&c, rec, "old horse");
    container_credential(&cred, "new", NULL);
    assert_int_equal(key_change_change(&c, &cred, 0, NULL, &none, NULL), 0);
    test_each_crash(rec, 4, &seed, one_opens, &s);
}

static void a_crash_while_a_key_goes_leaves_the_other(void **state)
{
    uint64_t seed = test_seed();
    struct survivors s = {"second", "second"};
    struct blk *b = geli_container_open(), *rec = NULL;
    AUTO_BLK struct blk *top = NULL;
    AUTO_KEY_CONTAINER struct key_container c = {0};

    (void)state;
    assert_int_equal(add(b, "old horse", "second", NULL, 1, &none), 1);
    assert_int_equal(blk_record_open(&rec, b), 0);
    top = rec;
    unlocked(&c, rec, "second");
    assert_int_equal(key_change_remove(&c, 0, false, NULL), 0);
    test_each_crash(rec, 2, &seed, one_opens, &s);
}

/* The container grew before; until the metadata is at the new end it is where it was. */
static int found_at_either_end(struct blk *left, const struct blk_record_crash *crash, void *arg)
{
    uint64_t end = 0;

    (void)crash;
    (void)arg;
    if (opens(left, "old horse") >= 0)
        return 0;
    if (geli->find_end(left, &end, NULL, NULL) < 0 || end != GELI_TEST_SIZE ||
        geli->relocate(left, end, NULL) < 0)
        return -1;
    return opens(left, "old horse") >= 0 ? 0 : -1;
}

static void a_crash_while_the_metadata_moves_leaves_it_at_one_end(void **state)
{
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *small = geli_container_open(), *top = NULL;
    struct blk *b = NULL, *rec = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&b, GELI_TEST_SIZE + 4096, 1), 0);
    memcpy(blk_memory_bytes(b), blk_memory_bytes(small), GELI_TEST_SIZE);
    assert_int_equal(blk_record_open(&rec, b), 0);
    top = rec;
    assert_int_equal(geli->relocate(rec, GELI_TEST_SIZE - 512, NULL), -EBADMSG);
    assert_int_equal(geli->relocate(rec, GELI_TEST_SIZE + 4096, NULL), -EINVAL);
    assert_int_equal(geli->relocate(rec, GELI_TEST_SIZE, NULL), 0);
    test_each_crash(rec, 2, &seed, found_at_either_end, NULL);
    assert_int_equal(opens(rec, "old horse"), 0);
    assert_false(geli_meta_begins(blk_memory_bytes(b) + GELI_TEST_DISK)); /* the old one is gone */
}

/* A disk can hold anything, other containers too; only what ended where it lies is a place. */
static void the_last_metadata_that_ended_where_it_lies_is_found(void **state)
{
    AUTO_BLK struct blk *small = geli_container_open(), *b = NULL;
    const unsigned char *block = blk_memory_bytes(small) + GELI_TEST_DISK;
    uint64_t end = 1;

    (void)state;
    assert_int_equal(blk_memory_open(&b, ((uint64_t)3 << 20) + 512, 1), 0);
    assert_int_equal(geli->find_end(b, &end, NULL, NULL), -EBADMSG);
    memcpy(blk_memory_bytes(b) + GELI_TEST_DISK + 512, block, 512);
    memcpy(blk_memory_bytes(b) + ((uint64_t)2 << 20) - 512, block, 512);
    memcpy(blk_memory_bytes(b) + GELI_TEST_DISK + 4096, block, 512);
    assert_int_equal(geli->find_end(b, &end, NULL, NULL), -EBADMSG);
    assert_int_equal(end, 1);
    memcpy(blk_memory_bytes(b) + GELI_TEST_DISK, block, 512);
    assert_int_equal(geli->find_end(b, &end, NULL, NULL), 0);
    assert_int_equal(end, GELI_TEST_SIZE);
    blk_memory_bytes(b)[GELI_TEST_DISK + 100] ^= 1; /* its MD5 does not fit */
    assert_int_equal(geli->find_end(b, &end, NULL, NULL), -EBADMSG);
}

static void resizing_moves_the_metadata_to_where_the_container_ends(void **state)
{
    static const uint64_t sizes[] = {2 * GELI_TEST_DISK, GELI_TEST_DISK / 2, 512};
    AUTO_BLK struct blk *b = geli_container_open(), *room = NULL;
    struct key_store *ks = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&room, 3 * GELI_TEST_SIZE, 1), 0);
    memcpy(blk_memory_bytes(room), blk_memory_bytes(b), b->size);
    room->size = GELI_TEST_SIZE;
    assert_int_equal(geli->open(&ks, room, room, NULL), 0);
    assert_int_equal(geli->resize(ks, GELI_TEST_DISK + 1, NULL), -EINVAL);
    assert_int_equal(geli->resize(ks, 2 * GELI_TEST_DISK, NULL), -EINVAL); /* not there yet */
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint64_t end = geli->container_end(ks, sizes[i]);

        assert_int_equal(end, sizes[i] + 512);
        if (end > room->size)
            room->size = end;
        assert_int_equal(geli->resize(ks, sizes[i], NULL), 0);
        room->size = end;
        assert_int_equal(opens(room, "old horse"), 0);
    }
    geli->close(ks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_slots_open_and_a_third_key_has_no_place),
        cmocka_unit_test(iterations_change_only_while_one_slot_depends_on_them),
        cmocka_unit_test(a_removed_slot_is_overwritten_and_the_last_one_stays),
        cmocka_unit_test(an_erased_container_has_no_metadata),
        cmocka_unit_test(a_change_is_for_one_container_and_one_state_of_it),
        cmocka_unit_test(flags_are_set_and_cleared_by_words),
        cmocka_unit_test(a_backup_restores_what_was_lost_and_refuses_what_it_does_not_fit),
        cmocka_unit_test(a_backup_serves_as_a_detached_header_also_without_its_last_byte),
        cmocka_unit_test(a_crash_while_a_key_changes_leaves_the_old_or_the_new_one),
        cmocka_unit_test(a_crash_while_a_key_goes_leaves_the_other),
        cmocka_unit_test(a_crash_while_the_metadata_moves_leaves_it_at_one_end),
        cmocka_unit_test(the_last_metadata_that_ended_where_it_lies_is_found),
        cmocka_unit_test(resizing_moves_the_metadata_to_where_the_container_ends),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
