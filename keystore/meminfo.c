/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/meminfo.h"

/* Whoever goes over a cgroup's limit is killed, so the limit counts as much as the machine's
 * memory. Page cache that was charged to the cgroup is given back first and counts as free. */

#include "base/auto.h"
#include "base/cgroup.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The files of one version of cgroups. */
struct cgroup_files {
    const char *limit, *used;
    const char *cache[2]; /* lines of memory.stat that count pages the kernel can drop */
};

static const struct cgroup_files version_2 = {
    .limit = "memory.max",
    .used = "memory.current",
    .cache = {"inactive_file ", "active_file "},
};

static const struct cgroup_files version_1 = {
    .limit = "memory.limit_in_bytes",
    .used = "memory.usage_in_bytes",
    .cache = {"total_inactive_file ", "total_active_file "},
};

static void close_file(FILE **f)
{
    if (*f != NULL)
        fclose(*f);
}
#define AUTO_FILE __attribute__((cleanup(close_file)))

/* The number behind key at the start of a line of the file ("" : of its first line). */
static bool read_number(const char *path, const char *key, uint64_t *ret)
{
    AUTO_FILE FILE *f = fopen(path, "re");
    char line[256];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            return sscanf(line + strlen(key), "%" SCNu64, ret) == 1;
    return false;
}

/* What the limit of the group in folder leaves; a group without one leaves everything. */
static uint64_t group_leaves(const struct cgroup_files *v, const char *folder)
{
    char path[PATH_MAX];
    uint64_t limit, used = 0, cache;

    snprintf(path, sizeof(path), "%s/%s", folder, v->limit);
    if (!read_number(path, "", &limit))
        return UINT64_MAX;
    snprintf(path, sizeof(path), "%s/%s", folder, v->used);
    read_number(path, "", &used);
    snprintf(path, sizeof(path), "%s/memory.stat", folder);
    for (unsigned i = 0; i < 2; i++)
        if (read_number(path, v->cache[i], &cache))
            used = used > cache ? used - cache : 0;
    return limit > used ? limit - used : 0;
}

static void take_least(const char *folder, enum cgroup_version version, void *arg)
{
    uint64_t *least = arg;
    uint64_t leaves = group_leaves(version == CGROUP_V2 ? &version_2 : &version_1, folder);

    *least = leaves < *least ? leaves : *least;
}

uint64_t meminfo_available(const char *root)
{
    char path[PATH_MAX];
    uint64_t least;

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (read_number(path, "MemAvailable:", &least))
        least *= 1024;
    else
        least = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    cgroup_each(root, "memory", take_least, &least);
    return least;
}
