/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The gate before the volume. Open, a request passes it at the cost of two additions on a cache
 * line of its thread. Shut, requests are kept in their order, not answered and not started, and who
 * shut it waits until those that passed before have ended. Knows nothing of FUSE: a request is
 * something of the caller's that has a struct serve_held in it. */

#include <stdbool.h>
#include <stddef.h>

struct serve_hold;

/* Bytes that kept requests may carry, all together. Requests of the kernel's own, as a loop device
 * sends them, are 24 MiB at most (SERVE_BACKGROUND); only programs that write in parallel get
 * further. */
#define SERVE_HOLD_BYTES ((size_t)256 * 1024 * 1024)

/* In a request that can be kept. The caller sets bytes; the rest is the gate's, zeroed at first. */
struct serve_held {
    size_t bytes; /* of memory that it takes up while it is kept */
    struct serve_held *before, *after;
    bool kept, interrupted;
};

/* -ENOMEM. */
int serve_hold_open(struct serve_hold **ret);
/* Nobody may be inside and nothing kept. NULL is fine. */
void serve_hold_close(struct serve_hold *h);

/* For each request, from many threads. 0: go on, and leave afterwards; -EAGAIN: shut, keep it; any
 * other: answer that. */
int serve_hold_enter(struct serve_hold *h);
void serve_hold_leave(struct serve_hold *h);
/* Keep a request. 0: it is the gate's now, until take or next hand it out, perhaps at once.
 * -EAGAIN the gate is open again: enter; -EINTR it was interrupted; -ENOMEM too much is kept. */
int serve_hold_keep(struct serve_hold *h, struct serve_held *r);
/* It was interrupted. true: it was kept and is the caller's to answer; false: somebody else has it,
 * who hears of this if he wants to keep it. */
bool serve_hold_take(struct serve_hold *h, struct serve_held *r);

/* From here on requests are kept. */
void serve_hold_shut(struct serve_hold *h);
bool serve_hold_is_shut(struct serve_hold *h);
/* Have all ended that passed the gate before it was shut? Waits for that, so long at most. */
bool serve_hold_wait(struct serve_hold *h, unsigned ms);
/* Let them pass again; or fail them from now on, for good, with err (negative). */
void serve_hold_lift(struct serve_hold *h);
void serve_hold_fail(struct serve_hold *h, int err);
/* After lift or fail: the request that has been kept longest, to enter again. NULL: there is none,
 * or the gate is shut. From many threads. */
struct serve_held *serve_hold_next(struct serve_hold *h);
/* How many are kept. */
unsigned serve_hold_kept(struct serve_hold *h);
