/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The known answers in tests/vectors/geli.txt, and GELI containers in memory. */

#include "block/blk.h"
#include "keystore/credential.h"
#include "keystore/format.h"

struct geli_vector; /* one */

/* The file, found from the top of the tree; the test fails when it is not there. */
const struct geli_vector *geli_vectors_first(void);
const struct geli_vector *geli_vector_next(const struct geli_vector *v);
/* "v7-xts128-512" */
const char *geli_vector_name(const struct geli_vector *v);
/* What stands behind "key = ", or NULL. */
const char *geli_vector_text(const struct geli_vector *v, const char *key);
/* The same as a number (decimal or 0x...); 0 when there is none. */
long long geli_vector_number(const struct geli_vector *v, const char *key);
/* The same as bytes, at most max; returns how many, 0 when there are none. */
size_t geli_vector_bytes(const struct geli_vector *v, const char *key, unsigned char *to,
                         size_t max);
/* The passphrase and key files of an entry. */
void geli_vector_credential(const struct geli_vector *v, struct credential *ret);

/* A new container in memory, aes-xts, version 7, iterations 3, its disk of 64 KiB in sectors of 512
 * bytes, that "old horse" opens by slot 0. */
#define GELI_TEST_DISK 65536
#define GELI_TEST_SIZE (GELI_TEST_DISK + 512)
struct blk *geli_container_open(void);
struct key_create geli_container_request(void);
