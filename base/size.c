/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/size.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char suffixes[] = "KMGTP";

/* The power of 1024 that a suffix stands for, or -1. */
static int suffix_power(const char *s)
{
    const char *at;

    if (*s == '\0' || strcasecmp(s, "b") == 0)
        return 0;
    at = strchr(suffixes, toupper((unsigned char)*s));
    if (at == NULL)
        return -1;
    s++;
    if (*s != '\0' && strcasecmp(s, "b") != 0 && strcasecmp(s, "ib") != 0)
        return -1;
    return (int)(at - suffixes) + 1;
}

int size_parse(uint64_t *ret, const char *text)
{
    char *end;
    uint64_t v;
    int power;

    if (!isdigit((unsigned char)*text))
        return -EINVAL;
    errno = 0;
    v = strtoull(text, &end, 10);
    if (errno == ERANGE || v > INT64_MAX)
        return -ERANGE;
    power = suffix_power(end);
    if (power < 0)
        return -EINVAL;
    if (power > 0 && v > (uint64_t)INT64_MAX >> (10 * power))
        return -ERANGE;
    *ret = v << (10 * power);
    return 0;
}

const char *size_format(char out[SIZE_TEXT], uint64_t bytes)
{
    int power = 0;

    while (power < 5 && bytes >> (10 * (power + 1)) != 0)
        power++;
    /* "1.0 MiB", where rounding would make "1024.0 KiB" */
    if (power > 0 && power < 5 &&
        bytes > (UINT64_C(1024) << (10 * power)) - (UINT64_C(51) << (10 * power)) / 1024)
        power++;
    if (power == 0)
        snprintf(out, SIZE_TEXT, "%" PRIu64 " B", bytes);
    else if ((bytes & ((UINT64_C(1) << (10 * power)) - 1)) == 0)
        snprintf(out, SIZE_TEXT, "%" PRIu64 " %ciB", bytes >> (10 * power), suffixes[power - 1]);
    else
        snprintf(out, SIZE_TEXT, "%.1f %ciB", (double)bytes / (double)(UINT64_C(1) << (10 * power)),
                 suffixes[power - 1]);
    return out;
}
