/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* The kernel does not tell who holds an OFD lock, so a mount is found in the runtime folders, or
 * where those do not tell of it in the mount table; anybody else stays unnamed. */

#include "base/auto.h"
#include "cli/holders.h"
#include "fuse/mounts.h"
#include "fuse/registry.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int say_mount(const struct serve_found *f, const char *what, struct report *rep)
{
    return report_error(rep, EBUSY,
                        "%s mounted at %s by process %d (\"hushvol umount %s\" ends that)", what,
                        f->record.mountpoint, (int)f->record.pid, f->record.name);
}

/* -ENOENT it is none of our mounts, or none that we may see; else -EBUSY, and it has been said. */
static int name_mount(const char *container, struct report *rep)
{
    AUTO_FOUND struct serve_found found = {0};
    struct stat st;
    int r;

    if (stat(container, &st) < 0)
        return -ENOENT;
    r = serve_registry_find_container(&found, st.st_dev, st.st_ino);
    if (r < 0)
        return -ENOENT;
    return say_mount(&found, "it is", rep);
}

/* The same for the file of a header, which another container may be mounted with. */
static int name_mount_of_header(const char *header, struct report *rep)
{
    AUTO_FOUND struct serve_found found = {0};
    AUTO_FREE char *path = realpath(header, NULL);

    if (path == NULL || serve_registry_find_header(&found, path) < 0)
        return -ENOENT;
    return say_mount(&found, "the header is in use by the container that is", rep);
}

struct search {
    const char *container;
    char *point; /* owned */
};

static int look(const struct serve_mounted *m, void *arg)
{
    struct search *s = arg;

    if (strcmp(m->type, "fuse.hushvol") != 0 || strcmp(m->source, s->container) != 0)
        return 0;
    s->point = strdup(m->point);
    return 1;
}

/* A mount that no runtime folder tells about: another user's, or the folder was emptied (a login
 * that ended, a clean-up job). The kernel knows it still. As name_mount(). */
static int name_unrecorded(const char *container, struct report *rep)
{
    AUTO_FREE char *path = realpath(container, NULL);
    struct search s = {.container = path};
    struct serve_mount_id id;

    if (path != NULL)
        serve_mounts_each(look, &s);
    AUTO_FREE char *point = s.point;
    if (point == NULL || serve_mounts_at(&id, point) < 0)
        return -ENOENT;
    if (id.user_id != (long)geteuid())
        return report_error(rep, EBUSY, "it is mounted at %s by the user with uid %ld", point,
                            id.user_id);
    return report_error(rep, EBUSY,
                        "it is mounted at %s, but its entry in the runtime folder is gone (unmount "
                        "what is on it, then \"hushvol umount %s\")",
                        point, point);
}

int cmd_busy(const char *container, const char *header, pid_t holder, struct report *rep)
{
    char name[CMD_PROCESS_NAME];

    if (name_mount(container, rep) == -EBUSY)
        return -EBUSY;
    if (header != NULL && name_mount_of_header(header, rep) == -EBUSY)
        return -EBUSY;
    if (name_unrecorded(container, rep) == -EBUSY)
        return -EBUSY;
    if (holder <= 0)
        return report_error(rep, EBUSY, "%s in use by another process or user",
                            header != NULL ? "it or its header is" : "it is");
    cmd_process_name(name, holder);
    return report_error(rep, EBUSY, "locked by process %d (%s)", (int)holder, name);
}
