/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The two header copies on the medium: which one counts, and in which order they are written.
 * docs/format.md 10.1. From one thread. */

#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "keystore/format.h"
#include "keystore/native/header.h"
#include "keystore/native/record.h"

#define NATIVE_ALIGN 4096 /* what O_DIRECT may ask of memory */

struct native_copy {
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    struct native_header header;
    int state; /* 0 usable; -EBADMSG damaged, -EOPNOTSUPP not for us, else unreadable */
};

struct key_store {
    struct native_copy copy[NATIVE_COPIES];
    unsigned char next[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN))); /* an update */
    struct blk *b;                                                           /* the header */
    struct blk *data;     /* the ciphertext; b, unless the header is detached */
    unsigned current;     /* the copy that counts */
    struct secret master; /* after an unlock; forgotten when no slot is to be sealed any more */
    struct secret prk;    /* after an unlock */
    bool broken;          /* a write failed: no other follows */
    /* While a re-encryption is not finished (reencrypt.h), after an unlock. */
    struct native_record record;
    struct secret record_keys; /* forgotten with master */
};

static inline uint64_t native_copy_off(unsigned i)
{
    return (uint64_t)i * NATIVE_COPY_STEP;
}

/* Read copy i of the header on b into c, and its state. */
void native_copy_read(struct native_copy *c, struct blk *b, unsigned i);
/* The index of the copy that counts: the newest one that is not damaged. 1 when both are. */
unsigned native_copy_newest(const struct native_copy c[NATIVE_COPIES]);

/* Read both copies and find the one that counts. Errors as format.h says of open. */
int native_store_open(struct key_store **ret, struct blk *header, struct blk *data,
                      struct report *rep);
void native_store_close(struct key_store *ks);
/* As format.h says of forget. */
void native_store_forget(struct key_store *ks, bool all);

/* Does data hold what the header promises? -EBADMSG cut short. */
int native_store_fits(const struct native_header *h, const struct blk *data, struct report *rep);
/* The same, and may it be used as b was opened? -EOPNOTSUPP only read-only. */
int native_store_check(const struct key_store *ks, const struct native_header *h,
                       struct report *rep);

/* The first header on b. */
int native_store_create(struct blk *b, const unsigned char block[NATIVE_BLOCK], struct report *rep);
/* After an unlock: make the other copy equal to the current one, and say so when it was not. */
int native_store_repair(struct key_store *ks, struct report *rep);
/* Before an update: are both copies equal? After an unlock one that is not is mended, without a key
 * it is -EBADMSG. -EROFS; -EIO after a write that failed. */
int native_store_ready(struct key_store *ks, struct report *rep);
/* After that, for who is going to destroy what only an older header needs: the last write of an
 * update is repeated, so that no such header is left on a medium that failed to take it. */
int native_store_again(struct key_store *ks, struct report *rep);
/* After that: ks->next, the current block with other slots, becomes the header; numbered and
 * authenticated anew when the key is known. -EOVERFLOW when it was changed too often. */
int native_store_update(struct key_store *ks, struct report *rep);
/* The same with another capacity. Needs the key: the MAC covers it. */
int native_store_set_capacity(struct key_store *ks, uint64_t capacity, struct report *rep);
/* The same with other fields and another key: h is the current header but for what changes, prk its
 * own. */
int native_store_replace(struct key_store *ks, struct native_header *h, const struct secret *prk,
                         struct report *rep);

/* Destroy every slot of both copies, whatever state they are in: what is not the copy that counts
 * gives way to it, and neither has slots. Tries both; the first error. */
int native_store_erase(struct key_store *ks, struct report *rep);
/* The same for a header that need not open. */
int native_store_destroy(struct blk *header, struct report *rep);
