/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "base/report.h"
#include "fuse/registry.h"

#include <stdbool.h>

/* While a mount is taken down: writes that wait for room on the host would make the unmount wait
 * for them, and so for ever. A thread watches for such, says so, and has the daemon give them up.
 */
struct cmd_waiting;

/* f and rep are borrowed until cmd_waiting_stop(). -EAGAIN, -ENOMEM, said. */
int cmd_waiting_start(struct cmd_waiting **ret, const struct serve_found *f, struct report *rep);
/* NULL is fine. */
void cmd_waiting_stop(struct cmd_waiting *w);
/* Give up now what waits now. Was anything given up, now or before? */
bool cmd_waiting_give_up(struct cmd_waiting *w);
