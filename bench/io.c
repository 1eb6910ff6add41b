/* SPDX-License-Identifier: BSD-2-Clause */

/* One measured stream of requests to a file or device: what bench/run times. Prints
 * "BYTES SECONDS P50_US P99_US", the latencies of single requests.
 *
 *     io FILE read|write seq|rand BLOCK BYTES DEPTH SECONDS [buffered]
 *
 * DEPTH threads with synchronous requests (a queue of that depth), O_DIRECT unless buffered. A
 * sequential stream is dealt out in order to the threads. It ends after SECONDS or, with 0, after
 * one pass over BYTES. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES 65536

struct stream {
    int fd;
    bool writes, random;
    size_t block;
    uint64_t n_blocks;
    double seconds;
    double start;
    atomic_ullong next;
    atomic_ullong bytes;
    atomic_bool stop;
};

struct worker {
    struct stream *s;
    pthread_t thread;
    uint64_t random;
    uint32_t *us; /* SAMPLES latencies, the last ones */
    size_t n;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

static bool next_offset(struct worker *w, uint64_t *off)
{
    struct stream *s = w->s;
    uint64_t n = atomic_fetch_add(&s->next, 1);

    if (atomic_load(&s->stop) || (s->seconds <= 0 && n >= s->n_blocks))
        return false;
    *off = (s->random ? next_random(&w->random) : n) % s->n_blocks * s->block;
    return true;
}

static void *work(void *arg)
{
    struct worker *w = arg;
    struct stream *s = w->s;
    void *buf = NULL;
    uint64_t off;

    if (posix_memalign(&buf, 4096, s->block) != 0)
        exit(1);
    memset(buf, 0x5a, s->block);
    while (next_offset(w, &off)) {
        double began = now();
        ssize_t n = s->writes ? pwrite(s->fd, buf, s->block, (off_t)off)
                              : pread(s->fd, buf, s->block, (off_t)off);
        double ended = now();

        if (n != (ssize_t)s->block) {
            fprintf(stderr, "io: request at %llu: %s\n", (unsigned long long)off,
                    n < 0 ? strerror(errno) : "short");
            exit(1);
        }
        w->us[w->n++ % SAMPLES] = (uint32_t)((ended - began) * 1e6 + 0.5);
        atomic_fetch_add(&s->bytes, s->block);
        if (s->seconds > 0 && ended - s->start > s->seconds)
            atomic_store(&s->stop, true);
    }
    free(buf);
    return NULL;
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    struct stream s = {0};
    struct worker *workers;
    uint32_t *all;
    size_t n_all = 0;
    unsigned depth;
    double took;

    if (argc < 8) {
        fprintf(stderr,
                "usage: io FILE read|write seq|rand BLOCK BYTES DEPTH SECONDS [buffered]\n");
        return 2;
    }
    s.writes = strcmp(argv[2], "write") == 0;
    s.random = strcmp(argv[3], "rand") == 0;
    s.block = strtoull(argv[4], NULL, 10);
    s.n_blocks = strtoull(argv[5], NULL, 10) / s.block;
    depth = (unsigned)strtoul(argv[6], NULL, 10);
    s.seconds = strtod(argv[7], NULL);
    s.fd = open(argv[1], (s.writes ? O_RDWR : O_RDONLY) | (argc > 8 ? 0 : O_DIRECT));
    if (s.fd < 0 || s.n_blocks == 0 || depth == 0) {
        fprintf(stderr, "io: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    workers = calloc(depth, sizeof(*workers));
    all = malloc(depth * SAMPLES * sizeof(*all));
    s.start = now();
    for (unsigned i = 0; i < depth; i++) {
        workers[i] = (struct worker){.s = &s, .random = i * 7919 + 1};
        workers[i].us = malloc(SAMPLES * sizeof(*all));
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (unsigned i = 0; i < depth; i++) {
        size_t n;

        pthread_join(workers[i].thread, NULL);
        n = workers[i].n < SAMPLES ? workers[i].n : SAMPLES;
        memcpy(all + n_all, workers[i].us, n * sizeof(*all));
        n_all += n;
    }
    took = now() - s.start;
    qsort(all, n_all, sizeof(*all), by_size);
    printf("%llu %.6f %u %u\n", (unsigned long long)atomic_load(&s.bytes), took, all[n_all / 2],
           all[n_all * 99 / 100]);
    return 0;
}
