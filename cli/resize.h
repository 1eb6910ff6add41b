/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the two halves of "hushvol resize" share. */

#include "cli/command.h"
#include "fuse/registry.h"

#include <stdbool.h>
#include <stdint.h>

/* What the user wants of a disk. */
struct cmd_size {
    enum { CMD_SIZE_ALL, CMD_SIZE_TO, CMD_SIZE_MORE, CMD_SIZE_LESS } how;
    uint64_t bytes; /* ALL, of a block device: not looked at */
};

/* The size that a disk of now bytes is to have; not for ALL. -EINVAL, said. */
int cmd_size_of(uint64_t *ret, const struct cmd_size *want, uint64_t now, struct report *rep);
/* "photos.hv has 12 GiB now, it had 10 GiB", and what follows from that, to stdout. */
void cmd_size_say(const char *which, uint64_t now, uint64_t before);

/* The disk of a mounted volume: its process makes it larger, and the loop device that attach made
 * hears of it. -EBUSY it would become smaller. */
int cmd_resize_mounted(const struct serve_found *f, const struct cmd_size *want,
                       struct report *rep);
