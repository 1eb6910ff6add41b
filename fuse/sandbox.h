/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"

/* Give up, in all threads of this process and for good, what serving a volume does not need: new
 * privileges, new processes, mounts, other sockets than local ones. A kernel that cannot is a
 * warning. In builds with a sanitizer it does nothing: sanitizers need more than a daemon. */
void serve_sandbox(struct report *rep);
