/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The FUSE front: DIR/image is the disk, DIR/stats the counters. A request is one call into the top
 * of the volume's stack. */

#include "base/report.h"
#include "volume/volume.h"

#include <sys/types.h>

struct serve_spec {
    const char *name;       /* of the volume */
    const char *mountpoint; /* absolute */
    bool allow_other, allow_root;
    bool cache;   /* let the kernel cache pages; default is direct I/O */
    uid_t uid;    /* owner of the files; (uid_t)-1: the caller */
    gid_t gid;    /* (gid_t)-1: the caller's */
    mode_t mode;  /* of image; (mode_t)-1: 0600, 0400 when read-only */
};

struct serve; /* one mounted session */

/* Mount with default_permissions,nosuid,nodev and what spec says. vol and spec are borrowed.
 * -EACCES, -EPERM, -ENOENT, -ENOSYS no /dev/fuse here (says what to do: hushvol doctor). */
int serve_mount(struct serve **ret, struct volume *vol, const struct serve_spec *spec,
                struct report *rep);
/* Answer requests until the file system is unmounted or serve_stop(). */
int serve_loop(struct serve *s);
/* End the loop soon: from any thread, also from a signal handler's thread. */
void serve_stop(struct serve *s);
/* Unmount if still mounted, release. NULL is fine. */
void serve_close(struct serve *s);
/* How often image is open now. */
unsigned serve_opens(struct serve *s);
