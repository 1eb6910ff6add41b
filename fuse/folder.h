/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The runtime folders: where mounts are written down and their sockets live. A user has one of
 * $XDG_RUNTIME_DIR/hushvol, /run/user/UID/hushvol and /tmp/hushvol-UID; root has /run/hushvol. One
 * counts only when it is ours alone: owner, mode 0700, no symbolic link. */

#include "base/report.h"

#include <limits.h>
#include <sys/types.h>

struct serve_folder {
    char path[PATH_MAX];
    uid_t owner;
};

/* Open the folder at path if it is a real folder of this owner with mode 0700. Returns a
 * descriptor; -ENOENT, -EACCES; -EPERM it is there and somebody else's, open to others or a
 * symbolic link. */
int serve_folder_open(const char *path, uid_t owner);
/* The same for ours, made when it is missing. */
int serve_folder_make(const char *path);

/* The first that is there or can be made. -EPERM one is there and not ours (said). */
int serve_folder_own(struct serve_folder *ret, struct report *rep);
/* All folders that this user may look into, his own first; for root also those of the users. The
 * list is the caller's to free. -ENOMEM. */
int serve_folders(struct serve_folder **ret, unsigned *n);
