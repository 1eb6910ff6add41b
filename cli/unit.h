/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A volume in the user's own service manager: the unit hushvol@NAME.service runs "hushvol mount
 * --from-login NAME", and so the volume ends with that manager and not with the session that opened
 * it. Who starts the unit and what runs in it meet in the runtime folder, at two FIFOs: one through
 * which the passphrase goes, as a line, and one through which the unit's words come back. */

#include "base/report.h"
#include "base/secret.h"
#include "conf/config.h"
#include "fuse/record.h"

#define CMD_UNIT_LOGIN "%s.login"
#define CMD_UNIT_SAID "%s.said"
#define CMD_UNIT_FIFO_MAX (SERVE_NAME_MAX + 8)

/* Start v, which is not mounted, in its unit, and wait until it is there. passphrase is a line
 * without its newline; NULL: v has what its configuration says. What the unit says comes out on
 * stderr. 1 it is mounted; 0 there is no manager that could, or its unit would see another
 * configuration: nothing was done; -EIO it failed, said. */
int cmd_unit_start(const struct conf_volume *v, const struct secret *passphrase,
                   struct report *rep);

/* "hushvol mount" with --from-login among its words: what runs in a unit. */
int cmd_run_from_login(int argc, char **argv);
