/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A fixed number of equal, page-aligned buffers, allocated once. Taking waits when all are out, so
 * whoever holds one must not wait for anybody who needs another from the same pool. */

#include <stddef.h>

struct bufs;
struct buf {
    unsigned char *bytes; /* page-aligned */
    size_t size;
    struct bufs *home;
    struct buf *next;
};

/* -ENOMEM. */
int bufs_open(struct bufs **ret, unsigned n, size_t size);
/* Gives the memory back to the kernel, which clears it. All buffers must be back. NULL is fine. */
void bufs_close(struct bufs *b);

/* Wipe what buffers held. Nobody may be using one meanwhile, taken or not. */
void bufs_wipe(struct bufs *b);

struct buf *buf_take(struct bufs *b);
void buf_drop(struct buf *buf);

static inline void auto_buf(struct buf **buf)
{
    if (*buf != NULL)
        buf_drop(*buf);
}
#define AUTO_BUF __attribute__((cleanup(auto_buf)))
