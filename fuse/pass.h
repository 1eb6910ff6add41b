/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <sys/types.h>

/* Send len bytes to a local socket and with the first of them a descriptor, which stays ours; fd
 * -1: the bytes alone. As sendmsg(2), errno included; nobody gets a SIGPIPE. */
ssize_t serve_pass(int to, const void *bytes, size_t len, int fd);
