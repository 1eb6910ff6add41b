/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Changes of the key slots: made by who knows the volume key, written by who owns the header.
 * docs/format.md 10.1, 10.2. */

#include "keystore/native/store.h"

/* As format.h says. The bytes of a change are a slot, the uuid and SHA-256(params) of the container
 * that it was made for, and the salts of the slot that it replaces or removes, when they are known.
 */
int native_seal(struct key_store *ks, enum key_patch_what what, const struct credential *cred,
                int slot, const char *label, const struct kdf_request *kdf, struct key_patch *ret,
                struct report *rep);
int native_apply(struct key_store *ks, const struct key_patch *p, struct report *rep);
