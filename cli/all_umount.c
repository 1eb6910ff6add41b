/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* umount --all and --login. A container can be in the file system of another volume, which is busy
 * until it is gone: so all that are busy are tried again as long as some go, and after that for as
 * long as the caller wants to wait. Only then is it said what keeps them busy. */

#include "base/auto.h"
#include "base/report_held.h"
#include "cli/teardown.h"
#include "cli/tries.h"
#include "fuse/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct down {
    const struct serve_found *found;
    struct report about;
    struct report_held held; /* why it did not go, the last time */
    int r;                   /* -EBUSY: to be tried; else it is over */
};

struct mounts {
    struct serve_found *list;
    unsigned n;
    struct down *down; /* of each */
};

static void mounts_done(struct mounts *m)
{
    serve_registry_list_done(m->list, m->n);
    free(m->down);
}
#define AUTO_MOUNTS __attribute__((cleanup(mounts_done)))

static int list_mounts(struct mounts *m, struct report *rep)
{
    int r = serve_registry_list(&m->list, &m->n);

    m->down = r == 0 ? calloc(m->n + 1, sizeof(*m->down)) : NULL;
    if (m->down == NULL)
        return report_errno(rep, r < 0 ? -r : ENOMEM, "cannot read the runtime folders");
    for (unsigned i = 0; i < m->n; i++) {
        struct down *d = &m->down[i];

        d->found = &m->list[i];
        d->about = *rep;
        d->about.which = d->found->record.name;
        report_held_init(&d->held, &d->about);
    }
    return 0;
}

/* Is f a mount of the volume, whatever it is called? Where the container cannot be looked at, since
 * what it lies in has died, the names tell. */
static bool is_of(const struct serve_found *f, const struct cmd_volume *v)
{
    const struct serve_record *rec = &f->record;
    const char *container = v->said->container;
    char path[PATH_MAX];
    struct stat st;

    if (f->folder.owner != geteuid())
        return false;
    if (realpath(container, path) == NULL || stat(path, &st) < 0)
        return strcmp(rec->container, container) == 0 ||
               (strcmp(rec->name, v->said->name) == 0 && stat(rec->container, &st) < 0);
    return strcmp(rec->container, path) == 0 ||
           (f->alive && rec->container_dev == st.st_dev && rec->container_ino == st.st_ino);
}

static bool is_mounted(const struct mounts *m, const struct cmd_volume *v)
{
    for (unsigned i = 0; i < m->n; i++)
        if (is_of(&m->list[i], v))
            return true;
    return false;
}

/* Is v there for volumes that go now, and for none that stays? */
static bool goes_along(const struct cmd_volumes *all, const struct cmd_volume *v,
                       const struct mounts *m)
{
    bool goes = false;

    for (unsigned i = 0; i < all->n; i++) {
        const struct cmd_volume *w = &all->list[i];

        if (cmd_volumes_before(all, w) != v)
            continue;
        if (!w->chosen && is_mounted(m, w))
            return false;
        goes = goes || w->chosen;
    }
    return goes;
}

/* What a mount --login has mounted only because another volume comes after it goes with that. */
static void choose_what_goes_along(struct cmd_volumes *all, const struct mounts *m)
{
    bool more = true;

    while (more) {
        more = false;
        for (unsigned i = 0; i < all->n; i++) {
            struct cmd_volume *v = &all->list[i];

            if (v->ours && !v->chosen && goes_along(all, v, m))
                v->chosen = more = true;
        }
    }
}

static int choose(struct mounts *m, const struct cmd_which *w, struct report *rep)
{
    AUTO_VOLUMES struct cmd_volumes all = {0};
    int r = cmd_volumes_choose(&all, w, rep);

    if (r < 0)
        return r;
    choose_what_goes_along(&all, m);
    for (unsigned i = 0; i < all.n; i++)
        for (unsigned j = 0; all.list[i].chosen && j < m->n; j++)
            if (is_of(&m->list[j], &all.list[i]))
                m->down[j].r = -EBUSY;
    return 0;
}

/* Every mount of ours, configured or not, or those whose name is among the words: this needs no
 * configuration. */
static void choose_all(struct mounts *m, const char *names)
{
    for (unsigned i = 0; i < m->n; i++)
        if (m->list[i].folder.owner == geteuid() &&
            (names == NULL || cmd_which_names(names, m->list[i].record.name)))
            m->down[i].r = -EBUSY;
}

static void try_one(struct down *d, bool force)
{
    report_held_forget(&d->held);
    d->r = d->found->alive ? cmd_teardown(d->found, force, &d->held.rep)
                           : cmd_teardown_dead(d->found, &d->held.rep);
    if (d->r != -EBUSY)
        report_held_say(&d->held);
}

/* How many are over by it. */
static unsigned try_busy(struct mounts *m)
{
    unsigned n = 0;

    for (unsigned i = 0; i < m->n; i++)
        if (m->down[i].r == -EBUSY) {
            try_one(&m->down[i], false);
            n += m->down[i].r != -EBUSY;
        }
    return n;
}

static bool is_any_busy(const struct mounts *m)
{
    for (unsigned i = 0; i < m->n; i++)
        if (m->down[i].r == -EBUSY)
            return true;
    return false;
}

static int take_down(struct mounts *m, unsigned timeout_s, bool force)
{
    struct cmd_tries tries;
    int status = 0;

    cmd_tries_start(&tries, timeout_s);
    do {
        while (try_busy(m) > 0)
            ;
    } while (is_any_busy(m) && cmd_tries_again(&tries));
    for (unsigned i = 0; i < m->n; i++) {
        struct down *d = &m->down[i];

        if (d->r == -EBUSY && force)
            try_one(d, true);
        report_held_say(&d->held);
        if (d->r < 0)
            status = d->r;
    }
    return status;
}

static bool is_unreadable(int r)
{
    return r == -EUCLEAN || r == -EACCES || r == -EIO;
}

int cmd_umount_all(const struct cmd_umount_all *how, struct report *rep)
{
    /* Where nothing can be written about a turn, volumes are closed all the same. */
    AUTO_FD int turn __attribute__((unused)) = cmd_all_turn(NULL);
    AUTO_MOUNTS struct mounts m = {0};
    const struct cmd_which *w = &how->which;
    int chosen = 0, r = list_mounts(&m, rep);

    if (r < 0)
        return r;
    if (w->all && w->volumes == NULL)
        choose_all(&m, NULL);
    else
        chosen = choose(&m, w, rep);
    if (is_unreadable(chosen) &&
        w->login) { /* a volume left open is worse than one too many closed */
        report_warn(rep, "which volumes are for logins is not known, so all that are mounted go");
        choose_all(&m, w->volumes);
    } else if (chosen < 0) {
        return chosen;
    }
    r = take_down(&m, how->timeout_s, how->force);
    return r < 0 ? r : chosen;
}
