/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A new container before it takes its place, in three steps: room for it under no name yet, a
 * header, the commit. create takes them one after the other, convert fills the disk between. */

#include "volume/volume.h"

struct vol_draft {
    const struct key_format *format;
    struct blk *blk;          /* what blk_file_create() made; owned */
    struct blk *header_blk;   /* the same for the file of a detached header, or NULL; owned */
    const char *header_file;  /* its name; borrowed */
    struct key_create header; /* what its header is to say */
    struct credential cred;   /* what the one key slot was made from */
};

/* Check spec, then make room. Errors as vol_create(). */
int vol_draft_open(struct vol_draft *ret, const struct vol_create *spec, pid_t *holder,
                   struct report *rep);
/* Where its header goes: to a file of its own, or into the container. */
struct blk *vol_draft_header(const struct vol_draft *d);
/* Read the credential, then write the header to where: vol_draft_header(), or what stands for it.
 * As credential_read() and the format's create. */
int vol_draft_make_header(struct vol_draft *d, const struct credential_source *src,
                          struct blk *where, struct report *rep);
/* Make it durable and give it its name, and the file of its header before; d stays open. As
 * blk_file_commit(). */
int vol_draft_commit(struct vol_draft *d, struct report *rep);
/* Close; what was not committed is removed. Fine on a zeroed struct. */
void vol_draft_close(struct vol_draft *d);
#define AUTO_VOL_DRAFT __attribute__((cleanup(vol_draft_close)))
