/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/recovery.h"

/* Characters are elements of the field of 32, a group is the polynomial that has them as
 * coefficients, and its value at x is the number of the group. Any one other character, or two that
 * changed places, change that value, since all five powers of x differ; a group in the place of
 * another has the other's number. A checksum modulo 32, which is no prime, would miss some of
 * these. */

#include <stdbool.h>
#include <string.h>

#define ENTRY_MAX 512   /* bytes; no spelling is longer */
#define LOOKS_LIKE_IT 4 /* right groups at least: of others one in a thousand has so many */

static const char alphabet[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

static bool is_separator(unsigned char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '-';
}

/* 0 to 31, or -1. */
static int value_of(unsigned char c)
{
    const char *at;

    if (c >= 'a' && c <= 'z')
        c = (unsigned char)(c - 'a' + 'A');
    if (c == 'O')
        c = '0';
    if (c == 'I' || c == 'L')
        c = '1';
    at = memchr(alphabet, c, sizeof(alphabet) - 1);
    return at != NULL ? (int)(at - alphabet) : -1;
}

/* In the field: x^5 = x^2 + 1. */
static unsigned times_x(unsigned v)
{
    v <<= 1;
    return v & 32 ? v ^ 0x25 : v;
}

static void write_group(unsigned char *to, unsigned group)
{
    unsigned char chars[RECOVERY_GROUP - 1];
    unsigned sum = 0;

    secret_random(chars, sizeof(chars));
    for (unsigned i = 0; i < sizeof(chars); i++) {
        sum = times_x(sum) ^ (chars[i] & 31);
        *to++ = (unsigned char)alphabet[chars[i] & 31];
    }
    *to = (unsigned char)alphabet[times_x(sum) ^ group];
    secret_wipe(chars, sizeof(chars));
}

static bool group_right(const unsigned char *chars, size_t len, unsigned group)
{
    unsigned sum = 0;

    for (size_t i = 0; i < len; i++) {
        int v = value_of(chars[i]);

        if (v < 0)
            return false;
        sum = times_x(sum) ^ (unsigned)v;
    }
    return len == RECOVERY_GROUP && sum == group;
}

int recovery_make(struct secret *text)
{
    int r = secret_make(text, RECOVERY_TEXT);

    for (unsigned i = 0; r == 0 && i < RECOVERY_GROUPS; i++) {
        unsigned char *to = text->bytes + i * (RECOVERY_GROUP + 1);

        if (i > 0)
            to[-1] = '-';
        write_group(to, i);
    }
    return r;
}

/* An entry without its separators, and where its groups begin as it has them. */
struct spelled {
    struct secret chars;
    size_t len;
    unsigned n_groups;
    size_t start[RECOVERY_GROUPS + 1]; /* as far as there is room */
};

static int take_apart(struct spelled *s, const struct secret *entry)
{
    bool between = true;
    int r = secret_make(&s->chars, entry->len);

    for (size_t i = 0; r == 0 && i < entry->len; i++) {
        bool separator = is_separator(entry->bytes[i]);

        if (!separator && between && s->n_groups++ <= RECOVERY_GROUPS)
            s->start[s->n_groups - 1] = s->len;
        if (!separator)
            s->chars.bytes[s->len++] = entry->bytes[i];
        between = separator;
    }
    return r;
}

/* Bit i: group i is not right. */
static uint32_t find_slips(const unsigned char *chars, const size_t start[RECOVERY_GROUPS + 1])
{
    uint32_t slips = 0;

    for (unsigned i = 0; i < RECOVERY_GROUPS; i++)
        if (!group_right(chars + start[i], start[i + 1] - start[i], i))
            slips |= UINT32_C(1) << i;
    return slips;
}

static int write_text(struct secret *text, const unsigned char *chars)
{
    int r = secret_make(text, RECOVERY_TEXT);

    for (unsigned i = 0; r == 0 && i < RECOVERY_CHARS; i++) {
        unsigned char *to = text->bytes + i + i / RECOVERY_GROUP;

        if (i > 0 && i % RECOVERY_GROUP == 0)
            to[-1] = '-';
        *to = (unsigned char)alphabet[value_of(chars[i])];
    }
    return r < 0 ? r : 1;
}

/* Where the groups end does not matter for a key. For one that is none they say where the slip is:
 * the user's own if there are as many as there should be, else five characters each. */
static int read_spelled(struct secret *text, struct spelled *s, struct recovery_slips *slips)
{
    size_t regular[RECOVERY_GROUPS + 1];
    uint32_t wrong;

    for (unsigned i = 0; i <= RECOVERY_GROUPS; i++)
        regular[i] = i * RECOVERY_GROUP < s->len ? i * RECOVERY_GROUP : s->len;
    wrong = find_slips(s->chars.bytes, regular);
    if (wrong == 0 && s->len == RECOVERY_CHARS)
        return write_text(text, s->chars.bytes);
    if (s->n_groups == RECOVERY_GROUPS) {
        s->start[RECOVERY_GROUPS] = s->len;
        wrong = find_slips(s->chars.bytes, s->start);
    }
    slips->meant = RECOVERY_GROUPS - __builtin_popcount(wrong) >= LOOKS_LIKE_IT;
    slips->groups = wrong;
    slips->n_chars = (unsigned)s->len;
    return 0;
}

int recovery_read(struct secret *text, const struct secret *entry, struct recovery_slips *slips)
{
    struct spelled s = {0};
    int r;

    *slips = (struct recovery_slips){0};
    if (entry->len == 0 || entry->len > ENTRY_MAX)
        return 0;
    r = take_apart(&s, entry);
    if (r == 0)
        r = read_spelled(text, &s, slips);
    secret_done(&s.chars);
    return r;
}
