/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/recovery.c: every spelling of a key is read as the same bytes, every slip that a
 * person makes is noticed and its group named, and nothing else is taken for a key. */

#include "keystore/recovery.h"

#include "lib/test.h"

#include <stdio.h>
#include <string.h>

/* From the reference: tests/vectors/native_ref.py recovery-key --seed frozen */
static const char frozen[] =
    "ZGCCZ-K2908-6BT7P-M71X2-QFRXH-BAKD2-3B9QB-2FD16-APTZ4-PK858-JS4YX-R1MCR-YB19Y";

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/* A terminated copy of a new key. */
static void new_key(char text[RECOVERY_TEXT + 1])
{
    AUTO_SECRET struct secret key = {0};

    assert_int_equal(recovery_make(&key), 0);
    assert_int_equal(key.len, RECOVERY_TEXT);
    memcpy(text, key.bytes, RECOVERY_TEXT);
    text[RECOVERY_TEXT] = '\0';
}

/* As recovery_read(); *same when what was read is text. */
static int read_text(const char *entry, const char *text, bool *same, struct recovery_slips *slips)
{
    AUTO_SECRET struct secret in = {0}, out = {0};
    int r;

    assert_int_equal(secret_copy(&in, entry, strlen(entry)), 0);
    r = recovery_read(&out, &in, slips);
    assert_int_equal(out.len, r > 0 ? RECOVERY_TEXT : 0);
    *same = r > 0 && memcmp(out.bytes, text, RECOVERY_TEXT) == 0;
    return r;
}

static void assert_read_as(const char *entry, const char *text)
{
    struct recovery_slips slips;
    bool same;

    assert_int_equal(read_text(entry, text, &same, &slips), 1);
    assert_true(same);
    assert_false(slips.meant);
}

/* entry was meant to be a key; exactly these groups are named. */
static void assert_slips(const char *entry, uint32_t groups)
{
    struct recovery_slips slips;
    bool same;

    assert_int_equal(read_text(entry, NULL, &same, &slips), 0);
    assert_true(slips.meant);
    assert_int_equal(slips.groups, groups);
}

static void keys_are_groups_of_that_alphabet_and_never_the_same(void **state)
{
    char one[RECOVERY_TEXT + 1], two[RECOVERY_TEXT + 1];

    (void)state;
    new_key(one);
    new_key(two);
    assert_string_not_equal(one, two);
    for (unsigned i = 0; i < RECOVERY_TEXT; i++)
        if (i % 6 == 5)
            assert_int_equal(one[i], '-');
        else
            assert_non_null(strchr(alphabet, one[i]));
    assert_read_as(one, one);
    assert_read_as(frozen, frozen);
}

/* All 52 characters that are no check digit are by chance: each has each value sometime. */
static void every_character_is_by_chance(void **state)
{
    bool seen[RECOVERY_TEXT][256] = {{false}};

    (void)state;
    for (unsigned n = 0; n < 1000; n++) {
        char text[RECOVERY_TEXT + 1];

        new_key(text);
        for (unsigned i = 0; i < RECOVERY_TEXT; i++)
            seen[i][(unsigned char)text[i]] = true;
    }
    for (unsigned i = 0; i < RECOVERY_TEXT; i++)
        for (unsigned v = 0; v < 32 && i % 6 != 5; v++)
            assert_true(seen[i][(unsigned char)alphabet[v]]);
}

/* Spell text as a person may: how many characters between separators, which, small letters, and
 * look-alikes. */
static void spell(char *to, const char *text, unsigned every, const char *between, bool small)
{
    unsigned n = 0;

    for (; *text != '\0'; text++) {
        if (*text == '-')
            continue;
        if (every != 0 && n > 0 && n % every == 0)
            to = stpcpy(to, between);
        *to++ = *text == '0' && n % 2        ? 'o'
                : *text == '1' && n % 3 == 1 ? 'I'
                : *text == '1' && n % 3 == 2 ? 'l'
                : small && *text >= 'A'      ? (char)(*text | 0x20)
                                             : *text;
        n++;
    }
    *to = '\0';
}

static void every_spelling_is_read_as_the_same_bytes(void **state)
{
    static const char *const between[] = {"-", " ", "  ", "\n", "\r\n", " - ", "\t"};

    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        char text[RECOVERY_TEXT + 1], spelling[512];

        new_key(text);
        spell(spelling, text, i % 20, between[i % 7], i % 2);
        assert_read_as(spelling, text);
        memmove(spelling + 2, spelling, strlen(spelling) + 1);
        memcpy(spelling, " -", 2);
        assert_read_as(strcat(spelling, " \r\n"), text);
    }
}

static void every_single_wrong_character_is_found_in_its_group(void **state)
{
    char text[RECOVERY_TEXT + 1];

    (void)state;
    new_key(text);
    for (unsigned i = 0; i < RECOVERY_TEXT; i++) {
        char right = text[i];

        for (const char *wrong = "0123456789ABCDEFGHJKMNPQRSTVWXYZUu*\xc3"; *wrong; wrong++) {
            if (*wrong == right || right == '-')
                continue;
            text[i] = *wrong;
            assert_slips(text, UINT32_C(1) << i / 6);
        }
        text[i] = right;
    }
}

static void swap(char *a, char *b, size_t len)
{
    char keep[RECOVERY_GROUP];

    memcpy(keep, a, len);
    memcpy(a, b, len);
    memcpy(b, keep, len);
}

/* Any two, not neighbours alone. */
static void two_characters_that_changed_places_are_found(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 50; n++)
        for (unsigned at = 0; at < RECOVERY_TEXT; at += 6)
            for (unsigned a = 0; a < 5; a++)
                for (unsigned b = a + 1; b < 5; b++) {
                    char text[RECOVERY_TEXT + 1];

                    new_key(text);
                    if (text[at + a] == text[at + b])
                        continue;
                    swap(text + at + a, text + at + b, 1);
                    assert_slips(text, UINT32_C(1) << at / 6);
                }
}

static void groups_that_changed_places_are_found(void **state)
{
    char text[RECOVERY_TEXT + 1];

    (void)state;
    new_key(text);
    for (unsigned a = 0; a < RECOVERY_GROUPS; a++)
        for (unsigned b = a + 1; b < RECOVERY_GROUPS; b++) {
            swap(text + a * 6, text + b * 6, RECOVERY_GROUP);
            assert_slips(text, UINT32_C(1) << a | UINT32_C(1) << b);
            swap(text + a * 6, text + b * 6, RECOVERY_GROUP);
        }
}

static void characters_that_are_missing_or_too_many_are_found(void **state)
{
    char text[RECOVERY_TEXT + 1], wrong[512];
    struct recovery_slips slips;
    bool same;

    (void)state;
    new_key(text);
    snprintf(wrong, sizeof(wrong), "%.7s%s", text, text + 8); /* one of group 1, separated */
    assert_slips(wrong, 1 << 1);
    snprintf(wrong, sizeof(wrong), "%.7sX%s", text, text + 7);
    assert_slips(wrong, 1 << 1);
    snprintf(wrong, sizeof(wrong), "%.60s%s", text, text + 66); /* group 10 */
    assert_slips(wrong, 7 << 10);
    snprintf(wrong, sizeof(wrong), "%s-%.5s", text, text);
    assert_int_equal(read_text(wrong, text, &same, &slips), 0);
    assert_true(slips.meant);
    assert_int_equal(slips.groups, 0);
    assert_int_equal(slips.n_chars, 70);
}

static void what_is_not_meant_as_a_key_is_left_alone(void **state)
{
    static const char *const entries[] = {
        "",
        "old horse",
        "----- -----",
        "correct horse battery staple and nine words more to make thirteen",
        "00000-00000-00000-00000-00000-00000-00000-00000-00000-00000-00000-00000-00000",
        "the-five-letter-words-aside-this-one-just-looks-like-groups-to-you",
    };
    struct recovery_slips slips;
    bool same;
    char text[RECOVERY_TEXT + 1], longer[600];

    (void)state;
    for (unsigned i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        assert_int_equal(read_text(entries[i], NULL, &same, &slips), 0);
        assert_false(slips.meant);
    }
    new_key(text);
    snprintf(longer, sizeof(longer), "%-513s", text);
    assert_int_equal(read_text(longer, NULL, &same, &slips), 0);
    assert_false(slips.meant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_groups_of_that_alphabet_and_never_the_same),
        cmocka_unit_test(every_character_is_by_chance),
        cmocka_unit_test(every_spelling_is_read_as_the_same_bytes),
        cmocka_unit_test(every_single_wrong_character_is_found_in_its_group),
        cmocka_unit_test(two_characters_that_changed_places_are_found),
        cmocka_unit_test(groups_that_changed_places_are_found),
        cmocka_unit_test(characters_that_are_missing_or_too_many_are_found),
        cmocka_unit_test(what_is_not_meant_as_a_key_is_left_alone),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
