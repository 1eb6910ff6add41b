/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The words behind pam_hushvol.so in a file of /etc/pam.d. */

#include "base/report.h"

#include <stdbool.h>
#include <sys/types.h>

struct login_args {
    bool debug;          /* say in syslog what is done and what is left out */
    unsigned timeout;    /* seconds, for mounting and at most for a busy volume to be let go */
    uid_t min_uid;       /* users below it have no login volumes */
    const char *volumes; /* NAME,...; NULL: all with login = yes */
    const char *also;    /* SERVICE,...: of those that are left out by default; or NULL */
    const char *program; /* hushvol itself; absolute */
};

#define LOGIN_TIMEOUT_MAX 3600

/* What is not understood is a warning and changes nothing; texts stay the caller's. */
void login_args_parse(struct login_args *ret, int argc, const char *const argv[],
                      struct report *rep);

/* Is word one of the words of list, which commas separate? NULL has none. */
bool login_args_lists(const char *list, const char *word);
