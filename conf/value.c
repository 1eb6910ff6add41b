/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/value.h"

/* options.c knows the words of -o and checks what they take; here they become the values of keys:
 * switches by yes and no (a no in a volume takes back a yes of [defaults]), paths, and what is a
 * key of volumes alone. */

#include "base/auto.h"
#include "conf/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct conf_word_help *find_word(const char *name)
{
    const struct conf_word_help *w;

    for (unsigned i = 0; (w = conf_options_help(i)) != NULL; i++)
        if (strcmp(w->name, name) == 0)
            return w;
    return NULL;
}

static int is_yes(const char *value)
{
    return strcmp(value, "yes") == 0 ? 1 : strcmp(value, "no") == 0 ? 0 : -EUCLEAN;
}

const char *conf_word_of(const char *key, const char *value)
{
    const struct conf_word_help *w = find_word(key);

    if (w == NULL || w->value != NULL || is_yes(value) != 0)
        return w != NULL ? w->name : NULL;
    return strcmp(key, "discard") == 0     ? "nodiscard"
           : strcmp(key, "nodiscard") == 0 ? "discard"
                                           : NULL;
}

char *conf_word_text(const struct conf_said *s)
{
    const struct conf_word_help *w = find_word(s->key);
    const char *word = conf_word_of(s->key, s->value);
    char *out = malloc(strlen(s->key) + 2 * strlen(s->value) + 4), *at = out;

    if (out == NULL)
        return NULL;
    at += sprintf(at, "%s", word != NULL ? word : "");
    if (w == NULL || w->value == NULL)
        return out;
    *at++ = '=';
    for (const char *c = s->value; *c != '\0'; c++) {
        if (*c == ',')
            *at++ = '\\';
        *at++ = *c;
    }
    *at = '\0';
    return out;
}

/* A value that takes nothing but what is written here. */
static int check_value(const struct conf_key *k, const struct conf_said *s, struct report *rep)
{
    const char *takes = NULL;

    if (k->kind == CONF_PATH && s->value[0] != '/')
        takes = "a path that begins with / or ~";
    if (k->kind == CONF_SWITCH && is_yes(s->value) < 0)
        takes = "yes or no";
    if (k->kind == CONF_FILESYSTEM && strcmp(s->value, "auto") != 0 &&
        strcmp(s->value, "none") != 0)
        takes = "auto (mount what is on the disk) or none (the image only)";
    if (takes == NULL)
        return 0;
    return report_error(rep, EUCLEAN, "%s takes %s, not \"%s\"", s->key, takes, s->value);
}

static int check_option(const struct conf_said *s, struct report *rep)
{
    const struct conf_word_help *word = find_word(s->key);
    AUTO_FREE char *text = NULL;
    struct conf_mount m;
    int r;

    if (word == NULL)
        return 0;
    if (word->value == NULL && is_yes(s->value) < 0)
        return report_error(rep, EUCLEAN, "%s takes yes or no, not \"%s\"", s->key, s->value);
    text = conf_word_text(s);
    if (text == NULL)
        return report_errno(rep, ENOMEM, "%s", s->key);
    conf_mount_init(&m);
    r = conf_options_apply(&m, text, rep);
    conf_mount_done(&m);
    return r < 0 ? -EUCLEAN : 0;
}

int conf_value_check(const struct conf_said *s, struct report *rep)
{
    struct conf_key k;
    int r = conf_key_find(&k, s->key) ? check_value(&k, s, rep) : 0;

    return r == 0 ? check_option(s, rep) : r;
}
