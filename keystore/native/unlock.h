/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From a credential to the master key, over all slots of the copy that counts. */

#include "keystore/native/store.h"

/* As format.h says of unlock. On success ks->current is a copy whose MAC was verified. */
int native_unlock(struct key_store *ks, const struct credential *cred, int slot,
                  struct key_volume *ret, struct report *rep);
/* The volume that the keys in ks open, mixed while a re-encryption is not finished. *ret is empty.
 * -ENOMEM, -EBADMSG, -EIO, said. */
int native_volume(struct key_volume *ret, struct key_store *ks, unsigned slot, struct report *rep);
/* The master key; and the volume from it, checked against the header's MAC. As format.h says. */
int native_export(struct key_store *ks, struct secret *ret);
int native_import(struct key_store *ks, const struct secret *bytes, struct key_volume *ret,
                  struct report *rep);
