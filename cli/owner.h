/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Root's commands on a volume that the configuration gives to a user (owner = USER) are done as
 * that user: his container, key files and passphrase command are nothing that root should open or
 * run. */

#include "base/report.h"
#include "conf/config.h"

#include <stdbool.h>

struct cmd_owner {
    const char *point; /* DIR of root's words, or NULL */
    bool allow_other, foreground;
};

/* When we are root and v's owner is not: go on as he in another process, for good, and wait for its
 * end in this one. 0 go on (he, or everybody else as before); in root's process what the command
 * returns now: as exit_elsewhere(), or -EINTR for what key_interrupt() tells; -errno, said. Nothing
 * of v's may have been opened before. how may be NULL where nothing will be mounted. */
int cmd_owner_become(const struct conf_volume *v, const struct cmd_owner *how, struct report *rep);
/* The socket to root's process, which mounts; 0: there is none. */
int cmd_owner_broker(void);
