/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "crypto/engine.h"

/* Take ciphertext from one engine's key to another's, in place: len bytes of the volume from off,
 * whole pieces (SECTOR_PIECE). A piece that is all zero stays so (docs/format.md 0). After an error
 * bytes may hold plaintext. Errors as sector_encrypt(). */
int sector_recipher(struct sector_engine *from, struct sector_engine *to, unsigned char *bytes,
                    size_t len, uint64_t off);
