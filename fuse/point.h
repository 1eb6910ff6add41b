/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A mount point as root may use it for a user. */

#include "base/report.h"
#include "fuse/become.h"

/* Open the folder at this absolute path with the user's permissions and without following a
 * symbolic link, and check that it is his to hide: his own, writable by him, and in a file system
 * that keeps files. granted is the path that root itself gave, or NULL: there an automount that
 * waits for its mount will do as well. Returns an O_PATH descriptor, which is what was checked
 * whatever the path leads to afterwards. -EPERM, -ENOTDIR, -ENOENT, -EACCES, -ELOOP, said;
 * -ENOTRECOVERABLE we could not become root again: end. */
int serve_point_open(const char *path, const struct serve_become *user, const char *granted,
                     struct report *rep);
