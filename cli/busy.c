/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* The kernel does not tell who holds an OFD lock, so a mount of ours is found in the runtime
 * folders and anybody else stays unnamed. */

#include "base/auto.h"
#include "cli/holders.h"
#include "fuse/registry.h"

#include <errno.h>
#include <sys/stat.h>

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

int cmd_busy(const char *container, const char *header, pid_t holder, struct report *rep)
{
    char name[CMD_PROCESS_NAME];

    if (name_mount(container, rep) == -EBUSY)
        return -EBUSY;
    if (header != NULL && name_mount_of_header(header, rep) == -EBUSY)
        return -EBUSY;
    if (holder <= 0)
        return report_error(rep, EBUSY, "%s in use by another process or user",
                            header != NULL ? "it or its header is" : "it is");
    cmd_process_name(name, holder);
    return report_error(rep, EBUSY, "locked by process %d (%s)", (int)holder, name);
}
