/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What is done for the user, by hushvol itself as the user. What fails has been said, and changes
 * nothing for his login. */

#include "login/login.h"

/* Open his login volumes with the password, or without one (NULL) ask for it where that is needed.
 * sessions is his file, in which this session stands already, or -1. */
void login_work_mount(struct login *l, const struct secret *password, int sessions);
/* Close them, unless a session has been opened meanwhile. */
void login_work_umount(struct login *l, int sessions);
/* Give the key slots that old opens the passphrase new. 0 when that is done for all. */
int login_work_change(struct login *l, const struct secret *old, const struct secret *new);
/* His password was set by somebody who did not know the old one: say what that does not change. */
void login_work_keep(struct login *l);
