/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the kinds of file systems mean for a container, or for a home, that lies on one. */

#include <stdint.h>

struct doctor_place {
    uint32_t magic; /* as statfs(2) says */
    const char *name;
    const char *container, *container_fix; /* what it means there; NULL: nothing */
    const char *home, *home_fix;
};
/* By magic number; NULL: a file system without a trap. */
const struct doctor_place *doctor_place(uint32_t magic);
