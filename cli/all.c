/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* Each mount is a command of its own: a mount ends in a process that serves it, and must find
 * nothing of the others in its memory. */

#include "base/auto.h"
#include "base/run.h"
#include "cli/named.h"
#include "cli/teardown.h"
#include "conf/files.h"
#include "fuse/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum fate { OPEN, DONE, FAILED };

struct all {
    const struct conf *conf;
    enum fate *fate; /* of each volume, by its place in conf */
    struct report *rep;
};

static bool is_mounted(const struct conf_volume *v)
{
    AUTO_FOUND struct serve_found f = {0};
    char path[PATH_MAX];

    return realpath(v->container, path) != NULL && serve_registry_find(&f, path) == 0 && f.alive &&
           f.folder.owner == geteuid();
}

static enum fate mount_one(const struct all *a, const struct conf_volume *v)
{
    const char *const argv[] = {RUN_SELF, "mount", v->name, NULL};

    if (is_mounted(v))
        return DONE;
    return run_wait(argv, RUN_SHOW, a->rep) == 0 ? DONE : FAILED;
}

static unsigned place_of(const struct conf *c, const struct conf_volume *v)
{
    unsigned i = 0;

    while (conf_volume(c, i) != v)
        i++;
    return i;
}

/* The chain of after has no circle (conf_settle). What it leads to is mounted too, even when that
 * alone would not be. */
static enum fate mount_in_order(const struct all *a, unsigned i)
{
    const struct conf_volume *v = conf_volume(a->conf, i);

    if (a->fate[i] != OPEN)
        return a->fate[i];
    if (v->after != NULL &&
        mount_in_order(a, place_of(a->conf, conf_find(a->conf, v->after))) == FAILED) {
        report_error(a->rep, EIO, "%s was left out: it comes after %s, which failed", v->name,
                     v->after);
        a->fate[i] = FAILED;
    } else {
        a->fate[i] = mount_one(a, v);
    }
    return a->fate[i];
}

int cmd_mount_all(bool login_only, struct report *rep)
{
    struct all a = {.rep = rep};
    AUTO_FREE enum fate *fate = NULL;
    const struct conf_volume *v;
    struct conf *c = NULL;
    unsigned n = 0;
    int r = conf_read(&c, rep);

    if (r < 0)
        return r;
    while (conf_volume(c, n) != NULL)
        n++;
    a.conf = c;
    a.fate = fate = calloc(n + 1, sizeof(*fate));
    if (fate == NULL)
        r = report_errno(rep, ENOMEM, "cannot mount all volumes");
    for (unsigned i = 0; fate != NULL && (v = conf_volume(c, i)) != NULL; i++)
        if (cmd_named_is_ours(v) && (v->login || !login_only) && mount_in_order(&a, i) == FAILED)
            r = -EIO;
    conf_free(c);
    return r;
}

static int take_down(const struct serve_found *f, bool force, struct report *rep)
{
    return f->alive ? cmd_teardown(f, force, rep) : cmd_teardown_dead(f, rep);
}

/* A container can be in the file system of another volume, which is busy until it is gone. So it is
 * tried in silence as long as some go; what is left then is tried once more, and says why not. */
int cmd_umount_all(bool force, struct report *rep)
{
    struct serve_found *list;
    unsigned n, gone = 1;
    int r = serve_registry_list(&list, &n), status = 0;
    AUTO_FREE bool *done = r == 0 ? calloc(n + 1, sizeof(*done)) : NULL;

    if (r < 0 || done == NULL)
        return report_errno(rep, r < 0 ? -r : ENOMEM, "cannot read the runtime folders");
    for (unsigned i = 0; i < n; i++)
        done[i] = list[i].folder.owner != geteuid();
    while (gone > 0) {
        gone = 0;
        for (unsigned i = 0; i < n; i++)
            if (!done[i] && take_down(&list[i], false, NULL) == 0) {
                done[i] = true;
                gone++;
            }
    }
    for (unsigned i = 0; i < n; i++) {
        struct report about = *rep;

        about.which = list[i].record.name;
        r = done[i] ? 0 : take_down(&list[i], force, &about);
        if (r < 0)
            status = r;
    }
    serve_registry_list_done(list, n);
    return status;
}
