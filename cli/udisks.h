/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* udisks2, a system service that sets up loop devices and mounts what is on them for users whom
 * polkit lets. It works on an image only where root may read it (-o allow_root). Nothing here asks
 * a person for a password.
 *
 * reason, where a function has it, holds REPORT_LINE bytes and gets what udisks2 said when it
 * failed (one line, not yet escaped): what follows from that is the caller's to say. */

#include "base/report.h"
#include "cli/loop.h"

#include <limits.h>

/* Is its command there, and does the service answer? -ENOENT not installed, -EOPNOTSUPP. */
int cmd_udisks_answers(char reason[REPORT_LINE]);
/* A loop device for spec, whose block_size is udisks2's to choose. -EOPNOTSUPP. */
int cmd_udisks_loop(char device[CMD_LOOP_NAME], const struct cmd_loop_spec *spec,
                    char reason[REPORT_LINE]);
/* Mount what is on it; where to is what udisks2 chooses. -EOPNOTSUPP. */
int cmd_udisks_mount(char point[PATH_MAX], const char *device, bool read_only,
                     char reason[REPORT_LINE]);
/* Unmount it, by force lazily. 0 also when it was not mounted; -EBUSY without words, -EIO said. */
int cmd_udisks_unmount(const char *device, bool force, struct report *rep);
/* Take the device down if its file is still image, as cmd_loop_detach(): -EBUSY in use, without
 * words; -EIO said. */
int cmd_udisks_delete(const char *device, const char *image, struct report *rep);
