/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Release by scope. A local declared with one of these is released when its scope ends, in reverse
 * order of declaration; TAKE() hands it out and leaves NULL behind. Declare with an initial value.
 */

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define TAKE(p)                                                                                    \
    ({                                                                                             \
        __typeof__(p) taken_ = (p);                                                                \
        (p) = NULL;                                                                                \
        taken_;                                                                                    \
    })
#define TAKE_FD(fd)                                                                                \
    ({                                                                                             \
        int taken_ = (fd);                                                                         \
        (fd) = -1;                                                                                 \
        taken_;                                                                                    \
    })

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline void auto_free(void *p)
{
    free(*(void **)p);
}

static inline void auto_fd(const int *fd)
{
    if (*fd >= 0)
        close(*fd);
}

static inline pthread_mutex_t *auto_lock(pthread_mutex_t *m)
{
    pthread_mutex_lock(m);
    return m;
}

static inline void auto_unlock(pthread_mutex_t **m)
{
    pthread_mutex_unlock(*m);
}

#define AUTO_FREE __attribute__((cleanup(auto_free)))
#define AUTO_FD __attribute__((cleanup(auto_fd)))

#define AUTO_CAT2(a, b) a##b
#define AUTO_CAT(a, b) AUTO_CAT2(a, b)
/* Hold a mutex until the end of the scope. */
#define HOLD(m)                                                                                    \
    pthread_mutex_t *AUTO_CAT(held_, __LINE__) __attribute__((cleanup(auto_unlock), unused)) =     \
        auto_lock(m)
