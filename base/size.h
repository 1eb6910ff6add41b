/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Sizes as people write them: digits and a binary suffix K M G T P (also KiB, MiB, ...; b or B
 * alone is bytes), in any case. 0, or -EINVAL when it is anything else, -ERANGE beyond 2^63-1. */
int size_parse(uint64_t *ret, const char *text);

/* The shortest exact-enough form, "10 GiB", "1.5 MiB", "512 B". out holds SIZE_TEXT bytes. */
#define SIZE_TEXT 24
const char *size_format(char out[SIZE_TEXT], uint64_t bytes);
