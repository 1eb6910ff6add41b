/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The state of an ext2, 3 or 4, as its own programs (e2fsprogs) tell it. A target is a device or
 * file and where in it the file system begins, in bytes. */

#include "base/report.h"

#include <stdbool.h>
#include <stdint.h>

enum cmd_ext_state {
    CMD_EXT_CLEAN,   /* it was unmounted, or mended */
    CMD_EXT_UNCLEAN, /* it was not, it has known errors, or nobody can tell */
    CMD_EXT_JOURNAL, /* it was not, and what is in its journal is missing until that is replayed */
};
enum cmd_ext_state cmd_ext_state(const char *path, uint64_t off);

/* Run e2fsck -p. 1 it mended something, 0 there was nothing to mend; -EUCLEAN a person has to do it
 * (without words); -EOPNOTSUPP no e2fsck, -EIO it failed; said. */
int cmd_ext_mend(const char *path, uint64_t off, struct report *rep);
