/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/args.h"

/* Root wrote these words, but a typing error in them must not keep anybody from logging in: so a
 * wrong word is said and the default stands, where a command would refuse to start. */

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The value when word is "key=value", else NULL. */
static const char *value_of(const char *word, const char *key)
{
    size_t len = strlen(key);

    return strncmp(word, key, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

/* Digits alone, at most max. */
static bool parse_number(unsigned long *ret, const char *text, unsigned long max)
{
    char *end;
    unsigned long n;

    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    n = strtoul(text, &end, 10);
    if (errno != 0 || *end != '\0' || n > max)
        return false;
    *ret = n;
    return true;
}

static bool parse_seconds(unsigned *ret, const char *text)
{
    unsigned long n;

    if (!parse_number(&n, text, LOGIN_TIMEOUT_MAX) || n == 0)
        return false;
    *ret = (unsigned)n;
    return true;
}

/* The last number of all stands for no user. */
static bool parse_uid(uid_t *ret, const char *text)
{
    unsigned long n;

    if (!parse_number(&n, text, (uid_t)-2))
        return false;
    *ret = (uid_t)n;
    return true;
}

static bool parse_word(struct login_args *a, const char *word)
{
    const char **to = NULL, *text;

    if (strcmp(word, "debug") == 0)
        return a->debug = true;
    if ((text = value_of(word, "timeout")) != NULL)
        return parse_seconds(&a->timeout, text);
    if ((text = value_of(word, "min_uid")) != NULL)
        return parse_uid(&a->min_uid, text);
    if ((text = value_of(word, "program")) != NULL)
        to = text[0] == '/' ? &a->program : NULL;
    else if ((text = value_of(word, "volumes")) != NULL)
        to = text[0] != '-' ? &a->volumes : NULL; /* it is to be no option of the program */
    else if ((text = value_of(word, "also")) != NULL)
        to = &a->also;
    if (to == NULL || text[0] == '\0')
        return false;
    *to = text;
    return true;
}

void login_args_parse(struct login_args *ret, int argc, const char *const argv[],
                      struct report *rep)
{
    *ret = (struct login_args){.timeout = 60, .min_uid = 1000, .program = HUSHVOL_PROGRAM};
    for (int i = 0; i < argc; i++)
        if (!parse_word(ret, argv[i]))
            report_warn(rep,
                        "\"%s\" is not understood and changes nothing (debug, timeout=1..%d, "
                        "min_uid=N, volumes=NAME,..., also=SERVICE,..., program=/PATH)",
                        argv[i], LOGIN_TIMEOUT_MAX);
}

bool login_args_lists(const char *list, const char *word)
{
    size_t len = strlen(word);

    while (list != NULL && *list != '\0') {
        size_t n = strcspn(list, ",");

        if (n == len && strncmp(list, word, n) == 0)
            return true;
        list += n + (list[n] == ',');
    }
    return false;
}
