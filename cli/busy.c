/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* The kernel does not tell who holds an OFD lock, so a mount of ours is found in the runtime
 * folders and anybody else stays unnamed. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void process_name(char *out, size_t size, pid_t pid)
{
    char path[64];
    FILE *f;

    snprintf(out, size, "?");
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return;
    if (fgets(out, (int)size, f) != NULL)
        out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

int cmd_busy(const char *container, pid_t holder, struct report *rep)
{
    char name[32];

    (void)container;
    if (holder <= 0)
        return report_error(rep, EBUSY, "it is in use by another process or user");
    process_name(name, sizeof(name), holder);
    return report_error(rep, EBUSY, "it is in use by process %d (%s)", (int)holder, name);
}
