/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From an image to a mounted file system. */

#include "cli/ext.h"
#include "cli/filesystem.h"
#include "cli/loop.h"

#include <limits.h>

struct cmd_attach {
    const char *mountpoint, *image, *folder; /* absolute */
    const char *container, *header;          /* absolute, for words; header may be NULL */
    const char *mkfs;                        /* type to make first, or NULL */
    bool force;                              /* over what is there */
    int partition;                           /* 0: the whole disk */
    bool read_only, allow_other, allow_root;
    bool folder_is_new; /* we made it, and may put a link in its place */
    /* Set by cmd_attach_run(): */
    char device[CMD_LOOP_NAME]; /* "" without one */
    char point[PATH_MAX]; /* where udisks2 mounted it; folder is a link to that then. Else "" */
};

/* What can be refused before anything is mounted. -EOPNOTSUPP, said. */
int cmd_attach_check(const struct cmd_attach *a, struct report *rep);
/* Make, mend and mount it. Leaves nothing behind when it fails. */
int cmd_attach_run(struct cmd_attach *a, struct report *rep);
/* Unmount it again. */
void cmd_attach_undo(struct cmd_attach *a, struct report *rep);

/* What is on the disk now, and how it was found. */
struct cmd_attach_content {
    struct cmd_fs fs;
    enum cmd_ext_state found; /* of an ext that was there */
    bool mended;              /* and e2fsck -p had something to do */
};
/* A step of the above: make or mend it, on target, which is the loop device, or the image with an
 * offset. Errors said. */
int cmd_attach_prepare(const struct cmd_attach *a, const char *target,
                       const struct cmd_fs_part *part, struct cmd_attach_content *ret,
                       struct report *rep);
/* The same as cmd_attach_run() and cmd_attach_undo(), without a loop device of our own. */
int cmd_attach_user(struct cmd_attach *a, const struct cmd_fs_part *part, struct report *rep);
void cmd_attach_user_undo(struct cmd_attach *a, struct report *rep);
