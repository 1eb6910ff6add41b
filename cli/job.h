/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Work that the process which serves a volume does for a command (fuse/job.h). */

#include "base/report.h"
#include "fuse/registry.h"

struct json_object;

/* How a mount is now. */
struct cmd_served {
    bool suspended;
    bool cache;          /* the kernel caches pages of the image */
    bool waits_for_room; /* some writes do */
};
/* The mount that a user means, whose process answers. -ENOENT none; -ESRCH its process died; as
 * serve_control_ask. All said. */
int cmd_find_served(struct serve_found *ret, struct cmd_served *now, const char *word,
                    struct report *rep);
/* The second half of it, for a mount that was found: its process died, -ESRCH; does not answer, as
 * serve_control_ask(); all said. */
int cmd_ask_served(struct cmd_served *now, const struct serve_found *f, struct report *rep);

/* Wipe the keys of a mounted volume, after what is above it and it itself were written. Fine for
 * one that is suspended. -EBUSY writes wait for room; else as cmd_job_run(). */
int cmd_suspend_mount(const struct serve_found *f, struct report *rep);

struct cmd_job {
    const char *word;         /* the request that starts it */
    struct json_object *more; /* what else is in the request, or NULL; put */
    int fd;                   /* sent along, or -1; stays the caller's */
    const char *doing;        /* "resize", for the progress bar */
};

/* Start the job and wait for its end, with a bar when it lasts; Ctrl-C cancels it. Its words go to
 * rep. Returns what it returned, or as serve_control_ask. */
int cmd_job_run(const struct serve_found *f, const struct cmd_job *job, struct report *rep);
