/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From a passphrase and key files to a master key, and what follows from that:
 * docs/geli-format.md 4 to 6. No I/O. */

#include "base/report.h"
#include "base/secret.h"
#include "keystore/credential.h"
#include "keystore/format.h"
#include "keystore/geli/meta.h"

#define GELI_USER_KEY 64         /* bytes */
#define GELI_PASSPHRASE_MAX 1023 /* bytes that geli(8) can hold */

/* What cred gives for a container like m: one for both slots. -EKEYREJECTED (said) cred has a
 * passphrase and m was made without one; -ENOMEM, -EIO. May last as long as m->iterations say: a
 * count that takes long is said first. */
int geli_user_key(struct secret *ret, const struct geli_meta *m, const struct credential *cred,
                  struct report *rep);
/* Iterations that take so many milliseconds of this machine's time. -EIO. */
int geli_calibrate(int32_t *ret, uint32_t time_ms);

/* Fill a slot of m with master under a user key. -EIO, -EOPNOTSUPP the library has no such cipher
 * (said). */
int geli_slot_wrap(unsigned char slot[GELI_SLOT], const struct geli_meta *m,
                   const struct secret *user_key, const struct secret *master, struct report *rep);
/* -EKEYREJECTED, in silence, when the user key does not open it; else as above, -ENOMEM. */
int geli_slot_unwrap(struct secret *master, const unsigned char slot[GELI_SLOT],
                     const struct geli_meta *m, const struct secret *user_key, struct report *rep);

/* The volume that master opens, on a provider whose sectors have sector bytes. *ret is empty.
 * -ENOMEM, -EIO. */
int geli_volume(struct key_volume *ret, const struct geli_meta *m, uint32_t sector,
                const struct secret *master);

#define GELI_MASTER_ID 64 /* bytes */
/* By which a master key is known again; says nothing about it. -EIO. */
int geli_master_id(unsigned char id[GELI_MASTER_ID], const struct secret *master);
