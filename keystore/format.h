/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What a container format offers to the rest: recognise, open the header, unlock, list and add
 * slots. A format is a folder here and a row in the table of keystore/formats.c; what a format
 * cannot do is a NULL member, which answers -EOPNOTSUPP "not possible in this format".
 *
 * Everything in a header is hostile until its MAC was checked with the key from a slot. */

#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "keystore/credential.h"
#include "keystore/kdf.h"

#include <stdint.h>

#define KEY_SLOT_ANY (-1)
#define KEY_LABEL_MAX 48
#define KEY_SLOTS_MAX 32 /* in any format */

/* What an unlocked container is: all that the stack needs, nothing that it must not see. */
struct key_volume {
    const char *format;   /* "native" */
    char cipher[32];      /* as crypto/ calls it: "aes-256-xts" */
    uint32_t sector_size; /* bytes: the cipher's data unit */
    uint64_t data_offset; /* bytes from the start of the container */
    uint64_t size;        /* bytes of the disk */
    bool zero_pieces;     /* an all-zero 512-byte piece of ciphertext reads as zeros */
    bool discard;         /* discards may punch the container */
    unsigned char uuid[16];
    char label[KEY_LABEL_MAX + 1]; /* terminated; print it through report_escape */
    unsigned slot;                 /* the one that opened */

    /* The cipher key for chunk c (plaintext offset >> chunk_shift) is
     * HKDF-Expand(prk, info_head || LE64(c) || info_tail, key length). */
    struct secret prk;
    uint32_t chunk_shift;
    unsigned char info_head[32];
    size_t info_head_len;
    unsigned char info_tail[32];
    size_t info_tail_len;
};
void key_volume_done(struct key_volume *v);
#define AUTO_KEY_VOLUME __attribute__((cleanup(key_volume_done)))

enum key_slot_kind { KEY_SLOT_PASSPHRASE = 1, KEY_SLOT_KEYFILE = 2, KEY_SLOT_BOTH = 3 };
struct key_slot_info {
    unsigned index;
    enum key_slot_kind kind;
    struct kdf_cost cost;
    uint64_t created; /* seconds since 1970 */
    char label[33];   /* terminated */
};

/* What a new container is made of. */
struct key_create {
    const char *cipher;
    uint32_t sector_size;
    uint64_t size; /* bytes of the disk, a multiple of sector_size */
    bool discard;
    const char *label; /* may be NULL */
    struct kdf_request kdf;
};

/* One container's header, opened by a format, which alone knows what is in it; b is borrowed. */
struct key_store;

struct key_format {
    const char *name;
    /* Is this b's format? 1, 0, or -errno. Reads only, says nothing, trusts nothing. */
    int (*recognise)(struct blk *b);
    /* Bytes of container that a disk of size bytes needs. */
    uint64_t (*container_size)(uint64_t size);
    /* Check req before anything exists: -EINVAL, -EOPNOTSUPP. */
    int (*check_create)(const struct key_create *req, struct report *rep);
    /* Write a header with one slot for cred to b, which is new. */
    int (*create)(struct blk *b, const struct key_create *req, const struct credential *cred,
                  struct report *rep);
    /* Read and check the header; a damaged copy is said, not mended. -EBADMSG; -EOPNOTSUPP a
     * version or cipher this program does not know. */
    int (*open)(struct key_store **ret, struct blk *b, struct report *rep);
    void (*close)(struct key_store *ks);
    /* -EKEYREJECTED no slot opens (or none is left: erased); -ENOMEM a KDF cost this machine cannot
     * pay; -EBADMSG the header's MAC does not fit. slot KEY_SLOT_ANY tries all. */
    int (*unlock)(struct key_store *ks, const struct credential *cred, int slot,
                  struct key_volume *ret, struct report *rep);
    /* After an unlock, b writable: mend a damaged header copy from the verified one, and say so. */
    int (*repair)(struct key_store *ks, struct report *rep);
    /* Used slots in index order; returns how many, at most max. */
    int (*slots)(struct key_store *ks, struct key_slot_info *out, unsigned max, struct report *rep);
    /* After an unlock: add cred in a free slot (or the given one, -EEXIST when used). Returns its
     * index. -ENOSPC all in use. Atomic: at every moment the old header or the new one opens. */
    int (*add)(struct key_store *ks, const struct credential *cred, int slot, const char *label,
               const struct kdf_request *kdf, struct report *rep);
    unsigned max_slots;
};

/* NULL when there is none of that name; the table, closed by NULL. */
const struct key_format *key_format_named(const char *name);
extern const struct key_format *const key_formats[];

/* What is on b? -EBADMSG "not a container" when no format knows it (says whether it is empty),
 * -EOPNOTSUPP when it is a container of another program's that this one does not read. */
int key_recognise(const struct key_format **ret, struct blk *b, struct report *rep);
