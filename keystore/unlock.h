/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* From a path and a source of credentials to a volume key: what opening a volume and changing its
 * key slots have in common. */

#include "base/report.h"
#include "block/blk.h"
#include "block/file.h"
#include "keystore/credential.h"
#include "keystore/format.h"

#include <sys/types.h>

/* A container whose header was read and checked, not yet unlocked. All members are owned; who needs
 * one for longer takes it with TAKE(). The store borrows blk and header. */
struct key_container {
    struct blk *blk;    /* the ciphertext: the bottom of a stack */
    struct blk *header; /* the file of a detached header; else NULL, and it is in blk */
    const struct key_format *format;
    struct key_store *store;
};

/* The first step alone: the files, for whoever goes on where a header does not open. format and
 * store stay NULL. Errors as blk_file_open, for -EBUSY too. */
int key_container_open_files(struct key_container *ret, const struct blk_file_spec *spec,
                             const char *detached, pid_t *holder, struct report *rep);
/* What holds the header of c. */
struct blk *key_container_header(const struct key_container *c);
/* Open the file, find its format, read its header; with detached (a path, else NULL), the header in
 * that file, locked like the container. -EINVAL the container has a header of its own that does not
 * agree with it. Else errors as blk_file_open (also for -EBUSY and *holder),
 * key_recognise and the format's open. */
int key_container_open(struct key_container *ret, const struct blk_file_spec *spec,
                       const char *detached, pid_t *holder, struct report *rep);
/* Close the header and the file. Fine on a zeroed struct. */
void key_container_done(struct key_container *c);
#define AUTO_KEY_CONTAINER __attribute__((cleanup(key_container_done)))

/* credential_read() in the way of format f. */
int key_credential_read(struct credential *ret, const struct credential_source *src,
                        const struct key_format *f, struct report *rep);

#define KEY_TRIES 3

/* Read the credential that src names and unlock c with it. A passphrase that was typed may be wrong
 * KEY_TRIES times before that is the answer. A container or a slot that nothing can open is refused
 * before anybody is asked. Errors as credential_read and the format's unlock. */
int key_unlock_with(struct key_container *c, const struct credential_source *src, int slot,
                    struct key_volume *ret, struct report *rep);
