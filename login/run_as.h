/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A program that runs as the user who logs in, started by a process that is root and not ours:
 * sshd, login, su, a display manager. Nothing of that process reaches it but what is named here,
 * and nothing that it does can stop or change that process. */

#include "base/report.h"
#include "base/secret.h"

#include <stddef.h>
#include <sys/types.h>

struct login_user {
    const char *name, *home, *shell;
    uid_t uid;
    gid_t gid;
};

struct login_run {
    const struct login_user *user;
    const char *const *argv;    /* argv[0] is a path that begins with / */
    const char *const *env;     /* all of its environment */
    const struct secret *input; /* its standard input, at most LOGIN_INPUT_MAX bytes; NULL: none */
    unsigned timeout;           /* seconds; then SIGTERM, and soon SIGKILL, to its process group */
    char *out, *err; /* what it prints, terminated, cut; out NULL: not wanted. Any bytes but NUL */
    size_t out_size, err_size;
};

#define LOGIN_INPUT_MAX 4096 /* what a pipe holds without anybody reading */

/* Run to the end. Its exit status, 128 + n when signal n ended it. Said: -ETIMEDOUT, -ENOEXEC it
 * could not be started, -E2BIG too much input, -errno. What the program itself prints is not said.
 * From any thread; the caller's signals and children are left alone. */
int login_run_as(const struct login_run *run, struct report *rep);
