/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/record.h"

/* The log is an array under a lock that is held only to append: requests below run at once. What a
 * request means for a crash follows from the interface: a write counts as done when it returned,
 * and a flush covers what had returned when it was called, not what returned while it ran. So an
 * entry of a flush, which stands where the flush returned, keeps how long the log was at its call.
 *
 * A write that failed may have left anything, and what it left is on the device from then on: the
 * range is read back and logged like a write of just that. */

#include "base/bytes.h"

#include <errno.h>

enum { COPY = 1 << 20 };

struct record {
    struct blk blk;
    unsigned char *before; /* size bytes: the device when the recording began */
    pthread_mutex_t lock;  /* for all below */
    struct blk_record_entry *log;
    size_t n_entries, n_room;
};

/* Takes e->bytes over in any case. */
static int record_append(struct record *rec, const struct blk_record_entry *e)
{
    AUTO_FREE unsigned char *bytes = e->bytes;
    HOLD(&rec->lock);

    if (rec->n_entries == rec->n_room) {
        size_t n = rec->n_room * 2 + 64;
        struct blk_record_entry *more = reallocarray(rec->log, n, sizeof(*more));

        if (more == NULL)
            return -ENOMEM;
        rec->log = more;
        rec->n_room = n;
    }
    rec->log[rec->n_entries] = *e;
    rec->log[rec->n_entries++].bytes = TAKE(bytes);
    return 0;
}

static int record_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct record *rec = container_of(b, struct record, blk);
    struct blk_record_entry e = {BLK_RECORD_WRITE, off, len, 0, malloc(len)};
    int r, logged;

    if (e.bytes == NULL)
        return -ENOMEM;
    memcpy(e.bytes, buf, len); /* first: buf may change while the write runs */
    r = blk_write(b->below, e.bytes, len, off);
    if (r < 0 && blk_read(b->below, e.bytes, len, off) < 0) {
        free(e.bytes);
        return r;
    }
    logged = record_append(rec, &e);
    return r < 0 ? r : logged;
}

static int record_flush(struct blk *b)
{
    struct record *rec = container_of(b, struct record, blk);
    struct blk_record_entry e = {.op = BLK_RECORD_FLUSH};
    int r;

    blk_record_log(b, &e.n_durable);
    r = blk_flush(b->below);
    return r < 0 ? r : record_append(rec, &e);
}

static int record_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct record *rec = container_of(b, struct record, blk);
    const struct blk_record_entry e = {.op = BLK_RECORD_ZERO, .off = off, .len = len};
    int r = blk_discard(b->below, len, off);

    return r < 0 ? r : record_append(rec, &e);
}

static int record_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct record *rec = container_of(b, struct record, blk);
    const struct blk_record_entry e = {.op = BLK_RECORD_ZERO, .off = off, .len = len};
    int r = blk_write_zeroes(b->below, len, off);

    return r < 0 ? r : record_append(rec, &e);
}

static int record_resize(struct blk *b, uint64_t size)
{
    struct record *rec = container_of(b, struct record, blk);
    HOLD(&rec->lock);
    unsigned char *before;

    if (size < b->size)
        return -EOPNOTSUPP;
    before = realloc(rec->before, size + 1);
    if (before == NULL)
        return -ENOMEM;
    rec->before = before;
    memset(before + b->size, 0, size - b->size);
    return blk_pass_resize(b, size);
}

static void record_close(struct blk *b)
{
    struct record *rec = container_of(b, struct record, blk);

    for (size_t i = 0; i < rec->n_entries; i++)
        free(rec->log[i].bytes);
    free(rec->log);
    free(rec->before);
    pthread_mutex_destroy(&rec->lock);
    free(rec);
}

static const struct blk_ops record_ops = {
    .name = "record",
    .read = blk_pass_read,
    .write = record_write,
    .flush = record_flush,
    .discard = record_discard,
    .write_zeroes = record_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = record_resize,
    .close = record_close,
};

static int record_copy_present(struct record *rec, struct blk *below)
{
    for (uint64_t off = 0; off < below->size; off += COPY) {
        uint64_t left = below->size - off;
        int r = blk_read(below, rec->before + off, left < COPY ? left : COPY, off);

        if (r < 0)
            return r;
    }
    return 0;
}

int blk_record_open(struct blk **ret, struct blk *below)
{
    AUTO_BLK struct blk *b = NULL;
    struct record *rec = calloc(1, sizeof(*rec));
    int r;

    if (rec == NULL)
        return -ENOMEM;
    pthread_mutex_init(&rec->lock, NULL);
    b = &rec->blk;
    *b = (struct blk){.ops = &record_ops,
                      .size = below->size,
                      .granule = below->granule,
                      .read_only = below->read_only};
    rec->before = malloc(below->size + 1);
    r = rec->before != NULL ? record_copy_present(rec, below) : -ENOMEM;
    if (r < 0)
        return r;
    b->below = below; /* not before: a failure leaves it to the caller */
    *ret = TAKE(b);
    return 0;
}

const struct blk_record_entry *blk_record_log(struct blk *b, size_t *n_entries)
{
    struct record *rec = container_of(b, struct record, blk);
    HOLD(&rec->lock);

    *n_entries = rec->n_entries;
    return rec->log;
}

/* splitmix64: a small sequence that is the same everywhere for the same seed. */
static uint64_t record_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

/* Does the next piece that no flush covers reach the medium? *state and *n are the replay's. */
static bool record_reached(const struct blk_record_crash *crash, uint64_t *state, unsigned *n)
{
    if (crash->density == BLK_RECORD_BITS)
        return *n < 64 && (crash->seed >> (*n)++ & 1) != 0;
    return crash->density >= BLK_RECORD_ALL || (record_random(state) & 255) < crash->density;
}

static uint64_t record_piece_end(const struct blk_record_entry *e, uint64_t at, uint32_t piece)
{
    uint64_t next = bytes_round_down(at, piece) + piece;

    return next < e->off + e->len ? next : e->off + e->len;
}

static void record_apply(const struct blk_record_entry *e, unsigned char *image, uint64_t at,
                         uint64_t end)
{
    if (e->op == BLK_RECORD_WRITE)
        memcpy(image + at, e->bytes + (at - e->off), end - at);
    else
        memset(image + at, 0, end - at);
}

/* Under the lock: the entries before this one are durable. */
static size_t record_n_durable(const struct record *rec, size_t n_entries)
{
    size_t n = 0;

    for (size_t i = 0; i < n_entries; i++)
        if (rec->log[i].op == BLK_RECORD_FLUSH && rec->log[i].n_durable > n)
            n = rec->log[i].n_durable;
    return n;
}

void blk_record_replay_crash(struct blk *b, unsigned char *image,
                             const struct blk_record_crash *crash)
{
    struct record *rec = container_of(b, struct record, blk);
    HOLD(&rec->lock);
    size_t n_durable = record_n_durable(rec, crash->n_entries);
    uint64_t state = crash->seed, next;
    unsigned n_open = 0;

    memcpy(image, rec->before, b->size);
    for (size_t i = 0; i < crash->n_entries; i++) {
        const struct blk_record_entry *e = &rec->log[i];

        for (uint64_t at = e->off; at < e->off + e->len; at = next) {
            next = record_piece_end(e, at, crash->piece);
            if (i < n_durable || record_reached(crash, &state, &n_open))
                record_apply(e, image, at, next);
        }
    }
}

void blk_record_replay(struct blk *b, unsigned char *image, size_t n_entries, uint64_t seed,
                       unsigned density)
{
    const struct blk_record_crash crash = {
        .n_entries = n_entries, .piece = 4096, .density = density, .seed = seed};

    blk_record_replay_crash(b, image, &crash);
}

size_t blk_record_open_pieces(struct blk *b, size_t n_entries, uint32_t piece)
{
    struct record *rec = container_of(b, struct record, blk);
    HOLD(&rec->lock);
    size_t n = 0;

    for (size_t i = record_n_durable(rec, n_entries); i < n_entries; i++) {
        const struct blk_record_entry *e = &rec->log[i];

        for (uint64_t at = e->off; at < e->off + e->len; n++)
            at = record_piece_end(e, at, piece);
    }
    return n;
}
