/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* suspend --all. A volume whose container lies on the disk of another one writes to it as it is
 * suspended, and would wait for ever when that is suspended already: so the innermost comes first.
 */

#include "base/auto.h"
#include "cli/job.h"
#include "cli/loop.h"
#include "fuse/mounts.h"
#include "fuse/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

struct lies {
    const struct serve_found *inner;
    char image[PATH_MAX]; /* of the outer one */
    char device[PATH_MAX];
    bool found;
};

static bool is_below(const char *path, const char *folder)
{
    size_t len = folder != NULL ? strlen(folder) : 0;

    return len > 0 && strncmp(path, folder, len) == 0 && path[len] == '/';
}

static void look_at_loop(const char *device, const char *backing, void *arg)
{
    struct lies *l = arg;

    l->found = l->found || (strcmp(device, l->device) == 0 && strcmp(backing, l->image) == 0);
}

/* A file system that was mounted by hand, which no record tells: fuse2fs names the image, others a
 * loop device on it. */
static int look_at_mount(const struct serve_mounted *m, void *arg)
{
    struct lies *l = arg;

    if (makedev(m->major, m->minor) != l->inner->record.container_dev)
        return 0;
    l->found = strcmp(m->source, l->image) == 0;
    snprintf(l->device, sizeof(l->device), "%s", m->source);
    if (!l->found)
        cmd_loop_each(look_at_loop, l);
    return l->found;
}

/* Is inner's container on the disk of outer? A record is its user's word, which counts for his own
 * mounts only. */
static bool lies_on(const struct serve_found *inner, const struct serve_found *outer)
{
    const struct serve_record *in = &inner->record, *out = &outer->record;
    struct lies l = {.inner = inner};

    if (inner == outer ||
        (outer->folder.owner != inner->folder.owner && outer->folder.owner != geteuid()))
        return false;
    if (is_below(in->container, out->filesystem) || is_below(in->container, out->mountpoint))
        return true;
    snprintf(l.image, sizeof(l.image), "%s/image", out->mountpoint);
    serve_mounts_each(look_at_mount, &l);
    return l.found;
}

struct all {
    struct serve_found *list;
    unsigned n;
    bool *pending; /* of each */
};

/* One that nothing pending lies on; the first where records contradict each other. */
static struct serve_found *next(struct all *a)
{
    struct serve_found *first = NULL;

    for (unsigned i = 0; i < a->n; i++) {
        bool is_outer = false;

        if (!a->pending[i])
            continue;
        first = first != NULL ? first : &a->list[i];
        for (unsigned j = 0; j < a->n && !is_outer; j++)
            is_outer = a->pending[j] && lies_on(&a->list[j], &a->list[i]);
        if (!is_outer)
            return &a->list[i];
    }
    return first;
}

static int suspend_one(const struct all *a, const struct serve_found *f, struct report *rep)
{
    for (unsigned i = 0; i < a->n; i++)
        if (a->list[i].alive && a->list[i].record.suspended && lies_on(f, &a->list[i]))
            return report_error(rep, EBUSY,
                                "its container is on the disk of %s, which is suspended "
                                "(\"hushvol resume %s\" first)",
                                a->list[i].record.name, a->list[i].record.name);
    return cmd_suspend_mount(f, rep);
}

int cmd_suspend_all(struct report *rep)
{
    struct all a = {0};
    struct serve_found *f;
    int r = serve_registry_list(&a.list, &a.n), status = 0;
    AUTO_FREE bool *pending = r == 0 ? calloc(a.n + 1, sizeof(*pending)) : NULL;

    if (r < 0 || pending == NULL)
        return report_errno(rep, r < 0 ? -r : ENOMEM, "cannot read the runtime folders");
    a.pending = pending;
    for (unsigned i = 0; i < a.n; i++)
        pending[i] = a.list[i].alive && !a.list[i].record.suspended &&
                     (a.list[i].folder.owner == geteuid() || geteuid() == 0);
    while ((f = next(&a)) != NULL) {
        struct report about = *rep;

        about.which = f->record.name;
        r = suspend_one(&a, f, &about);
        status = r < 0 ? r : status;
        pending[f - a.list] = false;
    }
    serve_registry_list_done(a.list, a.n);
    return status;
}
