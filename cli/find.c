/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/find.h"

#include "cli/named.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

static int find(struct serve_found *ret, const char *word, struct report *rep)
{
    int r = serve_registry_find(ret, word);

    return r < 0 && r != -ENOENT ? report_errno(rep, -r, "cannot read the runtime folders") : r;
}

int cmd_find_mount(struct serve_found *ret, const char *word, struct report *rep)
{
    const struct conf_volume *v;
    char path[PATH_MAX];
    int r = find(ret, word, rep);

    if (r != -ENOENT)
        return r;
    r = cmd_named(&v, word, rep);
    if (r < 0)
        return r;
    return r > 0 && realpath(v->container, path) != NULL ? find(ret, path, rep) : -ENOENT;
}

int cmd_find_mounted(struct serve_found *ret, const char *word, struct report *rep)
{
    int r = cmd_find_mount(ret, word, rep);

    if (r == -ENOENT)
        return report_error(rep, ENOENT, "nothing of that name, folder or container is mounted");
    return r;
}
