/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/buf.h"

/* A stack under one mutex. Buffers are large (tens of KiB), so the lock is short beside the work
 * done in one; the last one used is the next one out, while it is still in a cache. */

#include "base/auto.h"
#include "base/secret.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

struct bufs {
    pthread_mutex_t lock;
    pthread_cond_t back;
    struct buf *free;
    unsigned n;
    size_t size;
    unsigned char *bytes;
    struct buf all[];
};

int bufs_open(struct bufs **ret, unsigned n, size_t size)
{
    AUTO_FREE struct bufs *b = calloc(1, sizeof(*b) + n * sizeof(struct buf));
    size_t stride = (size + 4095) & ~(size_t)4095;

    if (b == NULL || stride > SIZE_MAX / (n + 1))
        return -ENOMEM;
    b->n = n;
    b->size = stride * n;
    b->bytes = mmap(NULL, b->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (b->bytes == MAP_FAILED)
        return -ENOMEM;
    madvise(b->bytes, b->size, MADV_DONTDUMP); /* plaintext passes through */
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->back, NULL);
    for (unsigned i = 0; i < n; i++) {
        b->all[i] = (struct buf){b->bytes + i * stride, size, b, b->free};
        b->free = &b->all[i];
    }
    *ret = TAKE(b);
    return 0;
}

void bufs_close(struct bufs *b)
{
    if (b == NULL)
        return;
    /* Fresh pages instead of a memset: a buffer never touched must not become resident now. */
    madvise(b->bytes, b->size, MADV_DONTNEED);
    munmap(b->bytes, b->size);
    pthread_cond_destroy(&b->back);
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* Page by page, and only those that are there: a buffer never touched must not become resident
 * now. Giving them back instead would leave to the kernel when they are cleared, and it does not
 * take back what is locked. */
void bufs_wipe(struct bufs *b)
{
    for (size_t off = 0; off < b->size; off += 4096) {
        unsigned char there = 0;

        if (mincore(b->bytes + off, 4096, &there) < 0 || there & 1)
            secret_wipe(b->bytes + off, 4096);
    }
}

struct buf *buf_take(struct bufs *b)
{
    HOLD(&b->lock);
    struct buf *buf;

    while (b->free == NULL)
        pthread_cond_wait(&b->back, &b->lock);
    buf = b->free;
    b->free = buf->next;
    return buf;
}

void buf_drop(struct buf *buf)
{
    struct bufs *b = buf->home;
    HOLD(&b->lock);

    buf->next = b->free;
    b->free = buf;
    pthread_cond_signal(&b->back);
}
