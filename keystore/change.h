/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Changes of the key slots of any format, for commands and for the process that has a container
 * mounted. Each is atomic: whatever stops it, the keys from before or those from after open.
 *
 * A command that has the container to itself unlocks it for writing (key_unlock_with, repair),
 * reads the new credential, and adds or changes; volume.slot is the slot that a passphrase opened.
 * For a mounted container it opens the file for reading, unlocks, seals, and sends the patch as
 * text to the process that holds the container, which decodes and applies it. Removing and erasing
 * need no key. */

#include "base/report.h"
#include "keystore/credential.h"
#include "keystore/format.h"
#include "keystore/unlock.h"

/* -EOPNOTSUPP "... is not possible in the NAME format", so that nobody is asked for a passphrase
 * first. _mounted: as a patch for the process that has the container mounted. */
int key_change_possible(const struct key_format *f, enum key_patch_what what, struct report *rep);
int key_change_possible_mounted(const struct key_format *f, enum key_patch_what what,
                                struct report *rep);

/* May a new slot cost this? -EINVAL, before anybody is asked for a passphrase. */
int key_change_check_kdf(const struct key_format *f, const struct kdf_request *kdf,
                         struct report *rep);

/* c was unlocked for writing: put cred into a free slot (KEY_SLOT_ANY: the first). Returns the
 * slot. Errors as the format's seal and apply: -EEXIST, -ENOSPC, -EINVAL, -ENOMEM a KDF cost this
 * machine cannot pay. */
int key_change_add(struct key_container *c, const struct credential *cred, int slot,
                   const char *label, const struct kdf_request *kdf, struct report *rep);
/* c was unlocked for writing: cred opens slot from now on, instead of what did. label NULL keeps
 * the old one. -ENOENT the slot is empty. */
int key_change_change(struct key_container *c, const struct credential *cred, int slot,
                      const char *label, const struct kdf_request *kdf, struct report *rep);
/* c is open for writing. -ENOENT; -EPERM no slot would be left that opens here (force: all the
 * same); -EBADMSG the header has to be mended first. */
int key_change_remove(struct key_container *c, int slot, bool force, struct report *rep);
/* Destroy every slot, whatever state the header is in: the container need not open. header and data
 * as in the format's open; nobody else has them open. */
int key_change_erase(const struct key_format *f, struct blk *header, struct blk *data,
                     struct report *rep);
