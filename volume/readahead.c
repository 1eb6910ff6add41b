/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/readahead.h"

/* The disk is cut into pieces of 128 KiB. A piece that somebody will want soon is a job of the
 * pool: it is read and deciphered into a slot and copied out when it is asked for. A reader that
 * comes before its pieces are ready takes back those that are still queued and does them itself, by
 * an ordinary read: it never waits for work that has not begun, and a busy pool costs it nothing.
 *
 *     FREE → QUEUED     a stream will want it                    (schedule)
 *     QUEUED → FREE     the reader was faster, or a write over it (take back)
 *     QUEUED → FILLING  a worker has it                          (fill)
 *     FILLING → READY   bytes are there
 *     FILLING → FREE    it failed, or a write over it            (stale)
 *     READY → FREE      read to its end, written over, or another piece needs the slot, once
 *                        nobody copies from it any more
 *
 * Why no reader sees old data: the align layer lets no read of a range run at once with a change of
 * it, and a change ends here by dropping every piece it touches. A piece that was filled while the
 * change ran is therefore gone before the next read of that range can look for it; one that is
 * being filled is marked stale and never used. So pieces may be filled without any lock on their
 * range.
 *
 * A piece lives in slot (number modulo slots), so finding one is one look. One mutex guards slots
 * and streams; it is held for a few hundred nanoseconds a request and never while anything is read.
 * A random reader pays for one look at the streams; when many requests of one stream are in flight
 * at once, as below a loop device, those already use all cores, and nothing is prepared. */

#include "base/buf.h"
#include "base/bytes.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#define PIECE (128 * 1024)
#define STREAMS 8
#define WINDOW_MIN (256 * 1024)
#define STALE_AFTER 256 /* requests: what nobody came for by then was a wrong guess */
#define NO_PIECE UINT64_MAX
#define REORDER 8 /* how many of its own lengths a request may be early or late */

enum state { FREE, QUEUED, FILLING, READY };

struct slot {
    struct pool_job job;
    struct readahead *home;
    struct buf *buf;
    uint64_t piece;
    enum state state;
    bool stale;
    unsigned n_copying;
    uint64_t since; /* when it was asked for, in requests */
};

struct stream {
    uint64_t next; /* where the reader is expected next */
    uint64_t window;
    uint64_t ahead; /* the first piece not yet asked for */
    uint64_t used;  /* time of last use, in requests */
    unsigned hits;  /* sequential requests in a row */
};

struct readahead {
    struct blk blk;
    struct pool *pool;
    struct bufs *bufs;
    pthread_mutex_t lock;
    pthread_cond_t filled;
    uint64_t now; /* requests so far */
    unsigned n_reading;
    unsigned n_threads;
    uint64_t window_max;
    atomic_uint n_active; /* slots that are not FREE: a writer that sees 0 has nothing to drop */
    struct stream streams[STREAMS];
    struct vol_readahead_stats stats;
    unsigned n_slots;
    struct slot slots[];
};

static struct slot *slot_of(struct readahead *r, uint64_t piece)
{
    return &r->slots[piece % r->n_slots];
}

/* Bytes of a piece: the last one may be short. */
static size_t piece_len(const struct readahead *r, uint64_t piece)
{
    uint64_t left = r->blk.size - piece * PIECE;

    return left < PIECE ? (size_t)left : PIECE;
}

/* The lock is held, as in all that follows until "you are here". */
static void slot_free(struct slot *s)
{
    s->state = FREE;
    s->piece = NO_PIECE;
    s->stale = false;
    atomic_fetch_sub(&s->home->n_active, 1);
}

/* No longer of use: freed now, or by whoever is in it when they leave. */
static void slot_drop(struct slot *s)
{
    struct readahead *r = s->home;

    if (s->state == FREE)
        return;
    if (s->state == QUEUED && pool_cancel(r->pool, &s->job)) {
        slot_free(s);
    } else if (s->state == READY && s->n_copying == 0) {
        r->stats.wasted += PIECE;
        slot_free(s);
    } else {
        s->stale = true;
    }
}

/* A worker, without the lock: s is QUEUED, and after the pool gave it out nobody takes it back. */
static void fill(void *arg)
{
    struct slot *s = arg;
    struct readahead *r = s->home;
    uint64_t piece;
    bool stale;
    int err = 0;

    pthread_mutex_lock(&r->lock);
    s->state = FILLING;
    piece = s->piece;
    stale = s->stale;
    pthread_mutex_unlock(&r->lock);
    if (!stale)
        err = blk_read(r->blk.below, s->buf->bytes, piece_len(r, piece), piece * PIECE);

    HOLD(&r->lock);
    if (err < 0 || s->stale) {
        slot_free(s); /* who wants it reads it and hears the error */
    } else {
        s->state = READY;
        r->stats.prepared += PIECE;
    }
    pthread_cond_broadcast(&r->filled);
}

/* Ask for a piece unless its slot is in use by something that may still be wanted. */
static bool prepare(struct readahead *r, uint64_t piece)
{
    struct slot *s = slot_of(r, piece);

    if (s->piece == piece)
        return !s->stale;
    if (s->state == READY && r->now - s->since > STALE_AFTER)
        slot_drop(s); /* nobody came for it */
    if (s->state != FREE)
        return false;
    s->piece = piece;
    s->since = r->now;
    s->state = QUEUED;
    atomic_fetch_add(&r->n_active, 1);
    pool_submit(r->pool, &s->job);
    return true;
}

static bool continues(const struct stream *st, size_t len, uint64_t off)
{
    uint64_t slack = (uint64_t)len * REORDER;

    return st->hits > 0 && off + slack >= st->next && off <= st->next + slack;
}

/* The stream that this request goes on with, or the one used longest ago, begun anew. */
static struct stream *find_stream(struct readahead *r, size_t len, uint64_t off)
{
    struct stream *oldest = &r->streams[0];

    r->now++;
    for (unsigned i = 0; i < STREAMS; i++) {
        struct stream *st = &r->streams[i];

        if (continues(st, len, off)) {
            st->hits++;
            st->used = r->now;
            if (off + len > st->next)
                st->next = off + len;
            return st;
        }
        if (st->used < oldest->used)
            oldest = st;
    }
    *oldest = (struct stream){.next = off + len, .window = WINDOW_MIN, .used = r->now, .hits = 1};
    return oldest;
}

/* Twice as far ahead as the reader takes at once, at least; further while it finds things ready. */
static void look_ahead(struct readahead *r, struct stream *st, size_t len)
{
    uint64_t first = (st->next + PIECE - 1) / PIECE; /* a piece half read is not worth preparing */
    uint64_t end, window = st->window;

    if (st->hits < 3 || r->n_reading > r->n_threads)
        return;
    if (len < PIECE && st->next % PIECE != 0)
        first = st->next / PIECE;
    if (window < 2 * (uint64_t)len)
        window = 2 * (uint64_t)len;
    if (window > r->window_max)
        window = r->window_max;
    end = (st->next + window + PIECE - 1) / PIECE;
    if (end > (r->blk.size + PIECE - 1) / PIECE)
        end = (r->blk.size + PIECE - 1) / PIECE;
    if (st->ahead < first || st->ahead > end)
        st->ahead = first;
    while (st->ahead < end && prepare(r, st->ahead))
        st->ahead++;
}

static void window_grow(struct readahead *r, struct stream *st)
{
    if (st->window < r->window_max)
        st->window *= 2;
    if (st->window > r->window_max)
        st->window = r->window_max;
}

/* Part of a request that lies in one piece. */
struct part {
    unsigned char *to;
    size_t len;
    uint64_t off;
};

static struct part part_at(unsigned char *buf, size_t len, uint64_t off, size_t done)
{
    uint64_t at = off + done;
    size_t n = PIECE - (size_t)(at % PIECE);

    return (struct part){buf + done, n < len - done ? n : len - done, at};
}

/* Copy a part out of its READY slot; the lock is let go meanwhile. */
static void copy_out(struct readahead *r, struct slot *s, const struct part *p)
{
    size_t from = (size_t)(p->off % PIECE);
    uint64_t piece = s->piece;

    s->n_copying++;
    pthread_mutex_unlock(&r->lock);
    memcpy(p->to, s->buf->bytes + from, p->len);
    pthread_mutex_lock(&r->lock);
    s->n_copying--;
    r->stats.used += p->len;
    if (s->n_copying == 0 && (s->stale || from + p->len == piece_len(r, piece)))
        slot_free(s);
}

static bool usable(const struct slot *s, const struct part *p)
{
    return s->state != FREE && !s->stale && s->piece == p->off / PIECE;
}

enum taken { TAKEN, MISSING, LATER };

/* Take a part from its slot. MISSING: the caller has to read it, nobody else is at it. LATER: a
 * worker is; with wait that is waited for. */
static enum taken take_part(struct readahead *r, const struct part *p, bool wait)
{
    struct slot *s = slot_of(r, p->off / PIECE);

    if (usable(s, p) && s->state == QUEUED && pool_cancel(r->pool, &s->job))
        slot_free(s);
    while (usable(s, p) && s->state != READY) {
        if (!wait)
            return LATER;
        pthread_cond_wait(&r->filled, &r->lock);
    }
    if (!usable(s, p))
        return MISSING;
    copy_out(r, s, p);
    return TAKEN;
}

#define PARTS 64 /* looked at together: 8 MiB, more than one request has */

/* You are here: serve_read → ... → align_read → READAHEAD_READ → plain_read. First what is
 * ready, then by ordinary reads what nobody is at, last what workers are at by now. */
static int read_parts(struct readahead *r, unsigned char *buf, size_t len, uint64_t off)
{
    enum taken taken[PARTS];
    unsigned n = 0;
    size_t done = 0;
    int err = 0;

    pthread_mutex_lock(&r->lock);
    for (; done < len; n++) {
        struct part p = part_at(buf, len, off, done);

        taken[n] = take_part(r, &p, false);
        done += p.len;
    }
    pthread_mutex_unlock(&r->lock);
    done = 0;
    for (unsigned i = 0; i < n && err == 0;) {
        size_t run = 0;

        while (i < n && taken[i] == MISSING) {
            run += part_at(buf, len, off, done + run).len;
            i++;
        }
        if (run > 0)
            err = blk_read(r->blk.below, buf + done, run, off + done);
        done += run;
        if (i < n)
            done += part_at(buf, len, off, done).len;
        i++;
    }
    done = 0;
    for (unsigned i = 0; i < n && err == 0; i++) {
        struct part p = part_at(buf, len, off, done);

        if (taken[i] == LATER) {
            pthread_mutex_lock(&r->lock);
            taken[i] = take_part(r, &p, true);
            pthread_mutex_unlock(&r->lock);
            if (taken[i] == MISSING)
                err = blk_read(r->blk.below, p.to, p.len, p.off);
        }
        done += p.len;
    }
    return err;
}

static int read_through(struct readahead *r, unsigned char *buf, size_t len, uint64_t off)
{
    const size_t most = (PARTS - 1) * (size_t)PIECE;
    int err = 0;

    while (len > 0 && err == 0) {
        size_t n = len < most ? len : most;

        err = read_parts(r, buf, n, off);
        buf += n;
        off += n;
        len -= n;
    }
    return err;
}

/* Learn from a request and act on it. */
static void guess(struct readahead *r, size_t len, uint64_t off)
{
    struct stream *st = find_stream(r, len, off);
    struct slot *s = slot_of(r, off / PIECE);

    if (s->state == READY && s->piece == off / PIECE)
        window_grow(r, st);
    look_ahead(r, st, len);
}

/* One slot a request: a stream that ended leaves pieces that nobody comes for, and until they are
 * gone every write has to look at them. */
static void sweep(struct readahead *r)
{
    struct slot *s = &r->slots[r->now % r->n_slots];

    if (s->state == READY && r->now - s->since > STALE_AFTER)
        slot_drop(s);
}

static int readahead_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct readahead *r = container_of(b, struct readahead, blk);
    bool nothing;
    int err;

    pthread_mutex_lock(&r->lock);
    r->n_reading++;
    guess(r, len, off);
    sweep(r);
    nothing = atomic_load(&r->n_active) == 0;
    pthread_mutex_unlock(&r->lock);

    err = nothing ? blk_read(b->below, buf, len, off) : read_through(r, buf, len, off);
    HOLD(&r->lock);
    r->n_reading--;
    return err;
}

/* After a change of the range, whether it succeeded or not. If n_active is 0 here, every piece that
 * is asked for later is read after the change. */
static void forget(struct readahead *r, uint64_t len, uint64_t off)
{
    uint64_t first = off / PIECE, last = (off + len - 1) / PIECE;

    if (atomic_load(&r->n_active) == 0)
        return;
    HOLD(&r->lock);
    for (unsigned i = 0; i < r->n_slots; i++) {
        struct slot *s = &r->slots[i];

        if (s->state != FREE && s->piece >= first && s->piece <= last)
            slot_drop(s);
    }
}

static int readahead_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    int r = blk_write(b->below, buf, len, off);

    forget(container_of(b, struct readahead, blk), len, off);
    return r;
}

static int readahead_discard(struct blk *b, uint64_t len, uint64_t off)
{
    int r = blk_discard(b->below, len, off);

    forget(container_of(b, struct readahead, blk), len, off);
    return r;
}

static int readahead_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    int r = blk_write_zeroes(b->below, len, off);

    forget(container_of(b, struct readahead, blk), len, off);
    return r;
}

/* Take back what is queued, wait for what is being filled. */
static void drain(struct readahead *r)
{
    HOLD(&r->lock);
    for (unsigned i = 0; i < r->n_slots; i++) {
        slot_drop(&r->slots[i]);
        while (r->slots[i].state != FREE)
            pthread_cond_wait(&r->filled, &r->lock);
    }
}

/* Nothing prepared may outlive the old size: the last piece becomes longer or shorter, and workers
 * that are in it would meet the change below. */
static int readahead_resize(struct blk *b, uint64_t size)
{
    drain(container_of(b, struct readahead, blk));
    return blk_pass_resize(b, size);
}

static void readahead_close(struct blk *b)
{
    struct readahead *r = container_of(b, struct readahead, blk);

    drain(r);
    for (unsigned i = 0; i < r->n_slots; i++)
        if (r->slots[i].buf != NULL)
            buf_drop(r->slots[i].buf);
    bufs_close(r->bufs);
    pthread_cond_destroy(&r->filled);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static const struct blk_ops readahead_ops = {
    .name = "readahead",
    .read = readahead_read,
    .write = readahead_write,
    .flush = blk_pass_flush,
    .discard = readahead_discard,
    .write_zeroes = readahead_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = readahead_resize,
    .close = readahead_close,
};

int vol_readahead_open(struct blk **ret, struct blk *below, struct pool *pool, uint64_t max,
                       struct report *rep)
{
    unsigned n_slots = (unsigned)((max + PIECE - 1) / PIECE);
    struct readahead *r = calloc(1, sizeof(*r) + n_slots * sizeof(struct slot));
    struct pool_stats stats;

    if (r == NULL)
        return report_errno(rep, ENOMEM, "cannot build the read-ahead layer");
    pool_get_stats(pool, &stats);
    r->blk = (struct blk){.ops = &readahead_ops,
                          .size = below->size,
                          .granule = below->granule,
                          .read_only = below->read_only};
    r->pool = pool;
    r->n_threads = stats.n_threads;
    r->window_max = (uint64_t)n_slots * PIECE;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->filled, NULL);
    if (bufs_open(&r->bufs, n_slots, PIECE) < 0) {
        blk_close(&r->blk);
        return report_errno(rep, ENOMEM, "cannot build the read-ahead layer");
    }
    for (r->n_slots = 0; r->n_slots < n_slots; r->n_slots++) {
        struct slot *s = &r->slots[r->n_slots];

        *s = (struct slot){.home = r, .buf = buf_take(r->bufs), .piece = NO_PIECE};
        s->job = (struct pool_job){.fn = fill, .arg = s};
    }
    r->blk.below = below;
    *ret = &r->blk;
    return 0;
}

void vol_readahead_forget(struct blk *b)
{
    struct readahead *r = container_of(b, struct readahead, blk);

    drain(r);
    bufs_wipe(r->bufs);
    HOLD(&r->lock);
    memset(r->streams, 0, sizeof(r->streams));
}

void vol_readahead_stats(struct blk *b, struct vol_readahead_stats *ret)
{
    struct readahead *r = container_of(b, struct readahead, blk);
    HOLD(&r->lock);

    *ret = r->stats;
}
