/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Every volume at once: mount --all, mount --login, umount --all. */

#include "base/report.h"

#include <stdbool.h>

/* Mount the caller's volumes of the configuration files, or with login_only those that say login =
 * yes, each after the one that it names by after. What is mounted already is left as it is; what
 * fails is said and stops only those after it. -EIO some failed; else as conf_read(). */
int cmd_mount_all(bool login_only, struct report *rep);
/* Take down every mount of the caller, those that keep others busy first. 0, or what the last
 * failed with; all said. */
int cmd_umount_all(bool force, struct report *rep);
