/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* NAME.sock through the folder's descriptor: as short as sun_path wants, and proof against renames.
 */
static inline void control_address(struct sockaddr_un *out, int folder, const char *name)
{
    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(out->sun_path, sizeof(out->sun_path), "/proc/self/fd/%d/%s.sock", folder, name);
}
