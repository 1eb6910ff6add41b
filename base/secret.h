/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Memory for passphrases and keys: guard pages around it, locked where the limit allows, left out
 * of core dumps, wiped when released (libsodium's sodium_malloc). */

#include "base/report.h"

#include <stdbool.h>
#include <stddef.h>

struct secret {
    unsigned char *bytes; /* owned; NULL when empty */
    size_t len;           /* bytes in use */
};

/* Make *s hold len bytes, zeroed; what it held before is wiped. -ENOMEM. */
int secret_make(struct secret *s, size_t len);
/* Make *s a copy of len bytes at from. -ENOMEM. */
int secret_copy(struct secret *s, const void *from, size_t len);
/* Wipe and release; fine on a zeroed struct and twice. */
void secret_done(struct secret *s);

#define AUTO_SECRET __attribute__((cleanup(secret_done)))

/* Wipe len bytes of ordinary memory in a way the compiler keeps. */
void secret_wipe(void *p, size_t len);
/* Equal in constant time? */
bool secret_equal(const void *a, const void *b, size_t len);
/* Fill with random bytes from the kernel. */
void secret_random(void *p, size_t len);

/* Once at the start of main, before the first secret: starts libsodium, turns core dumps and ptrace
 * off. -ENOSYS when the library cannot start. */
int secret_start(struct report *rep);
/* Lock all of this process's memory, present and future, as far as the limit allows; a limit that
 * is too low is a warning that names it and how to raise it. What is done in a moment has no need
 * of the words (NULL): a limit has room for the few pages of its secrets, which lock themselves. */
void secret_lock_memory(struct report *rep);
