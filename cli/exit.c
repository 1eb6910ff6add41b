/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* The one place where an errno becomes an exit status. */

#include <errno.h>

#define ELSEWHERE 10000 /* above every errno */

int exit_elsewhere(int status)
{
    return -(ELSEWHERE + status);
}

int exit_status(int r)
{
    if (r <= -ELSEWHERE)
        return -r - ELSEWHERE;
    switch (-r) {
    case 0:
        return 0;
    case EINVAL:
        return 2;
    case EKEYREJECTED:
        return 3;
    case EBADMSG:
        return 4;
    case EBUSY:
        return 5;
    case EOPNOTSUPP:
        return 6;
    case ENOENT:
        return 7;
    default:
        return 1;
    }
}
