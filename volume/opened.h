/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A volume from the inside, for the files that assemble it; nobody else includes this. */

#include "keystore/format.h"
#include "volume/stack.h"
#include "volume/volume.h"

#include <pthread.h>
#include <stdatomic.h>

struct volume {
    struct report rep;
    _Atomic(struct report *) say_to;
    struct vol_stack stack;
    const struct key_format *format;
    struct key_store *store; /* the header; it owns no key but what its own updates need */
    struct blk *header;      /* the file of a detached one, or NULL */
    pthread_mutex_t updates; /* of the header: one at a time */
    uint64_t told;           /* bytes of the disk that the header speaks of */
    uint64_t promised;       /* that it may speak of, after an update that failed: the most */
    bool sparse;             /* the container takes storage as it is written */
    bool onetime;            /* nobody has the key */
    bool mixed;              /* a re-encryption has not ended */
    pthread_mutex_t facts;   /* for info, never held for long */
    struct vol_info info;
    char cipher[32];
    char integrity[16]; /* not "": sectors carry MACs */
    char label[KEY_LABEL_MAX + 1];
};
