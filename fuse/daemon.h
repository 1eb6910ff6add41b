/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The life of a mount, from the fork to the last flush. */

#include "base/report.h"
#include "fuse/record.h"
#include "fuse/serve.h"
#include "volume/volume.h"

#include <limits.h>

struct serve_daemon_spec {
    struct vol_spec vol;     /* container, header: absolute, as users are to see them */
    struct serve_spec serve; /* name NULL: from the container; mountpoint NULL: <runtime>/mnt/NAME,
                                made, and removed at the end; source is filled in */
    bool foreground;
    int broker; /* of fuse/broker.h, for what we may not do ourselves; 0: we mount */
    /* Say who holds the container, or vol.header, when vol_open() finds it locked; returns -EBUSY.
     */
    int (*busy)(const char *container, const char *header, pid_t holder, struct report *rep);
};

struct serve_daemon_result {
    char name[SERVE_NAME_MAX + 1];
    char mountpoint[PATH_MAX];
};

/* Called in the user's process once the mount is usable; may be NULL. */
typedef void serve_daemon_ready(const struct serve_daemon_result *result, void *arg);

/* Mount and serve. In the background the caller gets 0, or what made the mount fail, which was said
 * on its report already. *in_daemon tells that this is the daemon's process at its end: leave
 * main() with the status, at once. In the foreground that is the only process. */
int serve_daemon(const struct serve_daemon_spec *spec, serve_daemon_ready *ready, void *arg,
                 bool *in_daemon, struct report *rep);
