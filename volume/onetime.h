/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "keystore/unlock.h"
#include "volume/volume.h"

/* Lock the container of spec and make a header for it that lies in memory, under a key that is
 * nowhere else: *key, the caller's to release. -EBUSY (no words, *holder); -EEXIST it holds
 * something, and spec does not say that this may go; -EINVAL too small, or read-only; else as
 * blk_file_open. */
int onetime_open(struct key_container *ret, const struct vol_spec *spec, struct credential *key,
                 pid_t *holder, struct report *rep);
