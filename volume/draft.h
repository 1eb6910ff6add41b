/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A new container before it takes its place: complete as far as its header goes, with an empty
 * disk, under no name yet. What create commits at once and convert fills first. */

#include "volume/volume.h"

struct vol_draft {
    const struct key_format *format;
    struct blk *blk;        /* what blk_file_create() made; owned */
    struct credential cred; /* what the one key slot was made from */
    uint64_t size;          /* bytes of the disk */
};

/* As vol_create(), up to the point where nothing is left but to commit. */
int vol_draft_open(struct vol_draft *ret, const struct vol_create *spec, pid_t *holder,
                   struct report *rep);
/* Make it durable and give it its name; d stays open. As blk_file_commit(). */
int vol_draft_commit(struct vol_draft *d, struct report *rep);
/* Close; what was not committed is removed. Fine on a zeroed struct. */
void vol_draft_close(struct vol_draft *d);
#define AUTO_VOL_DRAFT __attribute__((cleanup(vol_draft_close)))
