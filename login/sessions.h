/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How many sessions a user has: a file for each user in a folder of root's, a line for each session
 * that was opened and not closed. It is gone with /run at the next start of the machine, as the
 * sessions are.
 *
 * Two locks, both of the file: each call here holds one for as long as it takes to read and write
 * a few lines; login_sessions_work() is for who mounts or unmounts, which may last. */

#include "base/report.h"

#include <sys/types.h>

#define LOGIN_SESSIONS_FOLDER "/run/hushvol" /* the file is login/UID in it */
#define LOGIN_SESSIONS_MAX 1024

/* Somebody who opened a session. A number is given again; the time of its start tells them apart.
 */
struct login_process {
    pid_t pid;
    unsigned long long start; /* as the kernel counts it, in ticks */
};
/* -errno. */
int login_process_self(struct login_process *ret);

/* Open the user's file, made when missing, with its folders (0700, ours, no symbolic links; else
 * refused). A descriptor that is closed on exec; said: -EPERM somebody else's, -errno. */
int login_sessions_open(const char *folder, uid_t uid, struct report *rep);

/* Each returns how many are left or there, or -errno (said). A damaged file is a warning and counts
 * as empty. */
/* p opened a session. -ENOSPC there are LOGIN_SESSIONS_MAX already. */
int login_sessions_add(int fd, const struct login_process *p, struct report *rep);
/* p closed one: a line of its own goes, and with it those of processes that are gone without having
 * closed theirs. When it has none, another process closes what one opened that has ended since:
 * then the oldest of those that are gone goes, or else the oldest. */
int login_sessions_remove(int fd, const struct login_process *p, struct report *rep);
int login_sessions_count(int fd, struct report *rep);

/* Wait until nobody else works for this user, at most timeout seconds, and keep others from it
 * until login_sessions_rest() or the end of fd. Said: -EBUSY, -errno. */
int login_sessions_work(int fd, unsigned timeout, struct report *rep);
void login_sessions_rest(int fd);
