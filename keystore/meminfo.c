/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/meminfo.h"

/* Whoever goes over a cgroup's limit is killed, so the limit counts as much as the machine's
 * memory. Page cache that was charged to the cgroup is given back first and counts as free. A limit
 * of any group above ours holds too. Inside a container the path in /proc/self/cgroup may be the
 * host's and lead nowhere here; the walk upwards then ends at the root of what is mounted, which is
 * the container's own group. */

#include "base/auto.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The files of one version of cgroups. */
struct cgroup_files {
    const char *mounts[2]; /* where it may be */
    const char *limit, *used;
    const char *cache[2]; /* lines of memory.stat that count pages the kernel can drop */
};

static const struct cgroup_files version_2 = {
    .mounts = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
    .limit = "memory.max",
    .used = "memory.current",
    .cache = {"inactive_file ", "active_file "},
};

static const struct cgroup_files version_1 = {
    .mounts = {"/sys/fs/cgroup/memory", NULL},
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

/* The least that our group and those above it leave. group begins with a slash. */
static uint64_t groups_leave(const struct cgroup_files *v, const char *root, const char *group)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < 2 && v->mounts[i] != NULL; i++) {
        char folder[PATH_MAX];
        size_t top = strlen(root) + strlen(v->mounts[i]);

        if (snprintf(folder, sizeof(folder), "%s%s%s", root, v->mounts[i], group) >=
            (int)sizeof(folder))
            continue;
        for (char *end = folder + strlen(folder); end != NULL;
             end = strlen(folder) > top ? strrchr(folder, '/') : NULL) {
            uint64_t leaves;

            *end = '\0';
            leaves = group_leaves(v, folder);
            least = leaves < least ? leaves : least;
        }
    }
    return least;
}

/* A line of /proc/self/cgroup: "0::GROUP" is version 2, "N:memory:GROUP" version 1. */
static uint64_t line_leaves(const char *root, char *line)
{
    char *group = strstr(line, ":/"), *controllers = strchr(line, ':');

    line[strcspn(line, "\n")] = '\0';
    if (group == NULL)
        return UINT64_MAX;
    *group++ = '\0';
    if (strstr(group, "/..") != NULL) /* outside of what is mounted here */
        group[1] = '\0';
    if (strcmp(line, "0:") == 0)
        return groups_leave(&version_2, root, group);
    if (controllers < group && strcmp(controllers, ":memory") == 0)
        return groups_leave(&version_1, root, group);
    return UINT64_MAX;
}

uint64_t meminfo_available(const char *root)
{
    char path[PATH_MAX], line[PATH_MAX];
    uint64_t least;

    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (read_number(path, "MemAvailable:", &least))
        least *= 1024;
    else
        least = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    AUTO_FILE FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        uint64_t leaves = line_leaves(root, line);

        least = leaves < least ? leaves : least;
    }
    return least;
}
