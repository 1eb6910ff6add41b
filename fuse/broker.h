/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Root mounts for a user. The user's process does everything and is refused one thing by the
 * kernel, the mount itself; root's process waits beside it and does that alone, once. */

#include "base/report.h"

#include <stdbool.h>

struct serve_broker_spec {
    const char *user;  /* not root */
    const char *point; /* the mount point as root's words have it, or NULL */
    bool allow_other;  /* may be asked for */
    bool foreground;   /* the mount shall be gone when the user's process ends */
};

/* Fork, before anything of the user's is touched. In the user's process, which is his for good
 * (fuse/become.h): 0, and *broker is what serve_broker_ask() takes, open until the process closes
 * it. In root's, which passes SIGTERM, SIGINT, SIGHUP and SIGQUIT on: 1 when the other has ended,
 * with its status as of waitpid(2). -ENOENT no such user, -errno; said, in one of the two. */
int serve_broker_start(const struct serve_broker_spec *spec, int *broker, int *status,
                       struct report *rep);

struct serve_broker_mount {
    const char *point, *source; /* absolute, without symbolic links; what the mount table names */
    bool read_only, allow_other;
};
/* Have it mounted with the user's ids, as serve_mount() does. Returns the descriptor of /dev/fuse
 * to serve it by. -EPERM and as serve_point_open(), -EOPNOTSUPP no FUSE here: root's process has
 * said why; -EPIPE it is gone (said). */
int serve_broker_ask(int broker, const struct serve_broker_mount *m, struct report *rep);
