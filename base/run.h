/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Other programs that do a step for us (mkfs, fsck, mount, fusermount3). */

#include "base/report.h"
#include "base/secret.h"

#include <stdbool.h>
#include <stddef.h>

/* Once at the start: the first three descriptors that are closed lead to /dev/null from now on. The
 * next file to be opened would get such a number, and what is said on stderr would be written into
 * it: into a container. -errno. */
int run_open_stdio(struct report *rep);

enum run_output { RUN_SHOW, RUN_HIDE, RUN_HIDE_ALL }; /* shown; stdout hidden; stderr hidden too */

/* Where is the program? Looks in $PATH and then where users' paths do not lead: /usr/sbin, /sbin,
 * /usr/local/sbin, ..., so that a user without sbin in his path has fsck. Root's commands ask
 * system folders only. out holds size bytes. -ENOENT. */
int run_find(char *out, size_t size, const char *program);

/* As argv[0]: the program that is running, wherever it is and whatever is in its place now. */
#define RUN_SELF "/proc/self/exe"

/* Run argv[0] (found by run_find) with default signals and no descriptor but stdio, and wait.
 * Returns its exit status, 128 + n when signal n ended it; -ENOENT no such program (said), -errno.
 */
int run_wait(const char *const argv[], enum run_output output, struct report *rep);
/* The same with this current folder, which its relative paths start from. */
int run_wait_in(const char *folder, const char *const argv[], enum run_output output,
                struct report *rep);

/* The same with line, and a newline behind it, as all that its stdin has: the way for a secret to
 * another program, since the words and the environment of a process can be read by others. It need
 * not read it. */
int run_feed(const char *const argv[], const struct secret *line, enum run_output output,
             struct report *rep);
int run_feed_in(const char *folder, const char *const argv[], const struct secret *line,
                enum run_output output, struct report *rep);

/* As run_wait, with what it prints (both outputs) in out, cut to size - 1 bytes and terminated. */
int run_read(const char *const argv[], char *out, size_t size, struct report *rep);
