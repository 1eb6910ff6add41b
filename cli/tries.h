/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* How long a command tries again what somebody keeps busy. */

#include <stdbool.h>
#include <stdint.h>

struct cmd_tries {
    int64_t until_ms; /* on the monotonic clock */
};

/* seconds 0: there is one try only. */
void cmd_tries_start(struct cmd_tries *t, unsigned seconds);
/* After a failed try: wait a moment. false: there is no time for another one. */
bool cmd_tries_again(const struct cmd_tries *t);
