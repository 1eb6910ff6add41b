/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A new key for all of a volume that nobody has mounted. Whatever stops it, the container opens as
 * it is, and calling this again goes on. */

#include "base/progress.h"
#include "base/report.h"
#include "keystore/unlock.h"

struct vol_reencrypt {
    /* Open for writing, unlocked, the header mended. */
    struct key_container *container;
    struct key_volume *key; /* mixed: after the format's start, or of one that was begun before */
    unsigned threads;       /* 0: as many as CPUs */
    uint64_t throttle;      /* bytes a second at most; 0: no limit */
    uint32_t zone;          /* bytes at a time; 0: what suits the throttle and the format */
    struct progress *progress; /* asked between zones; may be NULL */
};

/* Go on until all is done; *turned counts the bytes that got the new key in this call. -EINTR when
 * progress says so; else what reading and writing gave, said. */
int vol_reencrypt(const struct vol_reencrypt *r, uint64_t *turned, struct report *rep);
