/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The metadata as a whole: made, copied, put back, moved, looked at. As format.h says of each. */

#include "keystore/geli/store.h"

int geli_prepare(struct key_create *req, struct report *rep);
uint64_t geli_container_size(const struct key_create *req);
uint64_t geli_disk_size(const struct key_create *req, uint64_t container);
int geli_check_create(const struct key_create *req, struct report *rep);
int geli_create(struct blk *header, struct blk *data, const struct key_create *req,
                const struct credential *cred, struct report *rep);

void geli_uuid(struct key_store *ks, unsigned char uuid[16]);
uint64_t geli_header_size(struct key_store *ks);
uint64_t geli_header_place(struct key_store *ks, const struct blk *b);
int geli_backup(struct key_store *ks, struct blk *to, struct report *rep);
int geli_restore(struct key_store *backup, struct blk *header, struct report *rep);
int geli_restore_check(struct key_store *backup, struct key_store *ks, struct report *rep);

uint64_t geli_container_end(struct key_store *ks, uint64_t size);
uint64_t geli_disk_room(struct key_store *ks, uint64_t container);
int geli_resize(struct key_store *ks, uint64_t size, struct report *rep);
int geli_relocate(struct blk *header, uint64_t old_size, struct report *rep);
int geli_find_end(struct blk *header, uint64_t *ret, struct progress *progress, struct report *rep);

void geli_dump(struct key_store *ks, struct key_dump *to);
int geli_check(struct blk *header, struct blk *data, struct report *rep);
