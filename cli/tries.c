/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/tries.h"

/* By the clock and not by counting: a try can take a second of its own. */

#include <poll.h>
#include <time.h>

#define AGAIN_MS 250

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

void cmd_tries_start(struct cmd_tries *t, unsigned seconds)
{
    t->until_ms = now_ms() + seconds * INT64_C(1000);
}

bool cmd_tries_again(const struct cmd_tries *t)
{
    int64_t left = t->until_ms - now_ms();

    if (left <= 0)
        return false;
    poll(NULL, 0, left < AGAIN_MS ? (int)left : AGAIN_MS);
    return true;
}
