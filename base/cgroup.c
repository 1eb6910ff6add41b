/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/cgroup.h"

/* A limit of any group above ours holds too. Inside a container the path in /proc/self/cgroup may
 * be the host's and lead nowhere here; the walk upwards then ends at the root of what is mounted,
 * which is the container's own group. */

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct walk {
    const char *root;
    cgroup_fn *fn;
    void *arg;
};

/* group begins with a slash, mount is where its hierarchy's root is. */
static void walk_up(const struct walk *w, const char *mount, const char *group,
                    enum cgroup_version version)
{
    char folder[PATH_MAX];
    size_t top = strlen(w->root) + strlen(mount);

    if (snprintf(folder, sizeof(folder), "%s%s%s", w->root, mount, group) >= (int)sizeof(folder))
        return;
    for (char *end = folder + strlen(folder); end != NULL;
         end = strlen(folder) > top ? strrchr(folder, '/') : NULL) {
        *end = '\0';
        w->fn(folder, version, w->arg);
    }
}

/* Is controller one of those in a list like "cpu,cpuacct"? */
static int has_controller(const char *list, const char *controller)
{
    size_t len = strlen(controller);

    while (*list != '\0') {
        size_t n = strcspn(list, ",");

        if (n == len && strncmp(list, controller, len) == 0)
            return 1;
        list += n + (list[n] == ',');
    }
    return 0;
}

/* "0::GROUP" is version 2, "N:CONTROLLERS:GROUP" version 1. */
static void walk_line(const struct walk *w, char *line, const char *controller)
{
    char mount[64], *group = strstr(line, ":/"), *list = strchr(line, ':');

    line[strcspn(line, "\n")] = '\0';
    if (group == NULL)
        return;
    *group++ = '\0';
    if (strstr(group, "/..") != NULL) /* outside of what is mounted here */
        group[1] = '\0';
    if (strcmp(line, "0:") == 0) {
        walk_up(w, "/sys/fs/cgroup", group, CGROUP_V2);
        walk_up(w, "/sys/fs/cgroup/unified", group, CGROUP_V2);
    } else if (list < group && has_controller(list + 1, controller)) {
        snprintf(mount, sizeof(mount), "/sys/fs/cgroup/%s", controller);
        walk_up(w, mount, group, CGROUP_V1);
    }
}

void cgroup_each(const char *root, const char *controller, cgroup_fn *fn, void *arg)
{
    const struct walk w = {.root = root, .fn = fn, .arg = arg};
    char path[PATH_MAX], line[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL)
        walk_line(&w, line, controller);
    if (f != NULL)
        fclose(f);
}
