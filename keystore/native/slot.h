/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A key slot of a native container: the master key wrapped under what a credential gives.
 * docs/format.md 10.2. No I/O. */

#include "keystore/credential.h"
#include "keystore/format.h"
#include "keystore/native/header.h"

#include <stdbool.h>

#define NATIVE_MASTER 32     /* bytes */
#define NATIVE_SLOT_LABEL 32 /* bytes */
#define NATIVE_SLOT_SALT 16  /* bytes */

struct native_slot {
    bool used;
    uint8_t state, type, kdf, wrap;
    struct kdf_cost cost;
    unsigned char salt_a[NATIVE_SLOT_SALT], salt_h[NATIVE_SLOT_SALT]; /* Argon2id's, HKDF's */
    uint64_t created;                                                 /* seconds since 1970 */
    char label[NATIVE_SLOT_LABEL + 1];                                /* terminated */
};

/* What the bytes claim; nothing is checked. */
void native_slot_decode(struct native_slot *ret, const unsigned char slot[NATIVE_SLOT]);
/* -EOPNOTSUPP a state, type or algorithm that this program does not know. */
int native_slot_check(const struct native_slot *s, unsigned index, struct report *rep);

/* The salts, which are new on every rewrite: they tell what is in a slot from what was there
 * before.
 */
#define NATIVE_SLOT_ID 32 /* bytes */
const unsigned char *native_slot_id(const unsigned char slot[NATIVE_SLOT]);

/* The kind of slot that a credential opens: passphrase and key files together are one kind. */
enum key_slot_kind native_slot_kind(const struct credential *cred);
/* "a passphrase", ... */
const char *native_slot_kind_words(enum key_slot_kind kind);

/* Fill all of slot: master under cred, with fresh salts and the kind that cred makes. label may be
 * NULL and is at most NATIVE_SLOT_LABEL bytes. -ENOMEM, -EIO. */
int native_slot_wrap(unsigned char slot[NATIVE_SLOT], unsigned index, const struct native_header *h,
                     const struct kdf_cost *cost, const char *label, const struct credential *cred,
                     const struct secret *master, struct report *rep);
/* Make it empty, and nothing of what was in it remains. */
void native_slot_destroy(unsigned char slot[NATIVE_SLOT]);
/* -EKEYREJECTED, in silence, when cred does not open it. Its cost was checked (kdf_check), and its
 * kind is cred's. -ENOMEM, -EIO. */
int native_slot_unwrap(struct secret *master, const unsigned char slot[NATIVE_SLOT], unsigned index,
                       const struct native_header *h, const struct credential *cred,
                       struct report *rep);
