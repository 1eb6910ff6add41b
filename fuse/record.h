/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What is written down about one mount: the file NAME.json, and each object of "list --json". */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct json_object;

#define SERVE_NAME_MAX 64

struct serve_record {
    char name[SERVE_NAME_MAX + 1];
    pid_t pid; /* whose death ends the mount */
    /* Absolute paths, owned. header is NULL unless it is in a file of its own, the last three
     * unless a file system was attached; link is a symbolic link to filesystem that we made. */
    char *container, *mountpoint, *header, *filesystem, *device, *link;
    char format[32], cipher[32];
    char integrity[16]; /* "hmac-sha256"; "": changes to the container are not detected */
    uint32_t sector_size;
    uint64_t size;
    bool read_only, suspended;
    bool made_mountpoint, made_filesystem; /* we made these folders, and remove them again */
    bool lost; /* it ended and the last changes may not be in the container */
    uint64_t container_dev, container_ino; /* who the container is, whatever its path */
    int64_t since;                         /* seconds since 1970 */
};
void serve_record_done(struct serve_record *r);
#define AUTO_RECORD __attribute__((cleanup(serve_record_done)))

/* The caller's to put; NULL without memory. */
struct json_object *serve_record_encode(const struct serve_record *r);
/* -EBADMSG something is missing or of another type; -ENOMEM. */
int serve_record_decode(struct serve_record *ret, struct json_object *o);

/* Is this a name: 1 to SERVE_NAME_MAX of a-z 0-9 . _ -, and neither hidden nor like an option? */
bool serve_name_valid(const char *name);
/* The name for a container of this path: its last part without suffix, other characters folded;
 * n > 1 adds "-n". */
void serve_name_make(char out[SERVE_NAME_MAX + 1], const char *container, unsigned n);
