/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/cpus.h"

/* More threads than the quota pays for would be stopped all at once, in the middle of a request. */

#include "base/cgroup.h"

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>

/* One or two numbers at the start of a file; how many there were. */
static int read_numbers(const char *folder, const char *name, long long *first, long long *second)
{
    char path[PATH_MAX];
    FILE *f;
    int n;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return 0;
    f = fopen(path, "re");
    if (f == NULL)
        return 0;
    n = fscanf(f, "%lld %lld", first, second);
    fclose(f);
    return n;
}

static void take_quota(const char *folder, enum cgroup_version version, void *arg)
{
    unsigned *least = arg;
    long long quota = -1, period = 0, none;
    bool read;

    if (version == CGROUP_V2)
        read = read_numbers(folder, "cpu.max", &quota, &period) == 2; /* "max PERIOD": no limit */
    else
        read = read_numbers(folder, "cpu.cfs_quota_us", &quota, &none) >= 1 &&
               read_numbers(folder, "cpu.cfs_period_us", &period, &none) >= 1;
    if (read && quota > 0 && period > 0) {
        long long cpus = (quota + period - 1) / period;

        if (*least == 0 || cpus < *least)
            *least = (unsigned)cpus;
    }
}

unsigned cpus_quota(const char *root)
{
    unsigned least = 0;

    cgroup_each(root, "cpu", take_quota, &least);
    return least;
}

unsigned cpus_usable(void)
{
    cpu_set_t set;
    unsigned n = 1, quota = cpus_quota("");

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
        n = (unsigned)CPU_COUNT(&set);
    return quota > 0 && quota < n ? quota : n;
}
