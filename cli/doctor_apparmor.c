/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_apparmor.h"

/* Only the place of a mount rule is looked at, since type and options of our mounts are those of
 * every FUSE mount. A place is a pattern, which becomes a regular expression. */

#include <ctype.h>
#include <limits.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define RULE_MAX 2048

struct text {
    char at[RULE_MAX];
    size_t n;
    bool cut;
};

static void put(struct text *t, const char *bytes, size_t len)
{
    t->cut = t->cut || t->n + len >= sizeof(t->at);
    if (t->cut)
        return;
    memcpy(t->at + t->n, bytes, len);
    t->n += len;
    t->at[t->n] = '\0';
}

static void put_string(struct text *t, const char *s)
{
    put(t, s, strlen(s));
}

static bool begins(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

/* Is what has been read so far something that ends with its line, not with a comma? */
static bool ends_with_line(const struct text *t)
{
    const char *s = t->at + strspn(t->at, " \t\n");

    return begins(s, "include") || begins(s, "@{") || *s == '\0';
}

/* The next rule; its comma, or the brace of a block, is not part of it. Returns what follows, NULL
 * at the end. Braces of a pattern stand close to it, those of a block do not. */
static const char *next_rule(const char *at, struct text *rule)
{
    unsigned nested = 0;

    *rule = (struct text){0};
    if (*at == '\0')
        return NULL;
    for (; *at != '\0'; at++) {
        bool blank_before = rule->n == 0 || isspace((unsigned char)at[-1]);
        bool blank_after = at[1] == '\0' || isspace((unsigned char)at[1]);

        if (*at == '#') {
            at += strcspn(at, "\n");
            if (*at == '\0')
                break;
        }
        if ((*at == '{' && blank_after) || (*at == '}' && blank_before && nested == 0) ||
            (*at == ',' && nested == 0) || (*at == '\n' && nested == 0 && ends_with_line(rule)))
            return at + 1;
        nested += strchr("({", *at) != NULL;
        nested -= strchr(")}", *at) != NULL && nested > 0;
        put(rule, *at == '\n' ? " " : at, 1);
    }
    return at;
}

/* The places that @{HOMEDIRS} stands for, each with end behind it and without its last slash. */
static void put_homes(struct text *t, const char *tunables, const char *end)
{
    static const char name[] = "@{HOMEDIRS}";
    size_t before = t->n;

    for (const char *line = tunables; *line != '\0'; line += *line == '\n') {
        const char *at = line + strspn(line, " \t");
        size_t len = strcspn(line, "\n#");
        const char *stop = line + len;

        line += strcspn(line, "\n");
        if (!begins(at, name))
            continue;
        for (at += strlen(name) + strspn(at + strlen(name), " \t+="); at < stop;
             at += strspn(at, " \t\"")) {
            size_t word = strcspn(at, " \t\"\n#");

            put(t, ",", t->n > before);
            put(t, at, word - (word > 1 && at[word - 1] == '/'));
            put_string(t, end);
            at += word;
        }
    }
    if (t->n == before) {
        put_string(t, "/home");
        put_string(t, end);
    }
}

/* Replace the variables of a pattern by { , } and the like. False: one of them is not known. */
static bool expand(struct text *t, const char *pattern, const char *tunables)
{
    while (*pattern != '\0') {
        if (!begins(pattern, "@{")) {
            put(t, pattern++, 1);
            continue;
        }
        if (begins(pattern, "@{HOME}")) {
            put_string(t, "{");
            put_homes(t, tunables, "/*");
            put_string(t, ",/root}");
        } else if (begins(pattern, "@{HOMEDIRS}")) {
            put_string(t, "{");
            put_homes(t, tunables, "");
            put_string(t, "}");
        } else if (begins(pattern, "@{run}")) {
            put_string(t, "{/run,/var/run}");
        } else if (begins(pattern, "@{uid}")) {
            put_string(t, "[0-9]*");
        } else {
            return false;
        }
        pattern = strchr(pattern, '}') + 1;
    }
    return !t->cut;
}

/* Of a star or two that are all there is between two slashes, something has to be there. */
static const char *put_star(struct text *re, const char *pattern, const char *at)
{
    size_t stars = at[1] == '*' ? 2 : 1;
    bool whole = at > pattern && at[-1] == '/' && (at[stars] == '/' || at[stars] == '\0');

    put_string(re, stars == 2 ? "." : "[^/]");
    put_string(re, whole ? "+" : "*");
    return at + stars;
}

static bool to_expression(struct text *re, const char *pattern)
{
    unsigned nested = 0;

    put_string(re, "^");
    for (const char *at = pattern; *at != '\0';) {
        if (*at == '*') {
            at = put_star(re, pattern, at);
            continue;
        }
        if (*at == '\\' && at[1] != '\0')
            at++;
        else if (strchr("{},?[", *at) != NULL && (*at != ',' || nested > 0)) {
            size_t set = *at == '[' ? strcspn(at, "]") + 1 : 0;

            if (set > strlen(at))
                return false;
            nested += *at == '{';
            nested -= *at == '}' && nested > 0;
            put(re, at, set);
            put_string(re, *at == '{'   ? "("
                           : *at == '}' ? ")"
                           : *at == ',' ? "|"
                           : *at == '?' ? "[^/]"
                                        : "");
            at += set > 0 ? set : 1;
            continue;
        }
        if (strchr(".[]()|^$+*?{}\\", *at) != NULL)
            put_string(re, "\\");
        put(re, at++, 1);
    }
    put_string(re, "$");
    return !re->cut && nested == 0;
}

/* Does the pattern of a rule fit this folder? */
static enum doctor_allowed fits(const char *pattern, const char *tunables, const char *folder)
{
    struct text expanded = {0}, re = {0};
    char path[PATH_MAX];
    regex_t compiled;
    int r;

    if (!expand(&expanded, pattern, tunables) || !to_expression(&re, expanded.at) ||
        regcomp(&compiled, re.at, REG_EXTENDED | REG_NOSUB) != 0)
        return DOCTOR_UNKNOWN;
    snprintf(path, sizeof(path), "%s/", folder);
    r = regexec(&compiled, path, 0, NULL, 0);
    regfree(&compiled);
    return r == 0 ? DOCTOR_ALLOWED : DOCTOR_REFUSED;
}

/* The words that may stand before what a rule is about. */
static char *skip_qualifiers(char *at, bool *denies)
{
    static const char *const words[] = {"audit ", "quiet ", "allow ", "deny ", "priority="};
    size_t i;

    *denies = false;
    do {
        at += strspn(at, " \t");
        for (i = 0; i < 5 && !begins(at, words[i]); i++)
            continue;
        *denies = *denies || i == 3;
        at += i < 5 ? strcspn(at, " \t") : 0;
    } while (i < 5);
    return at;
}

/* The place of a rule that lets FUSE mount somewhere; NULL: another rule. "**" is everywhere. */
static const char *mount_place(char *rule)
{
    const char *type = strstr(rule, "fstype"), *arrow = strstr(rule, "->");
    char *place, *end;

    if (!begins(rule, "mount") || strchr(" \t", rule[5]) == NULL)
        return NULL;
    if (type != NULL && (arrow == NULL || type < arrow) && strstr(type, "fuse") == NULL &&
        strstr(type, "@{") == NULL)
        return NULL;
    if (arrow == NULL)
        return "/**";
    place = (char *)arrow + 2 + strspn(arrow + 2, " \t\"");
    end = place + strcspn(place, " \t\"");
    *end = '\0';
    return place;
}

static bool is_not_enforced(const char *rule)
{
    return strstr(rule, "flags=(") != NULL &&
           (strstr(rule, "complain") != NULL || strstr(rule, "unconfined") != NULL);
}

enum doctor_allowed doctor_apparmor_mount(const char *profile, const char *tunables,
                                          const char *folder)
{
    bool any = false, allowed = false, unsure = false, denies;
    struct text rule;

    while ((profile = next_rule(profile, &rule)) != NULL) {
        const char *place = mount_place(skip_qualifiers(rule.at, &denies));
        enum doctor_allowed fit;

        if (is_not_enforced(rule.at))
            return DOCTOR_ALLOWED;
        if (place == NULL)
            continue;
        any = true;
        fit = fits(place, tunables, folder);
        if (denies && fit == DOCTOR_ALLOWED)
            return DOCTOR_REFUSED;
        allowed = allowed || (!denies && fit == DOCTOR_ALLOWED);
        unsure = unsure || fit == DOCTOR_UNKNOWN;
    }
    return !any || (unsure && !allowed) ? DOCTOR_UNKNOWN
           : allowed                    ? DOCTOR_ALLOWED
                                        : DOCTOR_REFUSED;
}
