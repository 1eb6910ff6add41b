/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What a layer says of sectors that do not verify: each range once, and a disk that is full of them
 * does not fill the log. From many threads. */

#include "base/report.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define UNVERIFIED_RANGES 32

struct unverified {
    pthread_mutex_t lock;
    struct report *rep;
    atomic_bool any; /* something was found */
    struct {
        uint64_t off, end; /* bytes; end 0: not in use */
    } ranges[UNVERIFIED_RANGES];
    unsigned next;              /* to give way */
    unsigned long long n_found; /* ranges that were new */
};

/* rep is borrowed. */
void unverified_init(struct unverified *u, struct report *rep);
void unverified_done(struct unverified *u);
/* Bytes from off to end of the disk could not be read. */
void unverified_found(struct unverified *u, uint64_t off, uint64_t end);
/* They were written: should they fail again, that is news. */
void unverified_mended(struct unverified *u, uint64_t off, uint64_t end);
