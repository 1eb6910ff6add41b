/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Little-endian fields in byte arrays, whatever this machine's order and alignment. */

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint16_t bytes_get_le16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return le16toh(v);
}

static inline uint32_t bytes_get_le32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return le32toh(v);
}

static inline uint64_t bytes_get_le64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return le64toh(v);
}

static inline void bytes_put_le16(void *p, uint16_t v)
{
    v = htole16(v);
    memcpy(p, &v, sizeof(v));
}

static inline void bytes_put_le32(void *p, uint32_t v)
{
    v = htole32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void bytes_put_le64(void *p, uint64_t v)
{
    v = htole64(v);
    memcpy(p, &v, sizeof(v));
}

/* Are all len bytes zero? Ends at the first that is not; not for secrets. */
static inline bool bytes_are_zero(const void *p, size_t len)
{
    const unsigned char *b = p;

    return len == 0 || (b[0] == 0 && memcmp(b, b + 1, len - 1) == 0);
}

static inline uint64_t bytes_round_down(uint64_t v, uint64_t power_of_two)
{
    return v & ~(power_of_two - 1);
}

/* The caller makes sure that v + power_of_two fits. */
static inline uint64_t bytes_round_up(uint64_t v, uint64_t power_of_two)
{
    return bytes_round_down(v + power_of_two - 1, power_of_two);
}

static inline bool bytes_is_power_of_two(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}
