/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves the changes of key slots, keystore/change.c over keystore/native/change.c: what a change
 * does and refuses, with and without the key, that what was destroyed is gone, and that a crash at
 * any moment leaves the keys from before or those from after. */

#include "keystore/change.h"

#include "base/bytes.h"
#include "block/fault.h"
#include "block/memory.h"
#include "block/record.h"
#include "lib/container.h"
#include "lib/test.h"

#include <errno.h>
#include <string.h>
#include <time.h>

enum { SLOTS = 0x200, MAJOR = 0x08, SEQ = 0x10, SLOT_SEQ = 0x1b8, MAC = 0x1c0, WRAPPED = 0x38 };

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

static unsigned char *slot_at(struct blk *b, unsigned i, unsigned slot)
{
    return copy(b, i) + SLOTS + (size_t)slot * NATIVE_SLOT;
}

/* A slot that costs next to nothing. */
static void cheap_slot(unsigned char slot[NATIVE_SLOT], unsigned index, const char *passphrase)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];
    AUTO_SECRET struct secret master = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    container_block(block, &h); /* sets h's sum */
    container_master(&master);
    container_credential(&cred, passphrase, NULL);
    assert_int_equal(
        native_slot_wrap(slot, index, &h, &container_cost, "cheap", &cred, &master, NULL), 0);
}

/* "old horse" in slot 2, "second" in slot 5. */
static struct blk *usual(void)
{
    struct native_header h = container_header();
    unsigned char block[NATIVE_BLOCK];

    container_block(block, &h);
    cheap_slot(block + SLOTS + 5 * NATIVE_SLOT, 5, "second");
    container_reseal(block, 1);
    return container_open(block);
}

/* A change as if it came from another process. */
static struct key_patch patch(enum key_patch_what what, unsigned slot, const char *passphrase)
{
    struct native_header h = container_header();
    struct key_patch p = {.what = what, .slot = slot, .len = NATIVE_SLOT + 16 + 32};
    unsigned char block[NATIVE_BLOCK];

    container_block(block, &h);
    if (passphrase != NULL)
        cheap_slot(p.bytes, slot, passphrase);
    memcpy(p.bytes + NATIVE_SLOT, h.uuid, 16);
    memcpy(p.bytes + NATIVE_SLOT + 16, h.params_sha256, 32);
    return p;
}

static int unlock(struct key_store *ks, const char *passphrase, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};

    container_credential(&cred, passphrase, NULL);
    return native->unlock(ks, &cred, KEY_SLOT_ANY, &v, rep);
}

/* 0 when it opens. */
static int opens(struct blk *b, const char *passphrase, struct report *rep)
{
    struct key_store *ks = NULL;
    int r = native->open(&ks, b, b, rep);

    if (r == 0)
        r = unlock(ks, passphrase, rep);
    native->close(ks);
    return r;
}

static bool is_erased(struct blk *b)
{
    const struct key_format *f = NULL;
    struct test_report said;

    test_report_init(&said);
    return key_recognise(&f, b, NULL) == 0 && opens(b, "old horse", &said.rep) == -EKEYREJECTED &&
           test_report_has(&said, "erased");
}

static struct key_store *opened(struct blk *b, bool keyed)
{
    struct key_store *ks = NULL;

    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    if (keyed)
        assert_int_equal(unlock(ks, "old horse", NULL), 0);
    return ks;
}

static int apply(struct blk *b, bool keyed, const struct key_patch *p, struct report *rep)
{
    struct key_store *ks = opened(b, keyed);
    int r = native->apply(ks, p, rep);

    native->close(ks);
    return r;
}

/* --- what a change does --- */

static void a_change_without_the_key_leaves_the_mac_and_raises_slot_seq(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_patch p = patch(KEY_PATCH_ADD, 0, "third");
    unsigned char before[NATIVE_BLOCK];

    (void)state;
    memcpy(before, copy(b, 0), NATIVE_BLOCK);
    assert_int_equal(apply(b, false, &p, NULL), 0);
    assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
    assert_memory_equal(copy(b, 0), before, SLOT_SEQ);
    assert_int_equal(bytes_get_le64(copy(b, 0) + SLOT_SEQ), 8);
    assert_memory_equal(copy(b, 0) + MAC, before + MAC, 32);
    assert_memory_equal(slot_at(b, 0, 0), p.bytes, NATIVE_SLOT);
    assert_memory_equal(slot_at(b, 0, 1), before + SLOTS + NATIVE_SLOT, 13 * NATIVE_SLOT);
    assert_int_equal(opens(b, "third", NULL), 0);
    assert_int_equal(opens(b, "second", NULL), 0);
}

static void with_the_key_seq_goes_up_too(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_patch p = patch(KEY_PATCH_CHANGE, 5, "third");

    (void)state;
    assert_int_equal(apply(b, true, &p, NULL), 0);
    assert_int_equal(bytes_get_le64(copy(b, 1) + SEQ), 6);
    assert_int_equal(bytes_get_le64(copy(b, 1) + SLOT_SEQ), 8);
    assert_int_equal(opens(b, "third", NULL), 0);
    assert_int_equal(opens(b, "second", NULL), -EKEYREJECTED);
}

/* The daemon of a mounted container: it unlocked, forgot what seals, and writes what others made.
 */
static void who_forgot_the_master_key_can_still_write_changes(void **state)
{
    for (int all = 0; all < 2; all++) {
        AUTO_BLK struct blk *b = usual();
        struct key_patch p = patch(KEY_PATCH_ADD, 9, "third");
        struct key_store *ks = opened(b, true);

        (void)state;
        native->forget(ks, all);
        assert_int_equal(native->apply(ks, &p, NULL), 0);
        p = patch(KEY_PATCH_REMOVE, 5, NULL);
        assert_int_equal(native->apply(ks, &p, NULL), 0);
        native->close(ks);
        assert_int_equal(opens(b, "third", NULL), 0);
        assert_int_equal(opens(b, "second", NULL), -EKEYREJECTED);
        assert_int_equal(bytes_get_le64(copy(b, 0) + SEQ), all ? 5 : 7);
    }
}

static void commands_add_change_and_remove(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {.blk = usual(), .format = native};
    AUTO_CREDENTIAL struct credential third = {0}, fourth = {0};
    uint64_t now = (uint64_t)time(NULL);
    struct key_slot_info info[NATIVE_SLOTS];

    (void)state;
    container_credential(&third, "third", NULL);
    container_credential(&fourth, "fourth", "and a file");
    c.store = opened(c.blk, true);
    assert_int_equal(key_change_add(&c, &third, KEY_SLOT_ANY, "spare", &cheapest, NULL), 0);
    bytes_put_le64(native_header_slot(copy(c.blk, 0), 0) + 0x98, 1);
    assert_int_equal(key_change_change(&c, &fourth, 0, NULL, &cheapest, NULL), 0);
    assert_int_equal(native->slots(c.store, info, NATIVE_SLOTS, NULL), 3);
    assert_string_equal(info[0].label, "spare");
    assert_int_equal(info[0].kind, KEY_SLOT_BOTH);
    assert_true(info[0].created >= now);
    assert_int_equal(key_change_change(&c, &third, 0, "", &cheapest, NULL), 0);
    assert_int_equal(native->slots(c.store, info, NATIVE_SLOTS, NULL), 3);
    assert_string_equal(info[0].label, "");
    assert_int_equal(opens(c.blk, "third", NULL), 0);
    assert_int_equal(key_change_remove(&c, 0, false, NULL), 0);
    assert_int_equal(opens(c.blk, "third", NULL), -EKEYREJECTED);
    assert_int_equal(key_change_change(&c, &third, 0, NULL, &cheapest, NULL), -ENOENT);
    assert_int_equal(key_change_change(&c, &third, KEY_SLOT_ANY, NULL, &cheapest, NULL), -EINVAL);
}

/* --- what is refused --- */

/* p must be refused, with words, and nothing written. */
static void refused(struct blk *b, bool keyed, const struct key_patch *p, int want,
                    const char *words)
{
    AUTO_FREE unsigned char *before = malloc(CONTAINER_SIZE);
    struct test_report said;

    memcpy(before, blk_memory_bytes(b), CONTAINER_SIZE);
    test_report_init(&said);
    assert_int_equal(apply(b, keyed, p, &said.rep), want);
    assert_int_equal(said.n_lines, 1);
    assert_true(test_report_has(&said, words));
    assert_memory_equal(before, blk_memory_bytes(b), CONTAINER_SIZE);
}

static void slots_that_do_not_fit_the_change_are_refused(void **state)
{
    static const struct {
        enum key_patch_what what;
        unsigned slot;
        int want;
        const char *words;
    } cases[] = {
        {KEY_PATCH_ADD, 2, -EEXIST, "in use"},
        {KEY_PATCH_ADD, 14, -EINVAL, "no key slot 14"},
        {KEY_PATCH_ADD, UINT32_MAX, -EINVAL, "no key slot 4294967295"},
        {KEY_PATCH_CHANGE, 3, -ENOENT, "empty"},
        {KEY_PATCH_CHANGE, 14, -EINVAL, "no key slot 14"},
        {KEY_PATCH_REMOVE, 3, -ENOENT, "empty"},
        {KEY_PATCH_REMOVE, UINT32_MAX, -EINVAL, "no key slot 4294967295"},
        {0, 2, -EINVAL, "no change 0"},
        {KEY_PATCH_ERASE + 1, 2, -EINVAL, "no change 5"},
    };
    AUTO_BLK struct blk *b = usual();

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct key_patch p = patch(cases[i].what, cases[i].slot, "third");

        refused(b, i % 2, &p, cases[i].want, cases[i].words);
    }
}

/* A change is what a stranger may have sent: it must not destroy a slot that opens. */
static void bytes_that_are_no_slot_of_this_container_are_refused(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
        const char *words;
    } odd[] = {
        {0x00, 0, "no key slot"},        {0x00, 2, "no key slot"},        {0x01, 0, "no key slot"},
        {0x01, 4, "no key slot"},        {0x02, 2, "no key slot"},        {0x03, 2, "no key slot"},
        {0x0b, 1, "no key slot"},        {0x0d, 1, "no key slot"},        {0x10, 2, "no key slot"},
        {0x100, 9, "another container"}, {0x12f, 9, "another container"},
    };
    AUTO_BLK struct blk *b = usual();
    struct key_patch p;

    (void)state;
    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        p = patch(i % 2 ? KEY_PATCH_ADD : KEY_PATCH_CHANGE, i % 2 ? 1 : 2, "third");
        p.bytes[odd[i].at] = odd[i].value;
        refused(b, false, &p, -EINVAL, odd[i].words);
    }
    p = patch(KEY_PATCH_CHANGE, 2, "third");
    p.len--;
    refused(b, false, &p, -EINVAL, "none of this format");
}

static void without_the_key_nothing_is_built_on_unequal_copies(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        AUTO_BLK struct blk *b = usual();
        struct key_patch p =
            patch(i % 2 ? KEY_PATCH_ADD : KEY_PATCH_REMOVE, i % 2 ? 0 : 5, "third");
        struct key_store *ks;
        struct test_report said;

        if (i < 2)
            copy(b, i)[SEQ] ^= 1;
        else
            bytes_put_le64(copy(b, i - 2) + SLOT_SEQ, 6);
        if (i >= 2)
            container_reseal(copy(b, i - 2), 1);
        test_report_init(&said);
        ks = opened(b, false);
        assert_int_equal(native->apply(ks, &p, &said.rep), -EBADMSG);
        assert_true(test_report_has(&said, "mended first"));
        assert_int_equal(unlock(ks, "old horse", NULL), 0);
        assert_int_equal(native->apply(ks, &p, &said.rep), 0);
        native->close(ks);
        assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
    }
}

static void the_last_slot_that_opens_here_goes_only_by_force(void **state)
{
    static const struct {
        size_t at;
        unsigned char value;
    } odd[] = {{0x00, 0}, {0x01, 9}, {0x10, 2}, {0x0d, 1}};

    (void)state;
    for (unsigned i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        AUTO_BLK struct blk *b = usual();
        struct key_patch p = patch(KEY_PATCH_REMOVE, 2, NULL);

        for (unsigned c = 0; c < NATIVE_COPIES; c++) {
            slot_at(b, c, 5)[odd[i].at] = odd[i].value;
            container_reseal(copy(b, c), 1);
        }
        refused(b, i % 2, &p, -EPERM, "nothing would open the container");
        p.slot = 5;
        if (odd[i].at != 0)
            assert_int_equal(apply(b, false, &p, NULL), 0);
        p.slot = 2;
        p.force = true;
        assert_int_equal(apply(b, i % 2, &p, NULL), 0);
        assert_true(is_erased(b));
    }
}

static void what_is_open_for_reading_or_changed_too_often_is_not_changed(void **state)
{
    AUTO_BLK struct blk *b = usual();
    struct key_patch p = patch(KEY_PATCH_REMOVE, 5, NULL);

    (void)state;
    for (unsigned c = 0; c < NATIVE_COPIES; c++) {
        bytes_put_le64(copy(b, c) + SLOT_SEQ, UINT64_MAX - 1);
        container_reseal(copy(b, c), 1);
    }
    refused(b, false, &p, -EOVERFLOW, "too often");
    refused(b, true, &p, -EOVERFLOW, "too often");
    b->read_only = true;
    refused(b, false, &p, -EROFS, "reading only");
    p.what = KEY_PATCH_ERASE;
    refused(b, false, &p, -EROFS, "reading only");
}

static void after_a_write_that_failed_no_change_follows(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++) {
        AUTO_BLK struct blk *b = NULL;
        const struct blk_fault fail = {.ops = n < 2 ? BLK_FAULT_WRITE : BLK_FAULT_FLUSH,
                                       .after = n % 2,
                                       .times = 1,
                                       .err = EIO};
        struct key_patch p = patch(KEY_PATCH_ADD, 0, "third");
        struct test_report said;
        struct key_store *ks;

        assert_int_equal(blk_fault_open(&b, usual()), 0);
        ks = opened(b, false);
        blk_fault_add(b, &fail);
        test_report_init(&said);
        assert_int_equal(native->apply(ks, &p, &said.rep), -EIO);
        p.slot = 1;
        assert_int_equal(native->apply(ks, &p, &said.rep), -EIO);
        assert_true(test_report_has(&said, "earlier update"));
        native->close(ks);
        assert_int_equal(opens(b, "old horse", NULL), 0);
    }
}

/* Two processes that seal for the same slot: the second does not undo what the first was told is
 * done. */
static void the_second_of_two_changes_of_a_slot_is_refused(void **state)
{
    static const enum key_patch_what both[] = {KEY_PATCH_CHANGE, KEY_PATCH_REMOVE};
    const struct kdf_request cheap = {.memory = 64 << 20, .iterations = 3};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        AUTO_BLK struct blk *b = usual();
        struct key_store *first = opened(b, true), *second = opened(b, true);
        AUTO_CREDENTIAL struct credential mine = {0}, theirs = {0};
        struct key_patch a, z;
        struct test_report said;

        test_report_init(&said);
        container_credential(&mine, "third", NULL);
        container_credential(&theirs, "fourth", NULL);
        assert_int_equal(native->seal(first, both[i & 1], &mine, 5, NULL, &cheap, &a, NULL), 0);
        assert_int_equal(native->seal(second, both[i >> 1], &theirs, 5, NULL, &cheap, &z, NULL), 0);
        native->close(first);
        native->close(second);
        assert_int_equal(apply(b, false, &a, NULL), 0);
        if (a.what == KEY_PATCH_CHANGE) {
            assert_int_equal(apply(b, false, &z, &said.rep), -ESTALE);
            assert_true(test_report_has(&said, "key slot 5 was changed by somebody else"));
            assert_int_equal(opens(b, "third", NULL), 0);
        } else {
            assert_int_equal(apply(b, false, &z, NULL), -ENOENT);
        }
        assert_int_equal(opens(b, "old horse", NULL), 0);
        assert_int_equal(opens(b, "second", NULL), -EKEYREJECTED);
        assert_int_equal(opens(b, "fourth", NULL), -EKEYREJECTED);
    }
}

/* --- what was destroyed is gone --- */

/* Is what the slot wrapped still anywhere on b? */
static bool remains(struct blk *b, const unsigned char *slot)
{
    return memmem(blk_memory_bytes(b), CONTAINER_SIZE, slot + WRAPPED, 32) != NULL;
}

static void of_a_removed_or_changed_slot_nothing_remains(void **state)
{
    for (int change = 0; change < 2; change++) {
        AUTO_BLK struct blk *b = usual();
        struct key_patch p = patch(change ? KEY_PATCH_CHANGE : KEY_PATCH_REMOVE, 5, "third");
        unsigned char old[NATIVE_SLOT];

        (void)state;
        memcpy(old, slot_at(b, 0, 5), NATIVE_SLOT);
        assert_true(remains(b, old));
        assert_int_equal(apply(b, false, &p, NULL), 0);
        assert_false(remains(b, old));
        assert_int_equal(slot_at(b, 1, 5)[0], change);
        assert_false(bytes_are_zero(slot_at(b, 1, 5) + 1, 255));
    }
}

/* How a header may look when it is to be erased. */
enum state { WHOLE, DAMAGED_0, DAMAGED_1, OLDER_0, OLDER_1, STATES };

static struct blk *in_state(enum state how)
{
    struct blk *b = usual();

    if (how == DAMAGED_0 || how == DAMAGED_1)
        copy(b, how - DAMAGED_0)[SEQ] ^= 0x40;
    if (how == OLDER_0 || how == OLDER_1) {
        bytes_put_le64(copy(b, how - OLDER_0) + SLOT_SEQ, 6);
        container_reseal(copy(b, how - OLDER_0), 1);
    }
    return b;
}

static void an_erased_container_says_so_and_has_no_slot_left(void **state)
{
    struct key_patch p = {.what = KEY_PATCH_ERASE};

    (void)state;
    for (unsigned i = 0; i < 2 * STATES; i++) {
        AUTO_BLK struct blk *b = in_state(i / 2);
        unsigned char old[2][NATIVE_SLOT];

        memcpy(old[0], slot_at(b, 0, 2), NATIVE_SLOT);
        memcpy(old[1], slot_at(b, 0, 5), NATIVE_SLOT);
        if (i % 2)
            assert_int_equal(apply(b, false, &p, NULL), 0);
        else
            assert_int_equal(key_change_erase(native, b, b, NULL), 0);
        assert_true(is_erased(b));
        assert_false(remains(b, old[0]) || remains(b, old[1]));
        assert_memory_equal(copy(b, 0), copy(b, 1), NATIVE_BLOCK);
        assert_int_equal(key_change_erase(native, b, b, NULL), 0);
        assert_true(is_erased(b));
    }
}

/* Both copies damaged, of a later version, or one that cannot be read: open fails, erasing works.
 */
static void a_header_that_does_not_open_is_erased_all_the_same(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        AUTO_BLK struct blk *b = NULL, *memory = usual();
        const struct blk_fault bad = {
            .ops = BLK_FAULT_READ, .off = NATIVE_COPY_STEP, .len = NATIVE_BLOCK, .err = EIO};
        unsigned char old[NATIVE_SLOT];
        struct key_store *ks = NULL;

        memcpy(old, slot_at(memory, 0, 2), NATIVE_SLOT);
        for (unsigned c = 0; c < NATIVE_COPIES; c++)
            copy(memory, c)[i < 2 ? MAJOR : SEQ] ^= 0x40;
        for (unsigned c = 0; c < NATIVE_COPIES && i == 0; c++)
            container_reseal(copy(memory, c), 1);
        assert_int_equal(blk_fault_open(&b, memory), 0);
        if (i == 3)
            blk_fault_add(b, &bad);
        assert_int_equal(native->open(&ks, b, b, NULL), i == 0 ? -EOPNOTSUPP : -EBADMSG);
        assert_int_equal(key_change_erase(native, b, b, NULL), 0);
        assert_int_equal(native->open(&ks, b, b, NULL), i == 0 ? -EOPNOTSUPP : -EBADMSG);
        assert_false(remains(memory, old));
        for (unsigned n = 0; n < 2 * NATIVE_SLOTS; n++)
            assert_int_equal(slot_at(memory, n % 2, n / 2)[0], 0);
        memory = NULL; /* b's */
    }
}

static void erasing_goes_on_after_a_copy_that_cannot_be_written(void **state)
{
    (void)state;
    for (unsigned i = 0; i < NATIVE_COPIES; i++) {
        AUTO_BLK struct blk *b = NULL;
        struct blk *memory = usual();
        const struct blk_fault bad = {.ops = BLK_FAULT_WRITE,
                                      .off = (uint64_t)i * NATIVE_COPY_STEP,
                                      .len = NATIVE_BLOCK,
                                      .err = EIO};
        struct test_report said;

        assert_int_equal(blk_fault_open(&b, memory), 0);
        blk_fault_add(b, &bad);
        test_report_init(&said);
        assert_int_equal(key_change_erase(native, b, b, &said.rep), -EIO);
        assert_int_equal(said.n_lines, 1);
        assert_true(test_report_has(&said, i ? "copy 1" : "copy 0"));
        assert_true(is_erased(b));
    }
}

static void a_container_cut_inside_its_header_is_erased_as_far_as_it_goes(void **state)
{
    AUTO_BLK struct blk *b = usual();

    (void)state;
    b->size = NATIVE_COPY_STEP + NATIVE_BLOCK - 1;
    assert_int_equal(key_change_erase(native, b, b, NULL), 0);
    assert_int_equal(slot_at(b, 0, 2)[0], 0);
    assert_int_equal(slot_at(b, 1, 2)[0], 0);
    b->size = NATIVE_BLOCK - 1;
    *slot_at(b, 0, 2) = 1;
    assert_int_equal(key_change_erase(native, b, b, NULL), 0);
    assert_int_equal(slot_at(b, 0, 2)[0], 0);
}

/* --- crashes --- */

/* Which of "old horse", "second" and "third" open; erased is none with the words for it. */
enum { OLD = 1, SECOND = 2, THIRD = 4, ERASED = 8 };

static unsigned keys_of(struct blk *b)
{
    unsigned keys = opens(b, "old horse", NULL) == 0 ? OLD : 0;

    keys |= opens(b, "second", NULL) == 0 ? SECOND : 0;
    keys |= opens(b, "third", NULL) == 0 ? THIRD : 0;
    return keys != 0 ? keys : is_erased(b) ? ERASED : 0;
}

/* Something that writes the header, and the keys after it (before it: OLD and SECOND). */
struct update {
    const char *name;
    enum key_patch_what what; /* 0: only mend */
    unsigned slot;
    bool force;
    unsigned keys;
};

static const struct update updates[] = {
    {"mend", 0, 0, false, OLD | SECOND},
    {"add", KEY_PATCH_ADD, 0, false, OLD | SECOND | THIRD},
    {"change", KEY_PATCH_CHANGE, 5, false, OLD | THIRD},
    {"change the own one", KEY_PATCH_CHANGE, 2, false, SECOND | THIRD},
    {"remove", KEY_PATCH_REMOVE, 5, false, OLD},
    {"erase", KEY_PATCH_ERASE, 0, false, ERASED},
};
#define N_UPDATES (sizeof(updates) / sizeof(updates[0]))

static int run_update(struct blk *b, const struct update *u, bool keyed)
{
    struct key_store *ks = opened(b, keyed);
    struct key_patch p = patch(u->what, u->slot, "third");
    int r;

    p.force = u->force;
    r = u->what == 0 ? native->repair(ks, NULL) : native->apply(ks, &p, NULL);
    native->close(ks);
    return r;
}

/* The n-th way of a crash after n_entries to tear what no flush covers, at every 512 bytes: all of
 * it there, nothing, then by chance. False when there is no such way. left holds CONTAINER_SIZE. */
static bool crash(struct blk *recorded, struct blk *left, size_t n_entries, unsigned n,
                  uint64_t *seed)
{
    struct blk_record_crash c = {
        .n_entries = n_entries, .piece = 512, .density = BLK_RECORD_BITS, .seed = UINT64_MAX};

    if (n > 0 && blk_record_open_pieces(recorded, n_entries, 512) == 0)
        return false;
    if (n > 0)
        c.seed = n == 1 ? 0 : test_random(seed);
    blk_record_replay_crash(recorded, blk_memory_bytes(left), &c);
    return true;
}

/* left, as a crash may leave it: the keys from before or after u. One in four is mended, as the
 * next unlock for writing does it: the keys stay, also when that crashes too. */
static void check_left(struct blk *left, const struct update *u, uint64_t *seed)
{
    AUTO_BLK struct blk *again = NULL;
    unsigned keys = keys_of(left);
    const struct update mend = {.name = "mend"};
    size_t n_entries;

    if (keys != (OLD | SECOND) && keys != u->keys)
        fail_msg("%s: a crash leaves %#x", u->name, keys);
    if (!(keys & OLD) || test_random(seed) % 4 != 0)
        return;
    assert_int_equal(blk_memory_open(&again, CONTAINER_SIZE, 1), 0);
    memcpy(blk_memory_bytes(again), blk_memory_bytes(left), CONTAINER_SIZE);
    assert_int_equal(blk_record_open(&again, TAKE(again)), 0);
    assert_int_equal(run_update(again, &mend, true), 0);
    blk_record_log(again, &n_entries);
    crash(again, left, n_entries, 0, seed);
    assert_memory_equal(copy(left, 0), copy(left, 1), NATIVE_BLOCK);
    assert_int_equal(keys_of(left), keys);
    if (n_entries > 0 && crash(again, left, 1, 2, seed))
        assert_int_equal(keys_of(left), keys);
}

static void crash_everywhere(struct blk *recorded, struct blk *left, const struct update *u,
                             uint64_t *seed)
{
    size_t n_entries;

    blk_record_log(recorded, &n_entries);
    for (size_t i = 0; i <= n_entries; i++)
        for (unsigned n = 0; n < 5 && crash(recorded, left, i, n, seed); n++)
            check_left(left, u, seed);
    assert_true(crash(recorded, left, n_entries, 0, seed));
    assert_int_equal(keys_of(left), u->keys);
}

static void a_crash_leaves_the_keys_from_before_or_after(void **state)
{
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *left = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&left, CONTAINER_SIZE, 1), 0);
    for (unsigned i = 0; i < N_UPDATES * STATES * 2; i++) {
        const struct update *u = &updates[i % N_UPDATES];
        enum state how = i / N_UPDATES % STATES;
        bool keyed = i / N_UPDATES / STATES;
        AUTO_BLK struct blk *b = NULL;
        size_t n_entries;

        if (!keyed && u->what != KEY_PATCH_ERASE && (how != WHOLE || u->what == 0))
            continue; /* these are refused: shown above */
        assert_int_equal(blk_record_open(&b, in_state(how)), 0);
        assert_int_equal(run_update(b, u, keyed), 0);
        blk_record_log(b, &n_entries);
        assert_true(n_entries > 0 || (u->what == 0 && how == WHOLE));
        crash_everywhere(b, left, u, &seed);
    }
}

static void a_crash_while_the_last_slot_goes_leaves_it_or_an_erased_container(void **state)
{
    uint64_t seed = test_seed();
    AUTO_BLK struct blk *left = NULL;

    (void)state;
    assert_int_equal(blk_memory_open(&left, CONTAINER_SIZE, 1), 0);
    for (int keyed = 0; keyed < 2; keyed++) {
        AUTO_BLK struct blk *b = usual();
        struct key_patch p = patch(KEY_PATCH_REMOVE, 2, NULL);
        size_t n_entries;

        assert_int_equal(apply(b, keyed, &p, NULL), 0);
        assert_int_equal(keys_of(b), SECOND);
        assert_int_equal(blk_record_open(&b, TAKE(b)), 0);
        p.slot = 5;
        p.force = true;
        assert_int_equal(apply(b, false, &p, NULL), 0);
        blk_record_log(b, &n_entries);
        for (size_t n = 0; n <= n_entries; n++)
            for (unsigned way = 0; way < 20 && crash(b, left, n, way, &seed); way++)
                assert_true(keys_of(left) == SECOND || keys_of(left) == ERASED);
    }
}

/* A crash between the two writes of an erasure: the slots that the older copy still has must not
 * come back, and erasing again takes them away. */
static void half_an_erasure_is_erased_and_can_be_completed(void **state)
{
    struct key_patch p = {.what = KEY_PATCH_ERASE};

    (void)state;
    for (unsigned how = 0; how < STATES; how++) {
        AUTO_BLK struct blk *b = NULL, *left = NULL;
        unsigned char old[NATIVE_SLOT];
        size_t n_entries;

        assert_int_equal(blk_record_open(&b, in_state(how)), 0);
        assert_int_equal(apply(b, false, &p, NULL), 0);
        blk_record_log(b, &n_entries);
        assert_int_equal(n_entries, 4);
        assert_int_equal(blk_memory_open(&left, CONTAINER_SIZE, 1), 0);
        blk_record_replay(b, blk_memory_bytes(left), 0, 0, 0);
        memcpy(old, slot_at(left, 0, 2), NATIVE_SLOT);
        blk_record_replay(b, blk_memory_bytes(left), 2, 0, 0);
        assert_true(is_erased(left));
        assert_true(remains(left, old));
        assert_int_equal(key_change_erase(native, left, left, NULL), 0);
        assert_true(is_erased(left));
        assert_false(remains(left, old));
    }
}

/* --- formats that can do less --- */

static int direct_add(struct key_store *ks, const struct credential *cred, int slot,
                      const char *label, const struct kdf_request *kdf, struct report *rep)
{
    (void)ks, (void)cred, (void)label, (void)kdf, (void)rep;
    return slot == KEY_SLOT_ANY ? 7 : slot;
}

static int direct_change(struct key_store *ks, const struct credential *cred, int slot,
                         const struct kdf_request *kdf, struct report *rep)
{
    (void)ks, (void)cred, (void)kdf, (void)rep;
    return slot;
}

static int direct_remove(struct key_store *ks, int slot, bool force, struct report *rep)
{
    (void)ks, (void)rep;
    return force ? slot : -EPERM;
}

static void what_a_format_cannot_do_is_said_before_anybody_is_asked(void **state)
{
    static const struct key_format nothing = {.name = "odd"};
    const struct key_container c = {.format = &nothing};
    struct key_container odd = c;

    (void)state;
    for (enum key_patch_what what = KEY_PATCH_ADD; what <= KEY_PATCH_ERASE; what++) {
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(key_change_possible(&nothing, what, &said.rep), -EOPNOTSUPP);
        assert_int_equal(key_change_possible_mounted(&nothing, what, &said.rep), -EOPNOTSUPP);
        assert_int_equal(said.n_lines, 2);
        assert_true(test_report_has(&said, "is not possible in the odd format"));
        assert_int_equal(key_change_possible(native, what, NULL), 0);
        assert_int_equal(key_change_possible_mounted(native, what, NULL), 0);
    }
    assert_int_equal(key_change_add(&odd, NULL, 0, NULL, NULL, NULL), -EOPNOTSUPP);
    assert_int_equal(key_change_change(&odd, NULL, 0, NULL, NULL, NULL), -EOPNOTSUPP);
    assert_int_equal(key_change_remove(&odd, 0, false, NULL), -EOPNOTSUPP);
    assert_int_equal(key_change_erase(&nothing, NULL, NULL, NULL), -EOPNOTSUPP);
}

static void a_format_without_patches_changes_in_one_step_but_not_while_mounted(void **state)
{
    static const struct key_format direct = {
        .name = "odd", .add = direct_add, .change = direct_change, .remove = direct_remove};
    struct key_container c = {.format = &direct};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    assert_int_equal(key_change_possible(&direct, KEY_PATCH_ADD, NULL), 0);
    assert_int_equal(key_change_possible_mounted(&direct, KEY_PATCH_ADD, &said.rep), -EOPNOTSUPP);
    assert_true(test_report_has(&said, "while the container is mounted"));
    assert_int_equal(key_change_add(&c, NULL, KEY_SLOT_ANY, NULL, NULL, NULL), 7);
    assert_int_equal(key_change_change(&c, NULL, 3, NULL, NULL, NULL), 0);
    assert_int_equal(key_change_change(&c, NULL, 3, "x", NULL, NULL), -EOPNOTSUPP);
    assert_int_equal(key_change_remove(&c, 3, false, NULL), -EPERM);
    assert_int_equal(key_change_remove(&c, 3, true, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_without_the_key_leaves_the_mac_and_raises_slot_seq),
        cmocka_unit_test(with_the_key_seq_goes_up_too),
        cmocka_unit_test(who_forgot_the_master_key_can_still_write_changes),
        cmocka_unit_test(commands_add_change_and_remove),
        cmocka_unit_test(slots_that_do_not_fit_the_change_are_refused),
        cmocka_unit_test(bytes_that_are_no_slot_of_this_container_are_refused),
        cmocka_unit_test(without_the_key_nothing_is_built_on_unequal_copies),
        cmocka_unit_test(the_last_slot_that_opens_here_goes_only_by_force),
        cmocka_unit_test(what_is_open_for_reading_or_changed_too_often_is_not_changed),
        cmocka_unit_test(after_a_write_that_failed_no_change_follows),
        cmocka_unit_test(the_second_of_two_changes_of_a_slot_is_refused),
        cmocka_unit_test(of_a_removed_or_changed_slot_nothing_remains),
        cmocka_unit_test(an_erased_container_says_so_and_has_no_slot_left),
        cmocka_unit_test(a_header_that_does_not_open_is_erased_all_the_same),
        cmocka_unit_test(erasing_goes_on_after_a_copy_that_cannot_be_written),
        cmocka_unit_test(a_container_cut_inside_its_header_is_erased_as_far_as_it_goes),
        cmocka_unit_test(a_crash_leaves_the_keys_from_before_or_after),
        cmocka_unit_test(a_crash_while_the_last_slot_goes_leaves_it_or_an_erased_container),
        cmocka_unit_test(half_an_erasure_is_erased_and_can_be_completed),
        cmocka_unit_test(what_a_format_cannot_do_is_said_before_anybody_is_asked),
        cmocka_unit_test(a_format_without_patches_changes_in_one_step_but_not_while_mounted),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
