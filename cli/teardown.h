/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Taking a mount down from the top: file system, loop device, the image, and then wait until its
 * daemon has closed the container. */

#include "base/report.h"
#include "fuse/registry.h"

#include <stdbool.h>

/* A living mount. Nothing is taken down when somebody keeps it busy: -EBUSY, named. With force it
 * goes lazily, whoever uses it. */
int cmd_teardown(const struct serve_found *f, bool force, struct report *rep);
/* What a mount left behind whose daemon died. */
int cmd_teardown_dead(const struct serve_found *f, struct report *rep);
/* Is the image that the record speaks of mounted, as far as the kernel confirms it? */
bool cmd_teardown_has_image(const struct serve_found *f);
/* Is the file system that the record speaks of mounted, as far as the kernel confirms it? */
bool cmd_teardown_has_filesystem(const struct serve_found *f);
