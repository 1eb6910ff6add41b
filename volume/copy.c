/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/copy.h"

/* The disk in windows, a window in chunks, the chunks on a few threads: while one waits for the
 * source another writes, and each chunk is large enough for the stacks to spread it over all cores.
 * Both passes walk the same ranges: those where at least one side has data. So a copy finds what an
 * old device had where the source has a hole, and the comparison proves that it is gone.
 *
 * Progress is asked in the threads, one at a time, so a slow medium delays Ctrl-C by a chunk and
 * not by a window. What failed first on the disk, not in time, is what the user hears. */

#include "base/buf.h"
#include "base/bytes.h"
#include "base/pool.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    THREADS = 3,
    CHUNK = 1 << 20,
    WINDOW = 64 << 20,
    BLOCK = 4096, /* what file systems of hosts leave out */
};

enum what { READING, WRITING, COMPARING };

struct run {
    const struct vol_copy *c;
    bool compare;
    struct pool *pool;
    struct bufs *bufs;
    uint64_t off, end; /* the window */

    pthread_mutex_t lock; /* for all below, while a window is worked on */
    uint64_t done, total; /* bytes */
    int failed;           /* -errno; the rest says where and at what */
    enum what what;
    uint64_t failed_off;
};

/* --- where there is something to do --- */

static int extent_of(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    int r;

    *ret = (struct blk_extent){.end = UINT64_MAX, .hole = true};
    if (off >= b->size)
        return 0;
    r = blk_extent(b, off, ret);
    if (r == 0 && ret->end <= off)
        *ret = (struct blk_extent){.end = off + BLOCK};
    return r;
}

/* Is there nothing at off on either side, and how far does that hold? Data of one side that begins
 * behind *end is found by the next call. */
static int look(const struct vol_copy *c, uint64_t off, struct blk_extent *ret)
{
    struct blk_extent from, to;
    int r = extent_of(c->from, off, &from);

    if (r == 0)
        r = extent_of(c->to, off, &to);
    if (r < 0)
        return r;
    ret->hole = from.hole && to.hole;
    if (ret->hole)
        ret->end = from.end < to.end ? from.end : to.end;
    else if (from.hole || to.hole)
        ret->end = from.hole ? to.end : from.end;
    else
        ret->end = from.end > to.end ? from.end : to.end;
    if (ret->end > c->to->size)
        ret->end = c->to->size;
    return 0;
}

/* --- a chunk --- */

static int fail(struct run *run, int r, enum what what, uint64_t off)
{
    HOLD(&run->lock);

    if (run->failed == 0 || off < run->failed_off) {
        run->failed = r;
        run->what = what;
        run->failed_off = off;
    }
    return r;
}

/* Zeros behind the source's end. */
static int read_source(struct run *run, unsigned char *buf, size_t len, uint64_t off)
{
    struct blk *from = run->c->from;
    uint64_t there = off < from->size ? from->size - off : 0;
    size_t n = there < len ? (size_t)there : len;
    int r = n > 0 ? blk_read(from, buf, n, off) : 0;

    memset(buf + n, 0, len - n);
    return r < 0 ? fail(run, r, READING, off) : 0;
}

/* How many bytes from p are alike, zeros or not, in whole blocks of the disk. */
static size_t alike(const unsigned char *p, size_t len, uint64_t off, bool *zeros)
{
    size_t n = 0;

    while (n < len) {
        size_t block = BLOCK - (size_t)((off + n) % BLOCK);
        bool zero;

        if (block > len - n)
            block = len - n;
        zero = bytes_are_zero(p + n, block);
        if (n > 0 && zero != *zeros)
            break;
        *zeros = zero;
        n += block;
    }
    return n;
}

static int write_copy(struct run *run, const unsigned char *buf, size_t len, uint64_t off)
{
    struct blk *to = run->c->to;

    while (len > 0) {
        bool zeros = false;
        size_t n = run->c->sparse ? alike(buf, len, off, &zeros) : len;
        int r = zeros ? blk_discard(to, n, off) : blk_write(to, buf, n, off);

        if (r < 0)
            return fail(run, r, WRITING, off);
        buf += n;
        off += n;
        len -= n;
    }
    return 0;
}

static int compare(struct run *run, const unsigned char *want, size_t len, uint64_t off)
{
    AUTO_BUF struct buf *got = buf_take(run->bufs);
    size_t same = 0;
    int r = blk_read(run->c->to, got->bytes, len, off);

    if (r < 0)
        return fail(run, r, COMPARING, off);
    if (memcmp(got->bytes, want, len) == 0)
        return 0;
    while (got->bytes[same] == want[same])
        same++;
    return fail(run, -EIO, COMPARING, off + same);
}

static int progress(struct run *run, uint64_t len)
{
    HOLD(&run->lock);

    run->done += len;
    if (run->done > run->total) /* not before: a hole may have been filled by what we do */
        run->total = run->done;
    return progress_step(run->c->progress, run->done, run->total);
}

static int move(struct run *run, size_t len, uint64_t off)
{
    AUTO_BUF struct buf *buf = buf_take(run->bufs);
    int r = read_source(run, buf->bytes, len, off);

    if (r == 0)
        r = run->compare ? compare(run, buf->bytes, len, off)
                         : write_copy(run, buf->bytes, len, off);
    return r < 0 ? r : progress(run, len);
}

static int do_chunk(void *arg, unsigned i)
{
    struct run *run = arg;
    uint64_t off = run->off + (uint64_t)i * CHUNK;
    uint64_t end = run->end - off < CHUNK ? run->end : off + CHUNK;
    int r = 0;

    while (r == 0 && off < end) {
        struct blk_extent e;

        r = look(run->c, off, &e);
        if (r < 0)
            return fail(run, r, READING, off);
        if (e.end > end)
            e.end = end;
        r = e.hole ? 0 : move(run, (size_t)(e.end - off), off);
        off = e.end;
    }
    return r;
}

/* --- the disk --- */

/* What has to be moved, for the progress. */
static int count(struct run *run)
{
    uint64_t off = 0;

    while (off < run->c->to->size) {
        struct blk_extent e;
        int r = look(run->c, off, &e);

        if (r < 0)
            return fail(run, r, READING, off);
        run->total += e.hole ? 0 : e.end - off;
        off = e.end;
    }
    return 0;
}

/* From off on: over what neither side has, then a window. */
static int do_window(struct run *run, uint64_t off)
{
    struct blk_extent e;
    int r = look(run->c, off, &e);

    if (r < 0)
        return fail(run, r, READING, off);
    run->off = e.hole ? e.end : off;
    run->end = run->c->to->size - run->off < WINDOW ? run->c->to->size : run->off + WINDOW;
    return pool_run(run->pool, do_chunk, run,
                    (unsigned)((run->end - run->off + CHUNK - 1) / CHUNK));
}

static int do_disk(struct run *run)
{
    int r = count(run);

    if (r == 0)
        r = progress_step(run->c->progress, 0, run->total);
    for (uint64_t off = 0; r == 0 && off < run->c->to->size; off = run->end)
        r = do_window(run, off);
    return r;
}

static int explain(const struct run *run, int r, struct report *rep)
{
    uint64_t off = run->failed_off;

    if (run->failed == 0 || r == -EINTR) /* nothing of ours failed: broken off, or no memory */
        return r;
    if (run->what == READING)
        return report_errno(rep, -run->failed, "cannot read the source at byte %" PRIu64, off);
    if (run->what == WRITING)
        return report_errno(rep, -run->failed, "cannot write the copy at byte %" PRIu64, off);
    return report_errno(rep, -run->failed,
                        "the copy is not what was written at byte %" PRIu64
                        " (its medium or this machine's memory is faulty)",
                        off);
}

static int run_copy(const struct vol_copy *c, bool compare_only, struct report *rep)
{
    struct run run = {.c = c, .compare = compare_only};
    int r = pool_open(&run.pool, THREADS, rep);

    if (r < 0)
        return r;
    r = bufs_open(&run.bufs, THREADS * 2, CHUNK);
    if (r < 0) {
        pool_close(run.pool);
        return report_errno(rep, -r, "cannot copy");
    }
    pthread_mutex_init(&run.lock, NULL);
    r = explain(&run, do_disk(&run), rep);
    pthread_mutex_destroy(&run.lock);
    pool_close(run.pool);
    bufs_close(run.bufs);
    return r;
}

int vol_copy_run(const struct vol_copy *c, struct report *rep)
{
    return run_copy(c, false, rep);
}

int vol_copy_compare(const struct vol_copy *c, struct report *rep)
{
    return run_copy(c, true, rep);
}

/* Holes are zeros without being read. 1, 0, or -errno. */
static int range_is_zero(struct blk *b, unsigned char *buf, uint64_t off, uint64_t *end,
                         struct report *rep)
{
    struct blk_extent e;
    int r = extent_of(b, off, &e);

    if (r == 0 && e.hole) {
        *end = e.end;
        return 1;
    }
    *end = b->size - off < CHUNK ? b->size : off + CHUNK;
    if (r == 0)
        r = blk_read(b, buf, (size_t)(*end - off), off);
    if (r < 0)
        return report_errno(rep, -r, "cannot read the disk at byte %" PRIu64, off);
    return bytes_are_zero(buf, (size_t)(*end - off));
}

int vol_copy_is_zero(struct blk *b, uint64_t off, struct progress *progress, struct report *rep)
{
    AUTO_FREE unsigned char *buf = malloc(CHUNK);
    uint64_t start = off, end = off;

    if (buf == NULL)
        return report_errno(rep, ENOMEM, "cannot read the disk");
    for (; off < b->size; off = end) {
        int r = progress_step(progress, off - start, b->size - start);

        if (r == 0)
            r = range_is_zero(b, buf, off, &end, rep);
        if (r <= 0)
            return r;
    }
    return 1;
}
