/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The guard: a small process beside the daemon that can still unmount when the daemon no longer may
 * (a process without new privileges cannot run the setuid fusermount3) or no longer can (kill -9).
 * Without it a dead daemon would leave a mount point at which every call fails. */

#include "base/report.h"

struct serve_guard;

/* Start it: before any key is read, while this process has one thread. -errno. */
int serve_guard_start(struct serve_guard **ret, struct report *rep);
/* Tell it what is mounted at this path now; that mount, and no later one there, it takes down at
 * our end. */
int serve_guard_watch(struct serve_guard *g, const char *mountpoint, struct report *rep);
/* Unmount now. 0 done, 1 done lazily because it is busy, -errno. */
int serve_guard_unmount(struct serve_guard *g);
/* Let it end and wait for that; a mount that is still there goes, lazily. NULL is fine. */
void serve_guard_done(struct serve_guard *g);
