/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Lanes: what a thread needs to cipher, for as many threads as may do so at once. Contexts of the
 * library are not for two threads at once and a key schedule is not cheap, so a thread takes a lane
 * while it ciphers, the same one as last time unless somebody is in it, and finds there the
 * contexts of the chunks it met before. Lanes belong to an engine, not to the threads: forgetting
 * them wipes every key wherever it was used. */

#include <openssl/evp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* Contexts a lane has at most in each direction: 256 GiB of random access in our own format. */
#define LANE_CHUNKS 64
#define LANE_NO_CHUNK UINT64_MAX

enum direction { DECRYPT, ENCRYPT };

struct lane_context {
    uint64_t chunk; /* whose key it has */
    EVP_CIPHER_CTX *ctx;
};

struct lane {
    _Alignas(64) atomic_bool taken; /* a line of its own: neighbours are other threads' */
    struct lane_context contexts[2][LANE_CHUNKS];
    EVP_MD_CTX *hash;       /* of IVs and MAC keys */
    EVP_MAC_CTX *mac;       /* NULL when nothing is authenticated */
    unsigned char *scratch; /* lanes' scratch_each bytes */
    /* counters, written by the holder, read by anyone */
    atomic_ullong cipher_ns, enciphered, deciphered;
};

struct lanes {
    unsigned n;
    struct lane *lane;
    unsigned char *scratch; /* of all */
    size_t scratch_len;
    pthread_mutex_t lock; /* only for those who find every lane taken */
    pthread_cond_t dropped;
    atomic_uint n_waiting;
};

/* scratch_each may be 0. -ENOMEM. */
int lanes_init(struct lanes *ls, unsigned n, size_t scratch_each);
/* Fine on what lanes_init() left half-made. */
void lanes_done(struct lanes *ls);
/* Free all contexts, which cleanses them, and wipe the scratch. No lane may be taken. */
void lanes_forget(struct lanes *ls);

/* Waits while all are taken. */
struct lane *lane_take(struct lanes *ls);
void lane_drop(struct lanes *ls, struct lane *lane);
/* Only the holder of the lane adds to its counters. */
void lane_count(atomic_ullong *counter, uint64_t n);
