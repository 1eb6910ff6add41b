/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How much memory a process here could still get. */

#include <stdint.h>

/* Bytes: MemAvailable, or what the memory limit of our cgroup, or of one above it, leaves if that
 * is less; both versions of cgroups. root stands before /proc and /sys ("" but for tests). */
uint64_t meminfo_available(const char *root);
