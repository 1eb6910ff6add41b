/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Where the configuration is: /etc/hushvol/hushvol.conf, /etc/hushvol/conf.d/NAME.conf in the order
 * of their names, and the user's own hushvol/hushvol.conf in XDG_CONFIG_HOME (~/.config; root's is
 * the one in root's own home). None of them has to be there. */

#include "base/report.h"
#include "conf/config.h"

#define CONF_SYSTEM "/etc/hushvol"

/* Read all of them, and settle. Each is a regular file of at most 1 MiB that the owner alone may
 * write, who is root or, for the user's own, the caller; a symbolic link is not followed. Every
 * fault is said. -EUCLEAN a file is faulty or not to be trusted, -EACCES, -EIO, -ENOMEM. */
int conf_read(struct conf **ret, struct report *rep);
/* The same with other places; own is NULL for none. */
int conf_read_from(struct conf **ret, const char *system, const char *own, struct report *rep);
