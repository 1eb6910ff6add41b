/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How much of a disk does what is on it need? Before a disk becomes smaller. */

#include "base/report.h"
#include "block/blk.h"

struct cmd_fs_need {
    char what[48]; /* "ext4", "gpt partition table"; "" nothing that is known */
    uint64_t end;  /* bytes from the start of the disk that it uses; 0: it does not say */
};

/* Look at disk, which nobody writes meanwhile. -errno, said. */
int cmd_fs_find_need(struct cmd_fs_need *ret, struct blk *disk, struct report *rep);
