/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* The kernel does not tell who holds an OFD lock, so a mount of ours is found in the runtime
 * folders and anybody else stays unnamed. */

#include "cli/holders.h"
#include "fuse/registry.h"

#include <errno.h>
#include <sys/stat.h>

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
    return report_error(rep, EBUSY,
                        "it is mounted at %s by process %d (\"hushvol umount %s\" ends that)",
                        found.record.mountpoint, (int)found.record.pid, found.record.name);
}

int cmd_busy(const char *container, pid_t holder, struct report *rep)
{
    char name[CMD_PROCESS_NAME];

    if (name_mount(container, rep) == -EBUSY)
        return -EBUSY;
    if (holder <= 0)
        return report_error(rep, EBUSY, "in use by another process or user");
    cmd_process_name(name, holder);
    return report_error(rep, EBUSY, "locked by process %d (%s)", (int)holder, name);
}
