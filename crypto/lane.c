/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/lane.h"

#include "base/auto.h"
#include "base/secret.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static _Thread_local unsigned lane_hint;

static struct lane *lane_try(struct lanes *ls)
{
    for (unsigned i = 0; i < ls->n; i++) {
        unsigned at = (lane_hint + i) % ls->n;

        if (!atomic_exchange(&ls->lane[at].taken, true)) {
            lane_hint = at;
            return &ls->lane[at];
        }
    }
    return NULL;
}

struct lane *lane_take(struct lanes *ls)
{
    struct lane *lane = lane_try(ls);

    if (lane != NULL)
        return lane;
    HOLD(&ls->lock);
    atomic_fetch_add(&ls->n_waiting, 1);
    while ((lane = lane_try(ls)) == NULL)
        pthread_cond_wait(&ls->dropped, &ls->lock);
    atomic_fetch_sub(&ls->n_waiting, 1);
    return lane;
}

/* Either this thread sees the waiter, or the waiter, who counted itself first, sees the free lane.
 */
void lane_drop(struct lanes *ls, struct lane *lane)
{
    atomic_store(&lane->taken, false);
    if (atomic_load(&ls->n_waiting) > 0) {
        HOLD(&ls->lock);
        pthread_cond_signal(&ls->dropped);
    }
}

/* Load and store serve where an addition would lock the bus. */
void lane_count(atomic_ullong *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

int lanes_init(struct lanes *ls, unsigned n, size_t scratch_each)
{
    pthread_mutex_init(&ls->lock, NULL);
    pthread_cond_init(&ls->dropped, NULL);
    ls->n = n;
    ls->lane = aligned_alloc(64, n * sizeof(struct lane));
    if (ls->lane == NULL)
        return -ENOMEM;
    memset(ls->lane, 0, n * sizeof(struct lane));
    ls->scratch_len = n * scratch_each;
    ls->scratch = calloc(1, ls->scratch_len > 0 ? ls->scratch_len : 1);
    if (ls->scratch == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        ls->lane[i].scratch = ls->scratch + i * scratch_each;
    lanes_forget(ls);
    return 0;
}

static void forget_context(struct lane_context *c)
{
    EVP_CIPHER_CTX_free(c->ctx); /* cleanses the schedule */
    *c = (struct lane_context){.chunk = LANE_NO_CHUNK};
}

static void forget_lane(struct lane *lane)
{
    assert(!atomic_load(&lane->taken));
    for (unsigned c = 0; c < LANE_CHUNKS; c++) {
        forget_context(&lane->contexts[ENCRYPT][c]);
        forget_context(&lane->contexts[DECRYPT][c]);
    }
    EVP_MD_CTX_free(lane->hash);
    EVP_MAC_CTX_free(lane->mac);
    lane->hash = NULL;
    lane->mac = NULL;
}

void lanes_forget(struct lanes *ls)
{
    for (unsigned i = 0; ls->lane != NULL && i < ls->n; i++)
        forget_lane(&ls->lane[i]);
    if (ls->scratch != NULL)
        secret_wipe(ls->scratch, ls->scratch_len);
}

void lanes_done(struct lanes *ls)
{
    lanes_forget(ls);
    free(ls->scratch);
    free(ls->lane);
    pthread_cond_destroy(&ls->dropped);
    pthread_mutex_destroy(&ls->lock);
}
