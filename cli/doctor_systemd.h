/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* One setting of systemd's own files: NAME.conf and the NAME.conf.d/ beside it, of /etc, /run and
 * /usr/lib, in the order that systemd takes them. */

#include <stdbool.h>
#include <stddef.h>

/* name is "logind.conf", key "Login:KillUserProcesses". root stands before all paths ("" but for
 * tests). False when no file sets it: what is compiled in holds. */
bool doctor_systemd_value(const char *root, const char *name, const char *key, char *out,
                          size_t size);
/* Is it one of systemd's words for yes? */
bool doctor_systemd_yes(const char *value);
