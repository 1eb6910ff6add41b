/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* CPUs that this process may keep busy: its affinity mask, or what the quota of its cgroups comes
 * to if that is less, rounded up; at least 1. */
unsigned cpus_usable(void);

/* The quota alone, in whole CPUs; 0 when there is none. root as in cgroup_each(). */
unsigned cpus_quota(const char *root);
