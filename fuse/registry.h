/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Who is mounted where. In a runtime folder each mount has NAME.lock, locked by its daemon for life
 * (the lock is the truth about who lives: pids are used again), NAME.json, the record, and
 * NAME.sock, the control socket. */

#include "base/report.h"
#include "fuse/folder.h"
#include "fuse/record.h"

#include <stdbool.h>

struct serve_slot; /* a name that we hold */

/* Take a name in the folder: wanted, or when that is NULL one made from the container's path.
 * -EBUSY wanted is taken (said); -EINVAL it is no name. What a dead mount left under a wanted
 * name gives way, and one made from the path is another then. */
int serve_slot_take(struct serve_slot **ret, const struct serve_folder *folder, const char *wanted,
                    const char *container, struct report *rep);
const char *serve_slot_name(const struct serve_slot *s);
/* The folder, for others who keep files there; s's own. */
int serve_slot_folder(const struct serve_slot *s);
/* Write or replace the record, whole or not at all. */
int serve_slot_publish(struct serve_slot *s, const struct serve_record *record, struct report *rep);
/* Remove the files and give the name back. NULL is fine. */
void serve_slot_drop(struct serve_slot *s);
/* Give the name back and leave the record: something is left that "umount" has to clean up. */
void serve_slot_leave(struct serve_slot *s);

/* One mount as a command finds it. What it says about a user is that user's word: root must not act
 * on it beyond what the kernel confirms (fuse/mounts.h). */
struct serve_found {
    struct serve_folder folder;
    bool alive; /* its daemon is there */
    struct serve_record record;
};
void serve_found_done(struct serve_found *f);
#define AUTO_FOUND __attribute__((cleanup(serve_found_done)))

/* All mounts in all folders we may look into, ours first, each folder's sorted by name. Records
 * that cannot be read are left out. */
int serve_registry_list(struct serve_found **ret, unsigned *n);
void serve_registry_list_done(struct serve_found *list, unsigned n);
/* The same in one folder. */
int serve_registry_list_in(const struct serve_folder *folder, struct serve_found **list,
                           unsigned *n);
/* The mount that a user means by a name, its folder, image or file system, or its container; one of
 * ours before those of others, then one that lives before one that is dead. -ENOENT, without words.
 */
int serve_registry_find(struct serve_found *ret, const char *word);
/* The living mount of a container. -ENOENT, without words. */
int serve_registry_find_container(struct serve_found *ret, uint64_t dev, uint64_t ino);
/* The living mount whose header is in the file of this absolute path. -ENOENT, without words. */
int serve_registry_find_header(struct serve_found *ret, const char *header);

/* What f's record says now. -ENOENT it is gone, or another mount has the name. */
int serve_registry_again(struct serve_found *ret, const struct serve_found *f);
/* Wait until f's daemon has closed the container, at most so long (-1: for ever). -ETIMEDOUT. */
int serve_registry_wait(const struct serve_found *f, int timeout_ms);
/* Remove the files of a dead mount; not of one that came to life meanwhile: -EBUSY. */
int serve_registry_remove(const struct serve_found *f);
