/* SPDX-License-Identifier: BSD-2-Clause */

/* One measured stream of requests to a file or device: what bench/run times.
 *
 *     io FILE op=read|write|rewrite [pattern=seq|rand] [block=BYTES] [size=BYTES] [start=BYTES]
 *             [stride=BYTES] [depth=N] [seconds=S] [warm=S] [direct=0|1] [seed=N]
 *
 * Requests of block bytes lie stride bytes apart in the size bytes from start on. It ends after
 * seconds or, with 0, after one pass; the first warm seconds do not count. A rewrite is a read and
 * a write of the same place. Prints "BYTES SECONDS MEAN_US P50_US P99_US", the latencies of single
 * requests.
 *
 * With depth 1 each request is a plain pread() or pwrite(), as dd and most programs have it. More
 * in flight (reads or writes) are the kernel's asynchronous I/O from this one thread, because
 * threads that block in requests would fight with what is measured for the cores. Why not fio: a
 * stream of 0.3 s has to start at once, a hundred times in a run. */

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES (1 << 18)
#define DEPTH_MAX 256

struct stream {
    const char *path;
    int fd;
    bool reads, writes, random, direct;
    uint64_t block, size, start, stride;
    unsigned depth;
    double seconds, warm;
    uint64_t n_blocks, next, random_state;
    double began; /* of the stream */
    uint64_t bytes, n;
    double latencies; /* their sum */
    uint32_t *ns;     /* the last SAMPLES of them */
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what, const char *which, int err)
{
    fprintf(stderr, "io: %s %s: %s\n", what, which, err != 0 ? strerror(err) : "short");
    exit(1);
}

/* From here on it counts. */
static void begin(struct stream *s, double at)
{
    s->began = at;
    s->warm = 0;
    s->bytes = s->n = 0;
    s->latencies = 0;
}

static bool next_offset(struct stream *s, uint64_t *off)
{
    uint64_t n = s->next++;
    double at = now();

    if (s->warm > 0 && at - s->began > s->warm)
        begin(s, at);
    if (s->seconds > 0 ? at - s->began > s->seconds + s->warm : n >= s->n_blocks)
        return false;
    if (s->random) {
        s->random_state = s->random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        n = s->random_state >> 20;
    }
    *off = s->start + n % s->n_blocks * s->stride;
    return true;
}

static void count(struct stream *s, double seconds)
{
    s->ns[s->n++ % SAMPLES] = (uint32_t)(seconds * 1e9 + 0.5);
    s->latencies += seconds;
    s->bytes += s->block;
}

static void *new_buffer(const struct stream *s)
{
    void *buf = NULL;

    if (posix_memalign(&buf, 4096, s->block) != 0)
        fail("memory for", s->path, ENOMEM);
    memset(buf, 0x5a, s->block); /* not zero: those can be short cuts on the way */
    return buf;
}

static void one_at_a_time(struct stream *s)
{
    void *buf = new_buffer(s);
    uint64_t off;

    while (next_offset(s, &off)) {
        double began = now();
        ssize_t n = (ssize_t)s->block;

        if (s->reads)
            n = pread(s->fd, buf, s->block, (off_t)off);
        if (s->writes && n == (ssize_t)s->block)
            n = pwrite(s->fd, buf, s->block, (off_t)off);
        if (n != (ssize_t)s->block)
            fail("request to", s->path, n < 0 ? errno : 0);
        count(s, now() - began);
    }
    free(buf);
}

struct flight {
    struct iocb iocb;
    double began;
};

static bool prepare(struct stream *s, struct flight *f)
{
    uint64_t off;

    if (!next_offset(s, &off))
        return false;
    f->iocb.aio_offset = (int64_t)off;
    f->began = now();
    return true;
}

static void submit(struct stream *s, aio_context_t aio, struct iocb **list, long n)
{
    while (n > 0) {
        long r = syscall(SYS_io_submit, aio, n, list);

        if (r < 0)
            fail("request to", s->path, errno);
        list += r;
        n -= r;
    }
}

static void many_at_once(struct stream *s)
{
    struct flight *flights = calloc(s->depth, sizeof(*flights));
    struct iocb *list[DEPTH_MAX];
    struct io_event events[DEPTH_MAX];
    aio_context_t aio = 0;
    long n_list = 0, in_flight = 0;

    if (flights == NULL || syscall(SYS_io_setup, s->depth, &aio) < 0)
        fail("asynchronous I/O for", s->path, errno);
    for (unsigned i = 0; i < s->depth; i++) {
        flights[i].iocb = (struct iocb){
            .aio_data = i,
            .aio_lio_opcode = s->writes ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD,
            .aio_fildes = (uint32_t)s->fd,
            .aio_buf = (uintptr_t)new_buffer(s),
            .aio_nbytes = s->block,
        };
        if (prepare(s, &flights[i]))
            list[n_list++] = &flights[i].iocb;
    }
    for (;;) {
        long n;

        submit(s, aio, list, n_list);
        in_flight += n_list;
        n_list = 0;
        if (in_flight == 0)
            break;
        n = syscall(SYS_io_getevents, aio, 1, s->depth, events, NULL);
        if (n < 0)
            fail("answers from", s->path, errno);
        in_flight -= n;
        for (long i = 0; i < n; i++) {
            struct flight *f = &flights[events[i].data];

            if (events[i].res != (int64_t)s->block)
                fail("request to", s->path, events[i].res < 0 ? (int)-events[i].res : 0);
            count(s, now() - f->began);
            if (prepare(s, f))
                list[n_list++] = &f->iocb;
        }
    }
    syscall(SYS_io_destroy, aio);
}

static int by_size(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static bool set(struct stream *s, const char *word)
{
    const char *value = strchr(word, '=');
    size_t len = value != NULL ? (size_t)(value - word) : 0;
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"block", &s->block},
                   {"size", &s->size},
                   {"start", &s->start},
                   {"stride", &s->stride},
                   {"seed", &s->random_state}};

    if (value++ == NULL)
        return false;
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (strlen(numbers[i].name) == len && strncmp(word, numbers[i].name, len) == 0) {
            *numbers[i].number = strtoull(value, NULL, 10);
            return true;
        }
    if (strncmp(word, "op=", 3) == 0) {
        s->writes = strstr(value, "write") != NULL;
        s->reads = strcmp(value, "write") != 0;
    } else if (strncmp(word, "pattern=", 8) == 0)
        s->random = strcmp(value, "rand") == 0;
    else if (strncmp(word, "depth=", 6) == 0)
        s->depth = (unsigned)strtoul(value, NULL, 10);
    else if (strncmp(word, "seconds=", 8) == 0)
        s->seconds = strtod(value, NULL);
    else if (strncmp(word, "warm=", 5) == 0)
        s->warm = strtod(value, NULL);
    else if (strncmp(word, "direct=", 7) == 0)
        s->direct = strcmp(value, "0") != 0;
    else
        return false;
    return true;
}

static void open_stream(struct stream *s)
{
    off_t end;

    s->fd = open(s->path, (s->writes ? O_RDWR : O_RDONLY) | (s->direct ? O_DIRECT : 0));
    if (s->fd < 0 || (end = lseek(s->fd, 0, SEEK_END)) < 0)
        fail("opening", s->path, errno);
    if (s->size == 0)
        s->size = (uint64_t)end - s->start;
    if (s->stride == 0)
        s->stride = s->block;
    s->n_blocks = s->size / s->stride;
    if (s->n_blocks == 0 || s->depth == 0 || s->depth > DEPTH_MAX)
        fail("opening", s->path, EINVAL);
    s->ns = malloc(SAMPLES * sizeof(*s->ns));
    if (s->ns == NULL)
        fail("memory for", s->path, ENOMEM);
}

int main(int argc, char **argv)
{
    struct stream s = {
        .reads = true, .block = 1 << 20, .depth = 1, .direct = true, .random_state = 1};
    double took;
    size_t n;

    for (int i = 2; i < argc; i++)
        if (!set(&s, argv[i])) {
            fprintf(stderr, "io: what is %s?\n", argv[i]);
            return 2;
        }
    if (argc < 2) {
        fprintf(stderr, "usage: io FILE [NAME=VALUE...]\n");
        return 2;
    }
    s.path = argv[1];
    open_stream(&s);
    s.began = now();
    if (s.depth == 1)
        one_at_a_time(&s);
    else
        many_at_once(&s);
    took = now() - s.began;
    n = s.n < SAMPLES ? (size_t)s.n : SAMPLES;
    if (n == 0)
        fail("nothing read from", s.path, 0);
    qsort(s.ns, n, sizeof(*s.ns), by_size);
    printf("%llu %.6f %.3f %.3f %.3f\n", (unsigned long long)s.bytes, took,
           s.latencies / (double)s.n * 1e6, s.ns[n / 2] * 1e-3, s.ns[n * 99 / 100] * 1e-3);
    return 0;
}
