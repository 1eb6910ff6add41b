/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The header of a container for a command that changes it, whether the container is mounted or not:
 * a mounted one belongs to the process that serves it, which then writes what the command made. */

#include "base/report.h"
#include "fuse/registry.h"
#include "keystore/unlock.h"

struct cmd_reach {
    struct key_container c;   /* when mounted: for looking, without lock */
    bool mounted;             /* mount is who writes */
    struct serve_found mount; /* owned */
    int unlocked;             /* the slot that opened, or KEY_SLOT_ANY */
};

/* Open and lock a container for a change of its header, or find the mount that has it. header is
 * the file of a detached one, or NULL (a mount of ours knows it). Everything is said: -EBUSY
 * somebody else holds it, or it is mounted read-only or with another header; else as
 * key_container_open. */
int cmd_reach_open(struct cmd_reach *ret, const char *container, const char *header,
                   struct report *rep);
/* Close it. Fine on a zeroed struct. */
void cmd_reach_done(struct cmd_reach *at);
#define AUTO_REACH __attribute__((cleanup(cmd_reach_done)))

/* Open a container for looking at its header: no lock, nothing is written, and it may be mounted
 * and its header just being changed. header as above. Errors as key_container_open. */
int cmd_reach_look(struct key_container *ret, const char *container, const char *header,
                   struct report *rep);

/* The same for a header that need not open: its files only, as key_container_open_files. */
int cmd_reach_look_files(struct key_container *ret, const char *container, const char *header,
                         struct report *rep);

/* Is this change possible in the format, mounted as it is or not? -EOPNOTSUPP: ask nobody for a
 * passphrase. */
int cmd_reach_possible(const struct cmd_reach *at, enum key_patch_what what, struct report *rep);
/* Unlock it, memory locked before, so that the two below can be done. As key_unlock_with, then the
 * format's repair. */
int cmd_reach_unlock(struct cmd_reach *at, const struct credential_source *key, int slot,
                     struct key_volume *ret, struct report *rep);
/* After an unlock: KEY_PATCH_ADD puts cred into a free slot (or KEY_SLOT_ANY), KEY_PATCH_CHANGE in
 * the place of what is in slot, which keeps its label when label is NULL. Returns the slot. Errors
 * as key_change_add, key_change_change; and those of cmd_job_run: when the mount did not
 * answer, it may have been done all the same, which is said. */
int cmd_reach_put(struct cmd_reach *at, enum key_patch_what what, const struct credential *cred,
                  int slot, const char *label, const struct kdf_request *kdf, struct report *rep);
/* Unlocked or not; the slot that opened only as long as it holds what opened. Errors as
 * key_change_remove, and those of cmd_job_run as above. */
int cmd_reach_remove(struct cmd_reach *at, int slot, bool force, struct report *rep);
/* Every slot; the same. */
int cmd_reach_erase(struct cmd_reach *at, struct report *rep);
/* Set and clear flags, unlocked or not, by words as the format's set_flags takes. -EOPNOTSUPP the
 * format has none, -EINVAL; and those of cmd_job_run as above. */
int cmd_reach_flags(struct cmd_reach *at, const char *words, struct report *rep);
