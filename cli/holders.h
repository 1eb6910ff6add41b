/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Who keeps a mount busy: processes that work in it or have files of it open, mounts below it, loop
 * devices on its files. As far as this user may look. */

#include "base/report.h"

#include <stdbool.h>
#include <sys/types.h>

/* What a process is called; "?" when nobody says. */
#define CMD_PROCESS_NAME 32
void cmd_process_name(char out[CMD_PROCESS_NAME], pid_t pid);

/* Those who shall not count: processes of this program, and this loop device; each may be NULL. */
struct cmd_holders_except {
    const char *program, *device;
};

/* Say "busy: process 123 (bash), ..." about the mount at this path; of this process itself only
 * when it is alone. Returns -EBUSY when something was said; 0 nobody was found. except may be NULL.
 */
int cmd_holders_say(const char *point, const struct cmd_holders_except *except, struct report *rep);
/* Does a process of this program have something of the mount open? */
bool cmd_holders_has(const char *point, const char *program);
/* Say "busy: ..." about the processes in other mount namespaces that still have this source
 * mounted: what was unmounted here is in use as long as theirs is. Those of server are none of
 * them, it ends its own mount. Returns -EBUSY when somebody was named, else 0. */
int cmd_holders_elsewhere(const char *source, pid_t server, struct report *rep);
/* Does this process live in another mount namespace than we? false where we may not look. */
bool cmd_holders_is_elsewhere(pid_t pid);
