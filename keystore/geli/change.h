/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Changes of the slots and of the flags. As format.h says of each. */

#include "keystore/geli/store.h"

int geli_check_kdf(const struct kdf_request *kdf, struct report *rep);
/* The iterations of a new container whose key is cred: what kdf asks for, or two seconds' worth, as
 * geli(8) does. -EINVAL (said) iterations without a passphrase; -EIO. */
int geli_iterations(int32_t *ret, const struct credential *cred, const struct kdf_request *kdf,
                    struct report *rep);
/* -EINVAL (said) a passphrase that geli(8) could not take. */
int geli_check_new(const struct credential *cred, struct report *rep);

int geli_seal(struct key_store *ks, enum key_patch_what what, const struct credential *cred,
              int slot, const char *label, const struct kdf_request *kdf, struct key_patch *ret,
              struct report *rep);
int geli_apply(struct key_store *ks, const struct key_patch *p, struct report *rep);
int geli_destroy(struct blk *header, struct report *rep);

/* Words like "boot" and "no-boot", with commas, as they change flags. -EINVAL (said) an unknown
 * one. */
int geli_flag_words(uint32_t *flags, const char *words, struct report *rep);
/* The name of flag 1 << bit, "" when it is none. */
const char *geli_flag_name(unsigned bit);
int geli_set_flags(struct key_store *ks, const char *words, struct report *rep);
