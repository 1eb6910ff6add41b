/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stddef.h>

/* HKDF with SHA-256 (RFC 5869), its two steps apart. -EIO when the library fails (it is out of
 * memory, or a policy forbids the algorithm). */
#define HKDF_PRK 32 /* bytes */

int hkdf_extract(unsigned char prk[HKDF_PRK], const void *salt, size_t salt_len, const void *ikm,
                 size_t ikm_len);
/* len at most 255 * 32 bytes. */
int hkdf_expand(unsigned char *out, size_t len, const unsigned char prk[HKDF_PRK], const void *info,
                size_t info_len);
