/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The password that somebody typed, kept from his authentication to the opening of his session. */

#include "base/secret.h"

#include <security/pam_modules.h>

/* Remember it for this user in place of what was remembered before; with a NULL password forget
 * that only. What is kept is wiped with the handle. A PAM_* result. */
int login_remember(pam_handle_t *pamh, const char *user, const char *password);
/* What is remembered for this user, or NULL: what another one typed (sudo asks who calls for his
 * own password) is never given out. Valid until the next call of login_remember(). */
const struct secret *login_remembered(pam_handle_t *pamh, const char *user);

/* A copy of what PAM or somebody at its prompt gave us, in guarded memory. -ENOMEM. */
int login_secret(struct secret *ret, const char *text);
/* The input of a command: the first line, and when it is not NULL the second. -EINVAL one of them
 * has a line break or is longer than PAM passes on; -ENOMEM. */
int login_lines(struct secret *ret, const struct secret *first, const struct secret *second);
