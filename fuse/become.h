/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From root to a user: for good, or for one look at his files. For processes with one thread. */

#include "base/report.h"

#include <stdbool.h>
#include <sys/types.h>

struct serve_become {
    uid_t uid;
    gid_t gid;
    char *name, *home, *shell;
    gid_t *groups; /* all that he is in */
    int n_groups;
};
/* Look him up in the system's lists of users and groups. -ENOENT no such user (said). */
int serve_become_find(struct serve_become *ret, const char *name, struct report *rep);
/* Fine on a zeroed struct. */
void serve_become_done(struct serve_become *b);
#define AUTO_BECOME __attribute__((cleanup(serve_become_done)))

/* This process is his from here on, without a way back: ids, groups, no capability (looked at
 * afterwards), no core dumps, nothing of root's environment or keyrings; neither it nor what it
 * starts can type into root's terminal. Said when it fails, and then the process must end. */
int serve_become(const struct serve_become *b, struct report *rep);

/* Look at files with his permissions, and no longer. -errno; when end fails the process must end.
 */
int serve_become_begin(const struct serve_become *b);
int serve_become_end(void);
