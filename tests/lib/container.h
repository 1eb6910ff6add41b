/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Native containers in memory whose slots cost next to nothing, so that a test can open thousands.
 */

#include "block/blk.h"
#include "keystore/credential.h"
#include "keystore/native/header.h"
#include "keystore/native/slot.h"

#define CONTAINER_DISK 65536 /* bytes of the disk */
#define CONTAINER_SIZE (NATIVE_DATA + CONTAINER_DISK)

/* What every container here is made of, and the key in it. */
struct native_header container_header(void);
void container_master(struct secret *master);
extern const struct kdf_cost container_cost;

/* A credential from C strings; NULL: none. */
void container_credential(struct credential *c, const char *passphrase, const char *keyfile);

/* A sealed header block with master under "old horse" in slot 2. h may be changed before. */
void container_block(unsigned char block[NATIVE_BLOCK], struct native_header *h);
/* Set the checksum again after bytes were changed, and the MAC too if with_mac. */
void container_reseal(unsigned char block[NATIVE_BLOCK], int with_mac);
/* A new memory device with this block as both copies. */
struct blk *container_open(const unsigned char block[NATIVE_BLOCK]);
