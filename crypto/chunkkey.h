/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "crypto/sector.h"

/* The cipher keys of a volume that changes them every 2^shift bytes, derived on demand and kept in
 * guarded memory. From many threads at once. */
struct chunk_keys;

#define CHUNK_KEY_MAX 64 /* bytes */

/* Copies rule and its prk. key_len at most CHUNK_KEY_MAX. -ENOMEM, -EINVAL. */
int chunk_keys_open(struct chunk_keys **ret, const struct chunk_rule *rule, uint32_t key_len);
/* Wipes. NULL is fine. */
void chunk_keys_close(struct chunk_keys *k);
/* Wipe all keys: chunk_keys_get answers -EIO from here on, until there is another prk (of the same
 * length; copied). -ENOMEM. */
void chunk_keys_forget(struct chunk_keys *k);
int chunk_keys_rekey(struct chunk_keys *k, const struct secret *prk);
/* Put the key of a chunk at key (key_len bytes; the caller wipes them). -EIO when the library
 * fails. */
int chunk_keys_get(struct chunk_keys *k, uint64_t chunk, unsigned char *key);
/* Derive the keys of chunks 0 to n - 1 now, as many as are kept: later ones cost memory from the
 * heap, which the data path should not wait for. */
int chunk_keys_warm(struct chunk_keys *k, uint64_t n);
