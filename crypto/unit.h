/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What follows from the place of a data unit: its IV, and its MAC. All offsets are bytes. */

#include "crypto/lane.h"
#include "crypto/sector.h"

/* Of one engine, shared by its lanes. */
struct unit_rules {
    enum sector_iv iv;
    uint32_t sector_size;
    EVP_MD *sha256;        /* NULL when nothing needs it */
    struct secret iv_key;  /* empty unless IVs are hashes */
    EVP_MAC *hmac;         /* NULL when nothing is authenticated */
    const char *digest;    /* inside it, OpenSSL's name */
    uint32_t mac_len;      /* bytes */
    struct secret mac_key; /* the keys of units follow from it */
    bool mac_big_endian;   /* with the offset in this order */
};

#define MAC_MAX 64 /* bytes */

/* Copies the keys. -EINVAL; -ENOSYS the library has no such algorithm (said); -ENOMEM. */
int unit_rules_init(struct unit_rules *u, const struct unit_rule *rule, uint32_t sector_size,
                    struct report *rep);
void unit_rules_done(struct unit_rules *u);
/* Wipe the keys; get others of the same kind. -EINVAL, -ENOMEM. */
void unit_rules_forget(struct unit_rules *u);
int unit_rules_rekey(struct unit_rules *u, const struct secret *iv_key,
                     const struct secret *mac_key);
/* Make the contexts of a lane that these rules need, unless it has them. -ENOMEM. */
int unit_rules_equip(const struct unit_rules *u, struct lane *lane);

/* -EIO the library failed. */
int unit_iv(const struct unit_rules *u, struct lane *lane, unsigned char iv[16], uint64_t off);
/* mac gets mac_len bytes. */
int unit_mac(const struct unit_rules *u, struct lane *lane, unsigned char *mac,
             const unsigned char *ciphertext, size_t len, uint64_t off);
