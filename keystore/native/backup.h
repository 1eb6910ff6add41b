/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A header as a whole: copied to a file, put back, looked at. As format.h says of each. */

#include "keystore/native/store.h"

void native_uuid(struct key_store *ks, unsigned char uuid[16]);
uint64_t native_header_size(struct key_store *ks);
int native_backup(struct key_store *ks, struct blk *to, struct report *rep);
int native_restore(struct key_store *backup, struct blk *header, struct report *rep);
int native_restore_check(struct key_store *backup, struct key_store *ks, struct report *rep);
void native_dump(struct key_store *ks, struct key_dump *to);
int native_check(struct blk *header, struct blk *data, struct report *rep);
