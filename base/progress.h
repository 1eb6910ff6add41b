/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* For work that may last: how far it is, and whether to go on. Whoever works calls progress_step()
 * between pieces that take well under a second; a command draws a bar from it and answers with what
 * the user wants. A NULL progress always goes on. */

#include <stddef.h>
#include <stdint.h>

struct progress {
    /* done of total bytes. 0: go on; -EINTR: undo what is half-made and return that. */
    int (*step)(struct progress *p, uint64_t done, uint64_t total);
    /* From here on it is something else, counted anew: "checking". May be NULL. */
    void (*phase)(struct progress *p, const char *doing);
};

static inline int progress_step(struct progress *p, uint64_t done, uint64_t total)
{
    return p == NULL ? 0 : p->step(p, done, total);
}

/* doing must live as long as the work. */
static inline void progress_phase(struct progress *p, const char *doing)
{
    if (p != NULL && p->phase != NULL)
        p->phase(p, doing);
}
