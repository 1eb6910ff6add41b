/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A new volume key for a whole container, as far as the header is concerned: docs/format.md 10.4.
 */

#include "keystore/native/store.h"

extern const struct key_reencrypt native_reencrypt;

/* After an unlock: when the header says that a re-encryption is not finished, read how far it is
 * and add the old key to v, the volume under the new one. -EBADMSG neither record is valid (said).
 */
int native_reencrypt_load(struct key_store *ks, struct key_volume *v, struct report *rep);
/* -EBUSY (said) while a re-encryption is not finished; doing names what has to wait. */
int native_reencrypt_none(const struct key_store *ks, const char *doing, struct report *rep);
