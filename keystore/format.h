/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What a container format offers to the rest. A format is a folder here and a row in the table of
 * keystore/formats.c; what a format cannot do is a NULL member, which the callers
 * (keystore/unlock.h, keystore/change.h) answer with -EOPNOTSUPP "not possible in this format".
 *
 * Everything in a header is hostile until its MAC was checked with the key from a slot. */

#include "base/progress.h"
#include "base/report.h"
#include "base/secret.h"
#include "block/blk.h"
#include "keystore/credential.h"
#include "keystore/kdf.h"

#include <stdint.h>

#define KEY_SLOT_ANY (-1)
#define KEY_LABEL_MAX 48
#define KEY_SLOTS_MAX 32 /* in any format */

/* How cipher keys follow from a volume's key. */
enum key_derivation {
    KEY_DERIVE_HKDF, /* chunk c has HKDF-Expand-SHA256(prk, head || LE64(c) || tail, key length) */
    KEY_DERIVE_HMAC, /* chunk c has HMAC-SHA512(prk, head || LE64(c) || tail), cut to the length */
    KEY_DERIVE_SINGLE, /* all of the disk has the first bytes of prk */
};
struct key_rule {
    enum key_derivation derivation;
    struct secret prk; /* 32 bytes, 64 for HMAC and SINGLE */
    /* Chunk c begins at c << chunk_shift: bytes of the disk, or where pieces are authenticated
     * (below) of the container. */
    uint32_t chunk_shift;
    unsigned char head[32];
    size_t head_len;
    unsigned char tail[32];
    size_t tail_len;
};

/* What makes a data unit's IV or tweak. Offsets are bytes, those of chunks (struct key_rule). */
enum key_iv {
    KEY_IV_SECTOR,          /* LE64(number of the sector), zeros */
    KEY_IV_OFFSET,          /* LE64(offset), zeros */
    KEY_IV_OFFSET_HASH,     /* the first bytes of SHA-256(iv_key || LE64(offset)) */
    KEY_IV_OFFSET_HASH_BIG, /* the same with BE64(offset) */
};

#define KEY_PIECE_MAX 131072 /* bytes: of an authenticated piece */

/* Sectors that carry their MACs themselves: each is stored as ceil(sector_size / room) pieces, one
 * behind the other, where room = (piece - MAC length) rounded down to a multiple of 16. A piece is
 * MAC || ciphertext || unused, its ciphertext one data unit of room bytes, of what is left in the
 * last one. MAC = HMAC-hash(SHA-256(key || LE64(offset of the piece in the container)),
 * ciphertext). */
struct key_auth {
    char hash[16];     /* as crypto/ calls it: "hmac-sha256"; "": nothing is authenticated */
    uint32_t piece;    /* bytes, a power of two */
    struct secret key; /* 64 bytes */
    bool big_endian;   /* BE64(offset) in the MAC */
};

/* What an unlocked container is: all that the stack needs, nothing that it must not see. */
struct key_volume {
    const char *format;   /* "native" */
    char cipher[32];      /* as crypto/ calls it, with the bits of the key: "aes-256-xts",
                             "aes-192-cbc", "camellia-128-cbc", "3des-192-cbc",
                             "blowfish-448-cbc", "null" */
    uint32_t sector_size; /* bytes: the cipher's data unit */
    uint64_t data_offset; /* bytes from the start of the container */
    uint64_t size;        /* bytes of the disk */
    bool zero_pieces;     /* an all-zero 512-byte piece of ciphertext reads as zeros */
    bool discard;         /* discards may punch the container */
    bool read_only;       /* the header forbids writing */
    unsigned char uuid[16];
    char label[KEY_LABEL_MAX + 1]; /* terminated; print it through report_escape */
    unsigned slot;                 /* the one that opened; of no meaning after import() */
    struct key_rule rule;
    enum key_iv iv;
    struct secret iv_key; /* 64 bytes, for KEY_IV_OFFSET_HASH and _BIG */
    struct key_auth auth;

    /* A re-encryption that is not finished: below boundary the disk is under rule, from there on
     * under old_rule. Of zone bytes at the boundary each 512-byte piece may be either: who opens
     * the volume finds out which (struct key_reencrypt) before a stack is built. */
    bool mixed;
    struct key_rule old_rule;
    uint64_t boundary; /* bytes of the disk, a multiple of sector_size */
    uint32_t zone;     /* bytes, a multiple of sector_size; mostly 0 */
};
void key_volume_done(struct key_volume *v);
#define AUTO_KEY_VOLUME __attribute__((cleanup(key_volume_done)))

enum key_slot_kind {
    KEY_SLOT_UNTOLD = 0, /* the format does not say */
    KEY_SLOT_PASSPHRASE = 1,
    KEY_SLOT_KEYFILE = 2,
    KEY_SLOT_BOTH = 3
};
struct key_slot_info {
    unsigned index;
    enum key_slot_kind kind;
    const char *kdf; /* "pbkdf2-sha512", of which cost has t alone; NULL: Argon2id */
    struct kdf_cost cost;
    uint64_t created; /* seconds since 1970; 0 unknown */
    char label[33];   /* terminated */
};

/* What a new container is made of. What a format does not have is refused when it is given. */
struct key_create {
    const char *cipher;     /* as the format names it; NULL: its choice */
    uint32_t key_bits;      /* 0: the format's choice, or the cipher's name says it */
    const char *version;    /* of the format; NULL: its newest */
    const char *integrity;  /* "hmac-sha256"; NULL: none */
    const char *flags;      /* words of the format with commas between; NULL */
    uint32_t sector_size;   /* bytes */
    uint32_t medium_sector; /* bytes: the sectors of the device that it is on, or will be; 0: 512 */
    uint64_t size;          /* bytes of the disk, a multiple of sector_size */
    bool discard;
    const char *label; /* may be NULL */
    struct kdf_request kdf;
    char data_cipher[32]; /* filled in by prepare: the cipher as crypto/ calls it */
};

/* A finished change of the key slots. Who knows the volume key seals it; who owns the header (the
 * process that has the container mounted) writes it, and needs no key for that. Not secret: it is
 * what will be in the header for everybody to see. */
enum key_patch_what {
    KEY_PATCH_ADD = 1, /* slot is free and gets bytes */
    KEY_PATCH_CHANGE,  /* slot is in use and gets bytes instead */
    KEY_PATCH_REMOVE,  /* slot is in use and is destroyed, whatever it holds unless seal made it */
    KEY_PATCH_ERASE,   /* every slot is destroyed, in damaged copies too */
    KEY_PATCH_FLAGS,   /* no slot: bytes are words as for set_flags(), without a zero at the end */
};
#define KEY_PATCH_MAX 1024 /* bytes */
struct key_patch {
    enum key_patch_what what;
    unsigned slot;
    bool force; /* also when no usable slot is left then */
    size_t len;
    unsigned char bytes[KEY_PATCH_MAX];
};

/* Where a dump goes: a name is a word like "sector_size", the same in text and in JSON. */
struct key_dump {
    void (*text)(struct key_dump *d, const char *name,
                 const char *value); /* raw: may need escapes */
    void (*number)(struct key_dump *d, const char *name, uint64_t value);
    void (*flag)(struct key_dump *d, const char *name, bool value);
    void (*bytes)(struct key_dump *d, const char *name, const unsigned char *bytes, size_t len);
    void (*begin)(struct key_dump *d, const char *name); /* a group: "header copy 0", "slot 3" */
    void (*end)(struct key_dump *d);
};

/* One container's header, opened by a format, which alone knows what is in it. */
struct key_store;

/* A slot that goes on opening the volume under its new key. */
struct key_keep {
    unsigned slot;
    const struct credential *cred; /* opens the slot now: who asked for it made sure */
};

#define KEY_PIECE 512              /* bytes of ciphertext that no medium tears */
#define KEY_DIGEST 16              /* bytes for each piece */
#define KEY_DIGESTS_MAX (1u << 18) /* bytes: of a zone */

/* A new volume key, zone by zone. The caller reads and writes the ciphertext, the format keeps in
 * the header how far that is, so that the container opens and reads right at every moment: from
 * zone_begin to zone_end each piece of the zone that has the digest noted for it is under the old
 * key, every other under the new one. From one thread, but for digest. After an unlock, header
 * writable; each writes durably unless it says otherwise. */
struct key_reencrypt {
    uint32_t zone_max; /* bytes, at most KEY_DIGESTS_MAX / KEY_DIGEST * KEY_PIECE */
    /* The volume that was unlocked as *key gets a new key: *key becomes mixed, boundary 0. Slots
     * that keep (at least one) does not name are destroyed. kdf all zero: each slot costs what it
     * did. At every moment the old header opens, or the new one by the slots of keep. -EBUSY one
     * is not finished; -ENOENT a slot of keep is empty; -EOPNOTSUPP one that is not of keep is of
     * an unknown kind; -ENOMEM, -EINVAL as kdf_choose; -ENOSPC nothing has changed. */
    int (*start)(struct key_store *ks, const struct key_keep *keep, unsigned n_keep,
                 const struct kdf_request *kdf, struct key_volume *key, struct report *rep);
    /* The digests of len bytes of ciphertext, whole pieces, that lie at off of the disk; out holds
     * KEY_DIGEST for each. From many threads. */
    void (*digest)(const struct key_store *ks, unsigned char *out, const unsigned char *ciphertext,
                   size_t len, uint64_t off);
    /* The pieces in len bytes from off of the disk, which have these digests, are going to change.
     * What is before off is under the new key, or reads as zeros. Called once more, with the
     * digests noted for it, for a zone that was begun and is now gone on with: if a flush failed
     * then, what can be read here need not be on the medium. */
    int (*zone_begin)(struct key_store *ks, uint64_t off, uint32_t len,
                      const unsigned char digests[KEY_DIGESTS_MAX], struct report *rep);
    /* The digests noted for the zone that was begun. Needs no writable header. */
    int (*zone_digests)(struct key_store *ks, unsigned char digests[KEY_DIGESTS_MAX],
                        struct report *rep);
    /* All pieces of the zone are durably under the new key. Not durable by itself: it does not
     * matter if this is lost. */
    int (*zone_end)(struct key_store *ks, struct report *rep);
    /* All of the disk is under the new key: forget the old one. */
    int (*finish)(struct key_store *ks, struct report *rep);
};

struct key_format {
    const char *name;
    const char *default_cipher; /* of new containers, as the format names it */
    /* Is this the header of a container of this format? 1, 0, or -errno. Reads only, says nothing,
     * trusts nothing. */
    int (*recognise)(struct blk *b);
    /* Fill in what req leaves to the format, and check all but the size: -EINVAL, -EOPNOTSUPP. The
     * next four are for a req that was prepared. */
    int (*prepare)(struct key_create *req, struct report *rep);
    /* Bytes of container that a disk of req->size bytes needs; for 0 those of a header. */
    uint64_t (*container_size)(const struct key_create *req);
    /* Bytes of the largest disk that a container of so many bytes holds. */
    uint64_t (*disk_size)(const struct key_create *req, uint64_t container);
    /* Check the size before anything exists: -EINVAL, -EOPNOTSUPP. */
    int (*check_create)(const struct key_create *req, struct report *rep);
    /* Write a header with one slot for cred. header and data as in open, and both are new; what
     * data may hold in the place of a header is cleared when that is elsewhere. */
    int (*create)(struct blk *header, struct blk *data, const struct key_create *req,
                  const struct credential *cred, struct report *rep);
    /* Read and check the header; a damaged copy is said, not mended. header is what holds it and
     * data what holds the ciphertext: the same, unless the header is detached. Both are borrowed
     * until close. -EBADMSG; -EOPNOTSUPP a version or cipher this program does not know. */
    int (*open)(struct key_store **ret, struct blk *header, struct blk *data, struct report *rep);
    void (*close)(struct key_store *ks);
    /* -EKEYREJECTED no slot opens (or none is left: erased); -ENOMEM a KDF cost this machine cannot
     * pay; -EBADMSG the header's MAC does not fit. slot KEY_SLOT_ANY tries all. */
    int (*unlock)(struct key_store *ks, const struct credential *cred, int slot,
                  struct key_volume *ret, struct report *rep);
    /* After an unlock, header writable: mend a damaged header copy from the verified one, and say
     * so. */
    int (*repair)(struct key_store *ks, struct report *rep);
    /* Used slots in index order; returns how many, at most max. */
    int (*slots)(struct key_store *ks, struct key_slot_info *out, unsigned max, struct report *rep);

    /* May a new slot cost this? -EINVAL. NULL: as kdf_request_check(). */
    int (*check_kdf)(const struct kdf_request *kdf, struct report *rep);
    /* After an unlock: make the change that puts cred into a free slot (what KEY_PATCH_ADD; slot
     * may be KEY_SLOT_ANY; -EEXIST when used, -ENOSPC all in use) or instead of what is in slot
     * (KEY_PATCH_CHANGE; label NULL keeps the old one). Writes nothing. Also without an unlock,
     * cred, label and kdf NULL: the change that removes what is in slot now (KEY_PATCH_REMOVE). */
    int (*seal)(struct key_store *ks, enum key_patch_what what, const struct credential *cred,
                int slot, const char *label, const struct kdf_request *kdf, struct key_patch *ret,
                struct report *rep);
    /* Write a change, wherever it comes from: its slot and its bytes are checked first. Needs no
     * key. Atomic: at every moment the old header or the new one opens. -EEXIST, -ENOENT the slot
     * is in use or is not; -EPERM no slot would be left that opens here, and there is no force;
     * -ESTALE seal saw something else in the slot than what is there now; -EINVAL no such slot, not
     * a slot's bytes, or those of another container's; -EBADMSG a header copy is damaged and has to
     * be mended first (any unlock for writing does); -EROFS. */
    int (*apply)(struct key_store *ks, const struct key_patch *p, struct report *rep);
    /* A format whose library only writes straight to the container has these instead of seal and
     * apply; they cannot be used while it is mounted. Return the slot. */
    int (*add)(struct key_store *ks, const struct credential *cred, int slot, const char *label,
               const struct kdf_request *kdf, struct report *rep);
    int (*change)(struct key_store *ks, const struct credential *cred, int slot,
                  const struct kdf_request *kdf, struct report *rep);
    int (*remove)(struct key_store *ks, int slot, bool force, struct report *rep);
    int (*erase)(struct key_store *ks, struct report *rep);
    /* Destroy every slot of a header that nobody has open, in whatever state it is: damaged, of a
     * later version, half erased before. Needs no open, so it works where that fails. */
    int (*destroy)(struct blk *header, struct report *rep);

    /* After an unlock that gave v: the container is from a machine of the other byte order, where
     * this format used the machine's. -EINVAL that makes no difference to it. */
    int (*big_endian)(const struct key_store *ks, struct key_volume *v, struct report *rep);

    /* What import() takes to open the volume without a credential: for a suspended volume that is
     * resumed by another process. After an unlock. */
    int (*export)(struct key_store *ks, struct secret *ret);
    /* -EKEYREJECTED, in silence, when these bytes are not this volume's. */
    int (*import)(struct key_store *ks, const struct secret *bytes, struct key_volume *ret,
                  struct report *rep);
    /* Wipe what only sealing needs; with all, every key: the header can still take patches. */
    void (*forget)(struct key_store *ks, bool all);

    /* After an unlock (forget without all is fine): the disk's size in the header, a multiple of
     * the sector size. The caller sees to the container's: when growing before, else after. At
     * every moment the header opens, with one size or the other. -EINVAL an impossible size, -EBUSY
     * it is being re-encrypted, -ENOKEY after forget with all. */
    int (*resize)(struct key_store *ks, uint64_t size, struct report *rep);
    /* Bytes of the container when its disk has size. NULL: nothing lies behind the disk. Else the
     * header does: resize() wants the container larger before it grows, nobody in the disk, and
     * moves there. */
    uint64_t (*container_end)(struct key_store *ks, uint64_t size);
    /* For such a format, the other way round: bytes of the largest disk that a container of so many
     * bytes holds. */
    uint64_t (*disk_room)(struct key_store *ks, uint64_t container);
    /* For such a format: the container was made larger by something else, and its header lies where
     * it ended, at old_size; move it to the end. -EBADMSG it does not lie there, -EINVAL. */
    int (*relocate)(struct blk *header, uint64_t old_size, struct report *rep);
    /* What old_size would be: looked for from the end down, in everything if need be. -EBADMSG
     * there is none, -EINTR (no words) progress says so. */
    int (*find_end)(struct blk *header, uint64_t *old_size, struct progress *progress,
                    struct report *rep);
    /* Set and clear flags, by words as in struct key_create. Needs no key. -EINVAL. A format that
     * has apply() takes the same as KEY_PATCH_FLAGS. */
    int (*set_flags)(struct key_store *ks, const char *words, struct report *rep);

    /* A format that has backup has all of these down to check, but for
     * header_place perhaps. */

    /* Which container the header is of. */
    void (*uuid)(struct key_store *ks, unsigned char uuid[16]);
    /* Bytes that a backup, or a detached header, takes. */
    uint64_t (*header_size)(struct key_store *ks);
    /* Where a header of that size lies on b, a container or the file of a header. NULL: at 0. */
    uint64_t (*header_place)(struct key_store *ks, const struct blk *b);
    /* Write a complete copy of the header to a new file; also a detached header. */
    int (*backup)(struct key_store *ks, struct blk *to, struct report *rep);
    /* Put the header of backup (opened with open() on the backup file, data being the container) in
     * the place of what is in the container's header, which may be damaged. Says and checks
     * nothing about uuids: that is its caller's. At every moment one of both opens. */
    int (*restore)(struct key_store *backup, struct blk *header, struct report *rep);
    /* May backup go where ks is without losing data? -EPERM the volume key or the geometry differ,
     * -EBUSY ks is being re-encrypted; said. ks is NULL where no header can be read: does it fit
     * the container at all? */
    int (*restore_check)(struct key_store *backup, struct key_store *ks, struct report *rep);
    /* Every field of every copy. Trusts nothing, shows no secret. */
    void (*dump)(struct key_store *ks, struct key_dump *to);
    /* Look at every copy and every field, say one line about each thing that is wrong; header and
     * data as in open. -EBADMSG when something is. Needs no key. */
    int (*check)(struct blk *header, struct blk *data, struct report *rep);
    const struct key_reencrypt *reencrypt;
    unsigned max_slots;
    bool detachable; /* the header may lie in a file of its own */
    bool by_sectors; /* where it puts things depends on the sectors of the medium */
    /* Of a passphrase file the first line counts, several of them make one passphrase, and it may
     * be empty. */
    bool passphrase_lines;
};

/* NULL when there is none of that name; the table, closed by NULL. */
const struct key_format *key_format_named(const char *name);
extern const struct key_format *const key_formats[];

/* What is on b? -EBADMSG "not a container" when no format knows it (says whether it is empty),
 * -EOPNOTSUPP when it is a container of another program's that this one does not read. */
int key_recognise(const struct key_format **ret, struct blk *b, struct report *rep);
