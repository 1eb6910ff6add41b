/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The FUSE front: DIR/image is the disk, DIR/stats the counters. A request is one call into the top
 * of the volume's stack. */

#include "base/report.h"
#include "volume/volume.h"

#include <stdint.h>
#include <sys/types.h>

struct json_object;

struct serve_spec {
    const char *name;       /* of the volume */
    const char *source;     /* what the mount table names as the source: the container's path */
    const char *mountpoint; /* absolute, no symbolic links in it */
    int device;             /* /dev/fuse, mounted there already; 0: serve_mount() mounts */
    bool allow_other, allow_root;
    bool cache;  /* let the kernel cache pages; default is direct I/O */
    uid_t uid;   /* owner of the files; (uid_t)-1: the caller */
    gid_t gid;   /* (gid_t)-1: the caller's */
    mode_t mode; /* of image; (mode_t)-1: 0600, 0400 when read-only */
};

/* Threads that answer requests, at most: one for each request that the kernel keeps in flight by
 * itself (SERVE_BACKGROUND), since all of those may be writes that wait for room on the host, and
 * some for everybody else. Made when needed, so most mounts never see a tenth of them. Each may
 * come to hold 2 MiB (a request and an answer), so there are no more than the memory of a busy
 * mount allows; and more threads than this were slower, not faster. */
#define SERVE_BACKGROUND 24
#define SERVE_THREADS (SERVE_BACKGROUND + 8)

struct serve; /* one mounted session */

/* Mount with default_permissions,nosuid,nodev and what spec says. vol is borrowed, and so are the
 * words in spec; spec->device is the session's from now on, also when it fails. -EOPNOTSUPP no FUSE
 * here, -EPERM allow_other without permission, -ENOENT, -ENOTDIR, -EIO the mount failed; each says
 * what to do. */
int serve_mount(struct serve **ret, struct volume *vol, const struct serve_spec *spec,
                struct report *rep);
/* Answer requests until the file system is unmounted or serve_stop(). -EIO when the connection
 * broke in any other way. */
int serve_loop(struct serve *s);
/* End the loop soon, from any thread. It may come just before the loop looks and be missed: repeat
 * until the loop returned. */
void serve_stop(struct serve *s);
/* Was it unmounted or stopped? From any thread. */
bool serve_ended(struct serve *s);
/* Unmount if still mounted, release. NULL is fine. */
void serve_close(struct serve *s);
/* Words of libfuse from here on go to another report; borrowed, NULL swallows them. */
void serve_set_report(struct report *rep);

/* Hold the image: reads, writes, discards and zeros that come from now on wait, without answer and
 * without a thread, and those that run have ended when this returns. Everything else is answered:
 * getattr, lseek, open, release, flush (what was answered is the volume's to flush), and an
 * interrupt ends a held request with EINTR, so that its caller can be killed. A write that would
 * make more than SERVE_HOLD_BYTES wait is answered ENOMEM. -EBUSY some of those that run wait for
 * room on the host (said; nothing is held then). One holder at a time; not from a request. */
int serve_hold(struct serve *s, struct report *rep);
/* Start what waits, in the order in which it came, and hold no longer. */
void serve_release(struct serve *s);
/* Answer what waits, and what comes from now on for good, with err (negative). From any thread. */
void serve_give_up(struct serve *s, int err);
/* While requests are held: wipe what reads left in buffers of ours. What writes brought lies where
 * libfuse received it; a thread wipes that when a statfs reaches it. */
void serve_wipe_buffers(struct serve *s);
/* How many requests wait. */
unsigned serve_held(struct serve *s);
/* The disk has size bytes from now on, and the kernel asks anew how large the image is; after
 * vol_make_room(). Holds requests meanwhile: as serve_hold() and vol_grow(). */
int serve_grow(struct serve *s, uint64_t size, struct report *rep);

/* How often image is open now. */
unsigned serve_opens(struct serve *s);
/* The counters as one JSON object, the caller's to put. NULL without memory. */
struct json_object *serve_stats(struct serve *s);
/* How long requests took, for each kind that serve_stats() names an array of pairs [from_ns,
 * requests]: so many took at least from_ns and less than the next range of base/histogram.h. */
struct json_object *serve_latencies(struct serve *s);
/* Nanoseconds since the mount. */
uint64_t serve_age_ns(const struct serve *s);
