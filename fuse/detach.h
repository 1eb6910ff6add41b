/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How a daemon parts from the command that started it: the command waits until the daemon has said
 * whether it works, and only then returns to the shell. */

#include "base/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct serve_detach {
    bool is_command; /* this is the waiting process */
    pid_t daemon;    /* the command's: its child */
    int pipe;        /* the daemon writes, the command reads; -1: nobody waits (foreground) */
    int *inherited;  /* owned: descriptors that were open before, the first three apart */
    unsigned n_inherited;
};

/* With background, fork: both processes return. A command that dies takes the daemon along until
 * serve_detach_leave(). -errno, said. */
int serve_detach_start(struct serve_detach *d, bool background, struct report *rep);
void serve_detach_done(struct serve_detach *d);

/* The command's side: wait for the daemon's word. Ctrl-C is the daemon's to handle meanwhile.
 * Returns what serve_detach_tell() was given and fills word when that is 0; -EINTR, -EIO (said)
 * when the daemon ended without a word. */
int serve_detach_wait(struct serve_detach *d, void *word, size_t len, struct report *rep);

/* The daemon's side. Does nothing when nobody waits. */
void serve_detach_tell(struct serve_detach *d, int r, const void *word, size_t len);
/* Close what was inherited, and in the background leave the terminal, the session and the current
 * folder. */
void serve_detach_leave(struct serve_detach *d);
