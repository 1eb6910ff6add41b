/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A machine made of files below a temporary folder, for what reads /proc and /sys. One at a time.
 */

/* cmocka setup and teardown: an empty folder, and its removal. */
int machine_make(void **state);
int machine_remove(void **state);
/* The folder, what is passed on as root. */
const char *machine_root(void);
/* Write a file, "/proc/meminfo"; its folders are made. */
void machine_put(const char *path, const char *text);
