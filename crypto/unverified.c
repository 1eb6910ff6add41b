/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/unverified.h"

/* A few ranges are remembered and grow at their ends without a word: who reads on through a hole
 * that nobody ever wrote finds one sector after the other. New ones are all said at first, then
 * every power of two of them. */

#include "base/auto.h"
#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>

#define SAID_ALWAYS 16

void unverified_init(struct unverified *u, struct report *rep)
{
    *u = (struct unverified){.rep = rep};
    pthread_mutex_init(&u->lock, NULL);
}

void unverified_done(struct unverified *u)
{
    pthread_mutex_destroy(&u->lock);
}

/* Make the range known. Was it new? */
static bool remember(struct unverified *u, uint64_t off, uint64_t end)
{
    for (unsigned i = 0; i < UNVERIFIED_RANGES; i++) {
        uint64_t *at = &u->ranges[i].off, *to = &u->ranges[i].end;

        if (*to == 0 || off > *to || end < *at)
            continue;
        *at = off < *at ? off : *at;
        *to = end > *to ? end : *to;
        return false;
    }
    u->ranges[u->next].off = off;
    u->ranges[u->next].end = end;
    u->next = (u->next + 1) % UNVERIFIED_RANGES;
    u->n_found++;
    return true;
}

void unverified_found(struct unverified *u, uint64_t off, uint64_t end)
{
    HOLD(&u->lock);

    atomic_store(&u->any, true);
    if (!remember(u, off, end))
        return;
    if (u->n_found <= SAID_ALWAYS || bytes_is_power_of_two(u->n_found))
        report_error(u->rep, EBADMSG,
                     "bytes %" PRIu64 " to %" PRIu64
                     " of the disk do not verify: damaged, changed by somebody, or never written "
                     "(they cannot be read until whole sectors are written there; the rest can)",
                     off, end - 1);
    if (u->n_found == SAID_ALWAYS)
        report_error(
            u->rep, EBADMSG,
            "many places of the disk do not verify: not all of them are named from now on");
}

void unverified_mended(struct unverified *u, uint64_t off, uint64_t end)
{
    if (!atomic_load(&u->any)) /* as good as always, and then writes take no lock of all */
        return;
    HOLD(&u->lock);

    for (unsigned i = 0; i < UNVERIFIED_RANGES; i++)
        if (off < u->ranges[i].end && end > u->ranges[i].off)
            u->ranges[i].end = 0;
}
