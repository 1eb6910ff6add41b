/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Loop devices: the kernel's way to make a block device of DIR/image. Needs root. */

#include "base/report.h"
#include "fuse/mounts.h"

#include <stdbool.h>
#include <stdint.h>

#define CMD_LOOP_NAME 32

struct cmd_loop_spec {
    const char *image;
    uint64_t off, len; /* the part of it; len 0: to the end */
    bool read_only;
    uint32_t block_size; /* bytes, logical */
};

/* Can loop devices be made here? -EOPNOTSUPP, without words. */
int cmd_loop_possible(void);
/* Set one up in direct I/O mode (a warning when the kernel does not): without it every byte would
 * be cached twice and pass one thread. Writes its name, "/dev/loop3". -errno, said. */
int cmd_loop_attach(char device[CMD_LOOP_NAME], const struct cmd_loop_spec *spec,
                    struct report *rep);
/* Take it down if its file is still image (or a path that the kernel no longer shows whole, since
 * the image was unmounted). 0 also when it was gone; -EBUSY in use, without words. */
int cmd_loop_detach(const char *device, const char *image, struct report *rep);
/* Is its file still image (or such a path)? What is no loop device is none. */
bool cmd_loop_is_on(const char *device, const char *image);
/* Take down what else is set up on image, in the mount at mountpoint, and used by nobody. */
void cmd_loop_detach_unused(const char *mountpoint, const char *image, const char *except,
                            struct report *rep);
/* Is the file below device one of this mount's? Its path does not tell: in another mount namespace
 * the same path leads elsewhere. true where the kernel does not say. */
bool cmd_loop_on_mount(const char *device, const struct serve_mount_id *mount);
/* Take down those whose image is no longer served by anybody: nothing can be read from them. */
void cmd_loop_detach_dead(struct report *rep);

/* The image has another size: the device follows. -errno, said. */
int cmd_loop_set_capacity(const char *device, struct report *rep);
/* All loop devices and the path of what is behind them. */
void cmd_loop_each(void (*fn)(const char *device, const char *backing, void *arg), void *arg);
