/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From a credential to the master key, over all slots of the copy that counts. */

#include "keystore/native/store.h"

/* As format.h says of unlock. On success ks->current is a copy whose MAC was verified. */
int native_unlock(struct key_store *ks, const struct credential *cred, int slot,
                  struct key_volume *ret, struct report *rep);
