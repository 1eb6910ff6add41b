/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the user sees of work that may last, and the way out of it: Ctrl-C and SIGTERM are caught
 * and answered by the next progress_step(), so that the worker undoes what is half-made. A handler
 * that removed a file itself would race with the worker that gives it its name. */

#include "base/progress.h"

#include <signal.h>
#include <stdbool.h>

#define CMD_PROGRESS_SIGNALS 3

struct cmd_progress {
    struct progress progress; /* give this one away */
    const char *doing;        /* "create" */
    const char *phase;        /* "checking", or NULL */
    bool no_rate;             /* done and total are not bytes: may be set after the start */
    bool terminal, drawn;
    bool counting;  /* a step was heard, and it was at */
    uint64_t first; /* bytes: what somebody did before is no speed of ours */
    int64_t started_ms, drawn_ms;
    struct sigaction old[CMD_PROGRESS_SIGNALS];
};

/* One at a time in a process. */
void cmd_progress_start(struct cmd_progress *p, const char *doing);
/* Take the bar away and the signals as they were. r is how the work ended: when a caught signal
 * ended it (-EINTR), this process ends by that signal, as whoever sent it expects. Who has
 * something to say first, or to wipe, calls it twice: with 0 before that. */
void cmd_progress_end(struct cmd_progress *p, int r);
