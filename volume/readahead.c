/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/readahead.h"

/* The disk is cut into pieces of 128 KiB. A piece that somebody will want soon is a job of the
 * pool: it is read and deciphered into a slot, and lent or copied out when it is asked for. A
 * reader that comes before its pieces are ready takes back those that are still queued and does
 * them itself, by an ordinary read: it never waits for work that has not begun, and a busy pool
 * costs it nothing.
 *
 *     FREE → QUEUED     a stream will want it                    (schedule)
 *     QUEUED → FREE     the reader was faster, or a write over it (take back)
 *     QUEUED → FILLING  a worker has it                          (fill)
 *     FILLING → READY   bytes are there
 *     FILLING → FREE    it failed, or a write over it            (stale)
 *     READY → FREE      read to its end, written over, or another piece needs the slot, once
 *                        nobody uses it any more
 *
 * Why no reader sees old data: the align layer lets no read of a range run at once with a change of
 * it, and a change ends here by dropping every piece it touches. A piece that was filled while the
 * change ran is therefore gone before the next read of that range can look for it; one that is
 * being filled is marked stale and never used. So pieces may be filled without any lock on their
 * range. What was lent stays as it is until it is given back: a change only marks it stale.
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
#define LOAN_MAX ((BLK_LOAN_PARTS - 1) * (size_t)PIECE) /* wherever in a piece it begins */
#define REORDER 8 /* how many of its own lengths a request may be early or late */

enum state { FREE, QUEUED, FILLING, READY };

struct slot {
    struct pool_job job;
    struct readahead *home;
    struct buf *buf;
    uint64_t piece;
    enum state state;
    bool stale;
    unsigned n_users;
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
    } else if (s->state == READY && s->n_users == 0) {
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

static uint64_t distance(const struct stream *st, uint64_t off)
{
    return off > st->next ? off - st->next : st->next - off;
}

/* The stream that this request goes on with, or NULL: the nearest, for where a reader ended near,
 * its stream lies about still. */
static struct stream *nearest_stream(struct readahead *r, size_t len, uint64_t off)
{
    struct stream *found = NULL;

    for (unsigned i = 0; i < STREAMS; i++) {
        struct stream *st = &r->streams[i];

        if (st->hits > 0 && distance(st, off) <= (uint64_t)len * REORDER &&
            (found == NULL || distance(st, off) < distance(found, off)))
            found = st;
    }
    return found;
}

static struct stream *oldest_stream(struct readahead *r)
{
    struct stream *found = &r->streams[0];

    for (unsigned i = 1; i < STREAMS; i++)
        if (r->streams[i].used < found->used)
            found = &r->streams[i];
    return found;
}

/* The stream that this request goes on with, or the one used longest ago, begun anew. */
static struct stream *find_stream(struct readahead *r, size_t len, uint64_t off)
{
    struct stream *st = nearest_stream(r, len, off);

    r->now++;
    if (st == NULL) {
        st = oldest_stream(r);
        *st = (struct stream){.next = off, .window = WINDOW_MIN};
    }
    st->hits++;
    st->used = r->now;
    if (off + len > st->next)
        st->next = off + len;
    return st;
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

static bool usable(const struct slot *s, const struct part *p)
{
    return s->state != FREE && !s->stale && s->piece == p->off / PIECE;
}

enum taken { TAKEN, MISSING, LATER };

/* The lock is held. Keep the slot of a part as it is until give_back(). MISSING: the caller has to
 * read the part, nobody else is at it. LATER: a worker is; with wait that is waited for. */
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
    s->n_users++;
    return TAKEN;
}

/* The lock is held. A part was used; a piece that was read to its end is done with. */
static void give_back(struct readahead *r, struct slot *s, const struct iovec *part)
{
    size_t end = (size_t)((unsigned char *)part->iov_base - s->buf->bytes) + part->iov_len;

    s->n_users--;
    r->stats.used += part->iov_len;
    if (s->n_users == 0 && (s->stale || end == piece_len(r, s->piece))) {
        slot_free(s);
        pthread_cond_broadcast(&r->filled); /* drain() may be waiting for it */
    }
}

static void readahead_take_back(struct blk *b, struct blk_loan *loan)
{
    struct readahead *r = container_of(b, struct readahead, blk);
    HOLD(&r->lock);

    for (unsigned i = 0; i < loan->n; i++)
        if (loan->keep[i] != NULL)
            give_back(r, loan->keep[i], &loan->parts[i]);
}

/* What became of the parts of a request. */
struct parts {
    struct part at[BLK_LOAN_PARTS];
    enum taken taken[BLK_LOAN_PARTS];
    unsigned n;
};

static void take_ready(struct readahead *r, struct parts *parts, unsigned char *buf, size_t len,
                       uint64_t off)
{
    HOLD(&r->lock);
    for (size_t done = 0; done < len; parts->n++) {
        struct part *p = &parts->at[parts->n];

        *p = part_at(buf, len, off, done);
        parts->taken[parts->n] = take_part(r, p, false);
        done += p->len;
    }
}

/* Neighbours in one request, so that all cores share it. */
static int read_missing(struct readahead *r, const struct parts *parts)
{
    int err = 0;

    for (unsigned i = 0; i < parts->n && err == 0; i++) {
        const struct part *first = &parts->at[i];
        size_t run = 0;

        for (; i < parts->n && parts->taken[i] == MISSING; i++)
            run += parts->at[i].len;
        if (run > 0)
            err = blk_read(r->blk.below, first->to, run, first->off);
    }
    return err;
}

/* Nothing is left to do for this request, so before this thread sleeps it does one piece of what
 * the stream will want next: the worker has gone on meanwhile, and no core was idle. One only, for
 * the worker may be waiting for this very core. */
static enum taken take_late_part(struct readahead *r, const struct part *p)
{
    enum taken taken;

    pthread_mutex_lock(&r->lock);
    taken = take_part(r, p, false);
    pthread_mutex_unlock(&r->lock);
    if (taken != LATER)
        return taken;
    pool_help(r->pool);
    HOLD(&r->lock);
    return take_part(r, p, true);
}

static int take_later(struct readahead *r, struct parts *parts)
{
    int err = 0;

    for (unsigned i = 0; i < parts->n && err == 0; i++) {
        const struct part *p = &parts->at[i];

        if (parts->taken[i] != LATER)
            continue;
        parts->taken[i] = take_late_part(r, p);
        if (parts->taken[i] == MISSING)
            err = blk_read(r->blk.below, p->to, p->len, p->off);
    }
    return err;
}

static void list_parts(struct readahead *r, const struct parts *parts, struct blk_loan *loan)
{
    *loan = (struct blk_loan){.lender = &r->blk};
    for (unsigned i = 0; i < parts->n; i++) {
        const struct part *p = &parts->at[i];
        struct slot *s = parts->taken[i] == TAKEN ? slot_of(r, p->off / PIECE) : NULL;
        void *from = s != NULL ? s->buf->bytes + p->off % PIECE : p->to;

        loan->keep[loan->n] = s;
        loan->parts[loan->n++] = (struct iovec){from, p->len};
    }
}

/* First what is ready, then by ordinary reads what nobody is at, last what workers are at by now.
 */
static int lend_parts(struct readahead *r, struct blk_loan *loan, unsigned char *buf, size_t len,
                      uint64_t off)
{
    struct parts parts = {.n = 0};
    int err;

    take_ready(r, &parts, buf, len, off);
    err = read_missing(r, &parts);
    if (err == 0)
        err = take_later(r, &parts);
    list_parts(r, &parts, loan);
    if (err < 0)
        blk_loan_end(loan);
    return err;
}

/* Learn from a request and act on it. */
static void guess(struct readahead *r, size_t len, uint64_t off)
{
    struct stream *st = find_stream(r, len, off);
    struct slot *s = slot_of(r, off / PIECE);

    if (s->piece == off / PIECE)
        window_grow(r, st); /* a right guess, ready or not: who is late has to begin sooner */
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

/* Learn from a request; true when there is nothing that could be ready for it. */
static bool begin_read(struct readahead *r, size_t len, uint64_t off)
{
    HOLD(&r->lock);
    r->n_reading++;
    guess(r, len, off);
    sweep(r);
    return atomic_load(&r->n_active) == 0;
}

static void end_read(struct readahead *r)
{
    HOLD(&r->lock);
    r->n_reading--;
}

/* A request of any length, for who wants the bytes in buf. */
static int read_through(struct readahead *r, unsigned char *buf, size_t len, uint64_t off)
{
    int err = 0;

    while (len > 0 && err == 0) {
        size_t n = len < LOAN_MAX ? len : LOAN_MAX;
        struct blk_loan loan;

        err = lend_parts(r, &loan, buf, n, off);
        off += n;
        len -= n;
        for (unsigned i = 0; err == 0 && i < loan.n; i++) {
            if (loan.parts[i].iov_base != buf)
                memcpy(buf, loan.parts[i].iov_base, loan.parts[i].iov_len);
            buf += loan.parts[i].iov_len;
        }
        blk_loan_end(&loan);
    }
    return err;
}

static int readahead_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct readahead *r = container_of(b, struct readahead, blk);
    bool nothing = begin_read(r, len, off);
    int err = nothing ? blk_read(b->below, buf, len, off) : read_through(r, buf, len, off);

    end_read(r);
    return err;
}

/* You are here: serve_read → ... → align_lend → READAHEAD_LEND → plain_read */
static int readahead_lend(struct blk *b, struct blk_loan *loan, void *buf, size_t len, uint64_t off)
{
    struct readahead *r = container_of(b, struct readahead, blk);
    bool nothing;
    int err;

    if (len > LOAN_MAX)
        return readahead_read(b, buf, len, off);
    nothing = begin_read(r, len, off);
    err = nothing ? blk_read(b->below, buf, len, off) : lend_parts(r, loan, buf, len, off);
    end_read(r);
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
    .lend = readahead_lend,
    .take_back = readahead_take_back,
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
