/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Key files: any bytes from anything that can be opened, also from a medium that is put in while we
 * wait for it. */

#include "base/report.h"
#include "base/secret.h"
#include "keystore/credential.h"

/* The bytes of all key files that src names, in their order. A file that is not there, or that is a
 * device without its medium, is waited for, keyfile_timeout seconds for all of them together; said
 * once. Whatever else is wrong with one is an error at once. -ENOENT, -EACCES, -EISDIR; -EINVAL
 * empty, or too long; -EINTR a signal that ends programs came while it waited (it was taken:
 * interrupt.h). */
int keyfile_read_all(struct secret *ret, const struct credential_source *src, struct report *rep);
