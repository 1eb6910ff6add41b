/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The control groups that limit this process: its own and all above it, of both versions. */

enum cgroup_version { CGROUP_V1 = 1, CGROUP_V2 = 2 };

/* Called for one group's folder; arg is cgroup_each's. */
typedef void cgroup_fn(const char *folder, enum cgroup_version version, void *arg);

/* Call fn for each group that this process is in, from its own up to the root of what is mounted:
 * version 2, and the version 1 hierarchy of controller ("memory"). A folder may not exist. root
 * stands before /proc and /sys ("" but for tests). Nothing is called where there are no cgroups. */
void cgroup_each(const char *root, const char *controller, cgroup_fn *fn, void *arg);
