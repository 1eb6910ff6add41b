/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From a credential to the volume, over both slots. As format.h says of each. */

#include "keystore/geli/store.h"

int geli_unlock(struct key_store *ks, const struct credential *cred, int slot,
                struct key_volume *ret, struct report *rep);
int geli_big_endian(const struct key_store *ks, struct key_volume *v, struct report *rep);
int geli_export(struct key_store *ks, struct secret *ret);
int geli_import(struct key_store *ks, const struct secret *bytes, struct key_volume *ret,
                struct report *rep);
int geli_slots(struct key_store *ks, struct key_slot_info *out, unsigned max, struct report *rep);
