/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* What each thread that answers requests has for itself: a buffer for reads, and a note of where
 * the data of writes came in, which is memory of libfuse's. Both hold plaintext, and are wiped when
 * the volume is suspended.
 *
 * Our own buffers whoever suspends can wipe: no read is running. A thread's memory of libfuse's it
 * must wipe itself, since it waits for the next request in it; any request will do as the occasion,
 * and statfs is one that the kernel always passes on. Idle threads get requests in turn, so a
 * command that calls statfs(2) a few times has visited all. */

#include "base/secret.h"

#include <string.h>
#include <sys/mman.h>

struct serve_thread {
    struct serve *serve;
    struct serve_thread *before, *after;
    unsigned char *buffer; /* SERVE_REQUEST_MAX bytes, or NULL */
    atomic_size_t used;    /* bytes of it that hold plaintext at most; its own thread adds */
    char *came_in;         /* where libfuse puts the data of writes, and how much came at most */
    size_t came_len;
};

static void thread_free(void *arg)
{
    struct serve_thread *t = arg;

    if (t == NULL)
        return;
    HOLD(&t->serve->lock);
    *(t->before != NULL ? &t->before->after : &t->serve->threads) = t->after;
    if (t->after != NULL)
        t->after->before = t->before;
    if (t->buffer != NULL)
        munmap(t->buffer, SERVE_REQUEST_MAX);
    free(t);
}

int serve_threads_open(struct serve *s)
{
    return -pthread_key_create(&s->thread, thread_free);
}

void serve_thread_end(struct serve *s)
{
    thread_free(pthread_getspecific(s->thread));
    pthread_setspecific(s->thread, NULL);
}

void serve_threads_close(struct serve *s)
{
    serve_thread_end(s);
    pthread_key_delete(s->thread);
}

/* NULL without memory. */
static struct serve_thread *own(struct serve *s)
{
    struct serve_thread *t = pthread_getspecific(s->thread);

    if (t != NULL)
        return t;
    t = calloc(1, sizeof(*t));
    if (t == NULL || pthread_setspecific(s->thread, t) != 0) {
        free(t);
        return NULL;
    }
    HOLD(&s->lock);
    t->serve = s;
    t->after = s->threads;
    if (s->threads != NULL)
        s->threads->before = t;
    s->threads = t;
    return t;
}

void *serve_thread_buffer(struct serve *s, size_t len)
{
    struct serve_thread *t = own(s);
    void *bytes;

    if (t == NULL || len > SERVE_REQUEST_MAX)
        return NULL;
    if (t->buffer == NULL) {
        bytes = mmap(NULL, SERVE_REQUEST_MAX, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
        if (bytes == MAP_FAILED)
            return NULL;
        madvise(bytes, SERVE_REQUEST_MAX, MADV_DONTDUMP); /* plaintext passes through */
        t->buffer = bytes;
    }
    if (len > atomic_load_explicit(&t->used, memory_order_relaxed))
        atomic_store_explicit(&t->used, len, memory_order_relaxed);
    return t->buffer;
}

void serve_thread_came_in(struct serve *s, const char *data, size_t len)
{
    struct serve_thread *t = own(s);

    if (t == NULL)
        return;
    t->came_in = (char *)data; /* its owner is done with it before the next request comes */
    if (len > t->came_len)
        t->came_len = len;
}

void serve_thread_wipe(struct serve *s)
{
    struct serve_thread *t = pthread_getspecific(s->thread);

    if (t == NULL || t->came_len == 0)
        return;
    secret_wipe(t->came_in, t->came_len);
    t->came_len = 0;
}

void serve_wipe_buffers(struct serve *s)
{
    HOLD(&s->lock);

    for (struct serve_thread *t = s->threads; t != NULL; t = t->after) {
        if (t->buffer != NULL)
            secret_wipe(t->buffer, atomic_load_explicit(&t->used, memory_order_relaxed));
        atomic_store_explicit(&t->used, 0, memory_order_relaxed);
    }
}
