/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The one metadata block on the medium: where it is, and how it is replaced. From one thread.
 *
 * There is no second copy. A block fits into 512 bytes, which no medium tears, so that at every
 * moment the old block or the new one is there. */

#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "keystore/format.h"
#include "keystore/geli/key.h"
#include "keystore/geli/meta.h"

#define GELI_OVERWRITES 5 /* of what held a key */

struct key_store {
    struct blk *b;    /* what holds the metadata in its last sector, if that is all of it too */
    struct blk *data; /* the provider; b, unless the header is detached */
    uint32_t sector;  /* bytes: the provider's sectors, as whoever made it saw them */
    struct geli_meta meta;
    struct secret master;                    /* after an unlock, until it is forgotten */
    bool known;                              /* there was an unlock: */
    unsigned char master_id[GELI_MASTER_ID]; /* of which key */
    bool broken;                             /* a write failed: no other follows */
};

/* Where metadata is on b, a container or a backup: the first of the places in which sectors of 512,
 * 1024, ... bytes would put it that holds a whole block for a container of provsize bytes; else the
 * first that at least begins like one. *sector is the size of the sectors. 1 found, 0 not, -errno.
 */
int geli_find(struct blk *b, uint64_t provsize, uint32_t *sector);
/* Read the block of a container with such sectors that ends at end. */
int geli_read(struct blk *b, unsigned char block[GELI_BLOCK], uint64_t end, uint32_t sector);
/* Where the block lies on b. */
uint64_t geli_place(const struct blk *b, uint32_t sector);

/* As format.h says of open. */
int geli_store_open(struct key_store **ret, struct blk *header, struct blk *data,
                    struct report *rep);
/* -EBADMSG (said) the container has not the size that the metadata is for. */
int geli_store_check_size(const struct key_store *ks, struct report *rep);
void geli_store_close(struct key_store *ks);
void geli_store_forget(struct key_store *ks, bool all);

/* Put m in the place of what is there, durably; the rest of its sector becomes zeros. -EIO after a
 * write that failed, -EROFS. */
int geli_store_update(struct key_store *ks, const struct geli_meta *m, struct report *rep);
/* Write m at off of b, as a sector. */
int geli_write(struct blk *b, const struct geli_meta *m, uint32_t sector, uint64_t off,
               struct report *rep);
/* Overwrite a sector with random bytes so many times, and with zeros at last if zeros says so, each
 * durably. */
int geli_wipe(struct blk *b, uint32_t sector, uint64_t off, unsigned times, bool zeros,
              struct report *rep);
