/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"

#include <stdbool.h>

/* Unmount the FUSE file system at this path: as root with umount2(2), else with fusermount3, which
 * asks whether it is the caller's. lazy: hide it now, it ends when nobody uses it any more. Says
 * nothing when it is busy. -EBUSY, -ENOENT nothing is mounted there, -EPERM (not the user's, or
 * another mount took its place), -EIO. */
int serve_unmount(const char *point, bool lazy, struct report *rep);
