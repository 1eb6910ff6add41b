/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the files of the FUSE front share: one mounted session and its counters. */

#define FUSE_USE_VERSION FUSE_MAKE_VERSION(3, 12)
#include <fuse_lowlevel.h>

#include "base/histogram.h"
#include "fuse/hold.h"
#include "fuse/serve.h"
#include "fuse/shard.h"

#include <json-c/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#define SERVE_REQUEST_MAX (1024 * 1024) /* bytes in one read or write */

enum serve_ino { SERVE_ROOT = FUSE_ROOT_ID, SERVE_IMAGE, SERVE_STATS };

/* Each kind of request counts bytes, the time they took, and how many took how long. */
enum serve_kind { SERVE_READ, SERVE_WRITE, SERVE_FLUSH, SERVE_DISCARD, SERVE_ZERO, SERVE_KINDS };

struct serve_shard {
    _Alignas(128) struct {
        atomic_ullong bytes, ns, max_ns;
        atomic_ullong latency[HISTOGRAM_BUCKETS]; /* their sum is the number of requests */
    } kind[SERVE_KINDS];
    atomic_ullong errors;
};

struct serve {
    struct fuse_session *session;
    struct volume *vol;
    struct blk *top;
    const char *name;
    bool cache, read_only, mounted;
    uid_t uid;
    gid_t gid;
    mode_t mode;
    uint64_t data_offset; /* bytes of the container that are no part of the disk */
    uint64_t began;       /* serve_clock() at the mount */
    atomic_llong written; /* when the last write ended, seconds since 1970 */
    atomic_uint opens;
    pthread_key_t thread; /* a struct serve_thread: what a thread has for itself (thread.c) */
    pthread_t looper;
    atomic_bool looping;
    struct serve_hold *hold;
    pthread_rwlock_t size; /* of the disk, for those who are not held */
    pthread_mutex_t lock;  /* of the three below */
    struct serve_thread *threads;
    pthread_cond_t runner_ended;
    unsigned n_runners; /* threads that start what was kept */
    struct serve_shard shards[SERVE_SHARDS];
};

/* One request that goes to the volume. */
struct serve_request {
    enum serve_kind kind; /* discard: a fallocate of whatever mode */
    fuse_req_t req;
    size_t len;
    uint64_t off;
    uint64_t zeros;   /* bytes that a fallocate is for */
    int mode;         /* of a fallocate */
    const char *data; /* of a write: len bytes */
};
/* Do it and answer it (ops.c), or keep it while requests are held (held.c). */
void serve_do(struct serve *s, const struct serve_request *q);
void serve_submit(struct serve *s, const struct serve_request *q);
/* Before the session is released: no request is kept and no runner there when it returns. */
void serve_held_end(struct serve *s);

extern const struct fuse_lowlevel_ops serve_ops;

/* What the calling thread has for itself; after open, released with the thread. -errno. */
int serve_threads_open(struct serve *s);
void serve_threads_close(struct serve *s);
/* Release it now: for a thread that may outlive s. */
void serve_thread_end(struct serve *s);
/* A buffer for len bytes of an answer, page-aligned. NULL without memory. */
void *serve_thread_buffer(struct serve *s, size_t len);
/* Note where data of a request lies in libfuse's memory, and wipe what was noted. */
void serve_thread_came_in(struct serve *s, const char *data, size_t len);
void serve_thread_wipe(struct serve *s);

/* Now, for serve_count(). */
uint64_t serve_clock(void);
/* A request of this kind ended; r is what the volume answered, began what serve_clock() said. */
void serve_count(struct serve *s, enum serve_kind kind, uint64_t bytes, int r, uint64_t began);
