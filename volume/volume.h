/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A volume: a container that was opened and unlocked, as a stack whose top is the disk. What
 * commands and the FUSE front use. */

#include "base/progress.h"
#include "base/report.h"
#include "block/blk.h"
#include "block/file.h"
#include "keystore/credential.h"
#include "keystore/format.h"

#include <sys/types.h>

struct volume;

/* A disk under a random key that is gone when it is unmounted. */
enum vol_onetime {
    VOL_ONETIME_NO,
    VOL_ONETIME_NEW,   /* over zeros only */
    VOL_ONETIME_FORCE, /* whatever the container holds is lost */
};

enum vol_choice { VOL_DEFAULT, VOL_YES, VOL_NO };

struct vol_spec {
    const char *container; /* path */
    const char *header;    /* path of a detached header, or NULL: it is in the container */
    bool read_only;
    enum blk_direct direct;
    enum vol_choice discard;     /* default: what the header says */
    enum vol_choice enospc_wait; /* default: yes when the header allows discard (sparse), else no */
    unsigned threads;            /* that cipher at once, the caller included; 0: as many as CPUs */
    uint64_t readahead;          /* bytes prepared at most; 0: a default */
    bool no_readahead;
    unsigned callers; /* requests at once at the top; 0: a default */
    struct credential_source credential;
    int slot;                 /* KEY_SLOT_ANY or the one to try */
    bool big_endian;          /* made by a machine of that byte order, where that matters */
    enum vol_onetime onetime; /* then no credential is read */
};

/* Lock, recognise, ask for the credential, unlock, mend a damaged header copy, build the stack, in
 * this order. -EBUSY: *holder as in blk_file_open, no words said. Else as blk_file_open,
 * key_recognise, credential_read and the format's open and unlock. Three tries when the passphrase
 * comes from a terminal. rep must outlive the volume: layers say there what happens to it. */
int vol_open(struct volume **ret, const struct vol_spec *spec, pid_t *holder, struct report *rep);
/* Flush, wipe the keys, close and unlock the container. Returns what the flush returned; v is gone
 * in any case. NULL is fine. */
int vol_close(struct volume *v);

/* The top of the stack, v's own: any offset, any length, from many threads. */
struct blk *vol_top(struct volume *v);

/* Words from here on go to another report (a daemon that leaves its terminal). */
void vol_set_report(struct volume *v, struct report *rep);

struct vol_info {
    const char *format, *cipher; /* v's own */
    const char *integrity;       /* v's own: "hmac-sha256"; "" none */
    const char *label;
    unsigned char uuid[16];
    uint32_t sector_size;
    uint64_t size;
    uint64_t data_offset;
    bool reencrypting;    /* is on the way to another key, and */
    uint64_t reencrypted; /* so many bytes are there */
    bool read_only, discard, enospc_wait, direct, suspended, poisoned;
    unsigned threads, slot;
    dev_t container_dev; /* of the container file: with container_ino, who it is */
    ino_t container_ino;
};
void vol_get_info(struct volume *v, struct vol_info *ret);

struct vol_stats {
    uint64_t cipher_ns, bytes_enciphered, bytes_deciphered;
    uint64_t pool_batches, pool_pieces, pool_pieces_worker;
    uint64_t readahead_prepared, readahead_used, readahead_wasted; /* bytes */
    unsigned waiting_for_space;
};
void vol_get_stats(struct volume *v, struct vol_stats *ret);
/* "poison", "space", "align", ...: the layers from the top down; returns how many, at most max. */
unsigned vol_layers(struct volume *v, const char **names, unsigned max);

/* Write a change of the key slots to the header, in use or suspended: it was sealed by somebody who
 * has the volume key. From any thread. -EROFS the volume is read-only; -EOPNOTSUPP; else as the
 * format's apply. */
int vol_key_apply(struct volume *v, const struct key_patch *p, struct report *rep);

/* Requests that wait for room on the host fail now (and go on failing): the volume is going away.
 */
void vol_give_up_waiting(struct volume *v);

/* Forget every key of an open volume, durably written before, and go on with it later. While it is
 * suspended nobody may call its top but for flush, extent and stat, which work; a resize is
 * refused, a change of key slots is not. One of these at a time; nobody may be in the stack. */

/* -EOPNOTSUPP not in this format; -EALREADY it is suspended; -EIO what was written before could not
 * be made durable: not suspended. All said. */
int vol_suspend(struct volume *v, struct report *rep);
/* bytes are what the format's export() gave to somebody who unlocked slot. -EKEYREJECTED they are
 * not this volume's; -EALREADY it is not suspended; -ENOMEM, -EIO: still suspended. All said. */
int vol_resume(struct volume *v, const struct secret *bytes, unsigned slot, struct report *rep);

/* Another size. Sizes are bytes of the disk, rounded up to whole sectors. Any of these: -EROFS,
 * -EOPNOTSUPP not in this format, -EBUSY it is being re-encrypted, -EINVAL an impossible size. */

/* Would it be possible? Rounds *size. */
int vol_resize_check(struct volume *v, uint64_t *size, struct report *rep);
/* Make the container large enough, with storage for all of it unless it is a sparse one, and let
 * the header say so; the disk keeps its size until vol_grow(). Requests may run meanwhile, which
 * may be long; one caller at a time. -ENOSPC, and -EINTR when progress says so: nothing has
 * changed. After another failure the container opens with the old size or the new one. When
 * vol_grow() does not follow, a call with the size that the disk has takes it back. */
int vol_make_room(struct volume *v, uint64_t size, struct progress *progress, struct report *rep);
/* After that: the disk has the new size. Nobody may be in the stack. */
int vol_grow(struct volume *v, uint64_t size, struct report *rep);
/* The disk ends at size, what it had behind that is gone. Nobody may be in the stack. */
int vol_shrink(struct volume *v, uint64_t size, struct report *rep);
/* The largest disk that fits on the device that holds the container, which may have grown.
 * -EINVAL it is a file (said). */
int vol_device_room(struct volume *v, uint64_t *ret, struct report *rep);

struct vol_create {
    const char *container;
    const char *header_file; /* a new file that gets the header; NULL: it is in the container */
    uint64_t size; /* bytes of the disk, rounded up to a whole sector; 0: all of a block device */
    const char *format;
    bool sparse, force;
    bool no_init; /* authenticated sectors are not written: they read as errors until they are */
    struct key_create header; /* size and discard are filled in here */
    struct credential_source credential;
    struct progress
        *progress; /* asked while zeros are written and before the commit; may be NULL */
};
/* Make a container: checked, room made, asked, written, in this order; authenticated sectors are
 * zeros then; an existing file gives way
 * only with force and only when the new one is complete; a header file never does. -EEXIST, -EBUSY
 * (holder as above), -EINVAL, -EINTR when progress says so: nothing is left then. */
int vol_create(const struct vol_create *spec, pid_t *holder, struct report *rep);

/* Make a container as vol_create() does and fill it with the disk of from, which may be open for
 * reading only and is not changed. What to's disk has beyond that of from reads as zeros; what from
 * has beyond to's is left out: ask before (vol_is_zero). The name appears, and a device opens, only
 * when everything has been read back from the new container and is the same as the source; until
 * then nothing of it can be mistaken for a container. Errors as vol_create's; -EIO what was read
 * back differs. */
int vol_convert(struct volume *from, const struct vol_create *to, pid_t *holder,
                struct report *rep);
/* Does the disk read as zeros from off to its end? 1, 0, or -errno: -EINTR (no words), or what
 * reading gave, said. */
int vol_is_zero(struct volume *v, uint64_t off, struct progress *progress, struct report *rep);
