/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From an image to a mounted file system. */

#include "cli/filesystem.h"
#include "cli/loop.h"

struct cmd_attach {
    const char *mountpoint, *image, *folder; /* absolute */
    const char *mkfs;                        /* type to make first, or NULL */
    bool force;                              /* over what is there */
    int partition;                           /* 0: the whole disk */
    bool read_only, allow_other, allow_root;
    char device[CMD_LOOP_NAME]; /* set by cmd_attach_run(); "" without one */
};

/* What can be refused before anything is mounted. -EOPNOTSUPP, said. */
int cmd_attach_check(const struct cmd_attach *a, struct report *rep);
/* Make, mend and mount it. Leaves nothing behind when it fails. */
int cmd_attach_run(struct cmd_attach *a, struct report *rep);
/* Unmount it again. */
void cmd_attach_undo(struct cmd_attach *a, struct report *rep);
