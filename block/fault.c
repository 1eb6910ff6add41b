/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/fault.h"

/* What strikes is decided under a lock; waiting and the call below happen outside of it, so that a
 * slow request does not order the others. */

#include "base/bytes.h"

#include <errno.h>
#include <time.h>

enum { ROOM_BLOCK = 4096 };

struct fault {
    struct blk blk;
    pthread_mutex_t lock; /* for all below */
    struct {
        struct blk_fault rule;
        uint64_t n_matched;
    } rules[BLK_FAULT_RULES];
    unsigned n_rules;
    uint64_t n_struck;
    uint64_t room;          /* bytes; UINT64_MAX: no limit */
    unsigned char *written; /* a byte for each ROOM_BLOCK: was it ever? */
};

static bool fault_matches(const struct blk_fault *rule, enum blk_fault_op op, uint64_t len,
                          uint64_t off)
{
    if ((rule->ops & op) == 0)
        return false;
    if (rule->len == 0)
        return true;
    if (op == BLK_FAULT_FLUSH)
        return false;
    return off < rule->off ? rule->off - off < len : off - rule->off < rule->len;
}

/* The rule that strikes this request, if any, copied to *ret. */
static bool fault_choose(struct fault *f, struct blk_fault *ret, enum blk_fault_op op, uint64_t len,
                         uint64_t off)
{
    HOLD(&f->lock);

    for (unsigned i = 0; i < f->n_rules; i++) {
        const struct blk_fault *rule = &f->rules[i].rule;
        uint64_t n;

        if (!fault_matches(rule, op, len, off))
            continue;
        n = f->rules[i].n_matched++;
        if (n < rule->after || (rule->times != 0 && n - rule->after >= rule->times))
            continue;
        f->n_struck++;
        *ret = *rule;
        return true;
    }
    return false;
}

/* 0, or what the request fails with; *partial as the rule says. */
static int fault_strike(struct fault *f, bool *partial, enum blk_fault_op op, uint64_t len,
                        uint64_t off)
{
    struct blk_fault rule;
    struct timespec wait;

    if (!fault_choose(f, &rule, op, len, off))
        return 0;
    wait = (struct timespec){.tv_sec = rule.delay_us / 1000000,
                             .tv_nsec = rule.delay_us % 1000000 * 1000L};
    while (rule.delay_us > 0 && nanosleep(&wait, &wait) < 0 && errno == EINTR)
        ;
    *partial = rule.partial;
    return -rule.err;
}

/* Take room for a write. Returns how many of its bytes, in whole granules, have room. */
static uint64_t fault_take_room(struct fault *f, uint64_t len, uint64_t off)
{
    HOLD(&f->lock);
    uint64_t need = 0, fits = len;

    for (uint64_t at = bytes_round_down(off, ROOM_BLOCK); at < off + len; at += ROOM_BLOCK) {
        need += f->written[at / ROOM_BLOCK] ? 0 : ROOM_BLOCK;
        if (f->room != UINT64_MAX && need > f->room) {
            fits = at > off ? bytes_round_down(at - off, f->blk.granule) : 0;
            break;
        }
    }
    if (fits == 0)
        return 0;
    for (uint64_t at = bytes_round_down(off, ROOM_BLOCK); at < off + fits; at += ROOM_BLOCK) {
        if (f->room != UINT64_MAX && !f->written[at / ROOM_BLOCK])
            f->room -= ROOM_BLOCK;
        f->written[at / ROOM_BLOCK] = 1;
    }
    return fits;
}

/* A discard gives the blocks back that lie in it as a whole. */
static void fault_give_room(struct fault *f, uint64_t len, uint64_t off)
{
    HOLD(&f->lock);
    uint64_t end = off + len;

    for (uint64_t at = bytes_round_up(off, ROOM_BLOCK);
         at + ROOM_BLOCK <= end || (at < end && end == f->blk.size); at += ROOM_BLOCK) {
        if (f->room != UINT64_MAX && f->written[at / ROOM_BLOCK])
            f->room += ROOM_BLOCK;
        f->written[at / ROOM_BLOCK] = 0;
    }
}

static int fault_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct fault *f = container_of(b, struct fault, blk);
    bool partial;
    int r = fault_strike(f, &partial, BLK_FAULT_READ, len, off);

    if (r == 0)
        return blk_read(b->below, buf, len, off);
    memset(buf, 0xdb, len); /* nothing to rely on */
    return r;
}

static int fault_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct fault *f = container_of(b, struct fault, blk);
    bool partial = false;
    int r = fault_strike(f, &partial, BLK_FAULT_WRITE, len, off);
    size_t part = r == 0 ? len : partial ? bytes_round_down(len / 2, b->granule) : 0;
    size_t fits = fault_take_room(f, part, off);
    int below = blk_write(b->below, buf, fits, off);

    if (r < 0)
        return r;
    return below < 0 ? below : fits < len ? -ENOSPC : 0;
}

static int fault_flush(struct blk *b)
{
    struct fault *f = container_of(b, struct fault, blk);
    bool partial;
    int r = fault_strike(f, &partial, BLK_FAULT_FLUSH, 0, 0);

    return r < 0 ? r : blk_flush(b->below);
}

static int fault_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct fault *f = container_of(b, struct fault, blk);
    bool partial;
    int r = fault_strike(f, &partial, BLK_FAULT_DISCARD, len, off);

    if (r == 0)
        r = blk_discard(b->below, len, off);
    if (r == 0)
        fault_give_room(f, len, off);
    return r;
}

static int fault_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct fault *f = container_of(b, struct fault, blk);
    bool partial;
    int r = fault_strike(f, &partial, BLK_FAULT_DISCARD, len, off);
    uint64_t fits;

    if (r < 0)
        return r;
    fits = fault_take_room(f, len, off);
    r = blk_write_zeroes(b->below, fits, off);
    return r < 0 ? r : fits < len ? -ENOSPC : 0;
}

static int fault_resize(struct blk *b, uint64_t size)
{
    struct fault *f = container_of(b, struct fault, blk);
    uint64_t had = b->size / ROOM_BLOCK + 1, has = size / ROOM_BLOCK + 1;
    unsigned char *written;
    HOLD(&f->lock);

    written = realloc(f->written, has > had ? has : had);
    if (written == NULL)
        return -ENOMEM;
    f->written = written;
    if (has > had)
        memset(written + had, 0, has - had);
    return blk_pass_resize(b, size);
}

static void fault_close(struct blk *b)
{
    struct fault *f = container_of(b, struct fault, blk);

    pthread_mutex_destroy(&f->lock);
    free(f->written);
    free(f);
}

static const struct blk_ops fault_ops = {
    .name = "fault",
    .read = fault_read,
    .write = fault_write,
    .flush = fault_flush,
    .discard = fault_discard,
    .write_zeroes = fault_write_zeroes,
    .extent = blk_pass_extent,
    .stat = blk_pass_stat,
    .resize = fault_resize,
    .close = fault_close,
};

int blk_fault_open(struct blk **ret, struct blk *below)
{
    AUTO_FREE struct fault *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -ENOMEM;
    f->written = calloc(1, below->size / ROOM_BLOCK + 1);
    if (f->written == NULL)
        return -ENOMEM;
    pthread_mutex_init(&f->lock, NULL);
    f->room = UINT64_MAX;
    f->blk = (struct blk){.ops = &fault_ops,
                          .below = below,
                          .size = below->size,
                          .granule = below->granule,
                          .read_only = below->read_only};
    *ret = &TAKE(f)->blk;
    return 0;
}

int blk_fault_add(struct blk *b, const struct blk_fault *rule)
{
    struct fault *f = container_of(b, struct fault, blk);
    HOLD(&f->lock);

    if (f->n_rules == BLK_FAULT_RULES)
        return -ENOSPC;
    f->rules[f->n_rules].rule = *rule;
    f->rules[f->n_rules].n_matched = 0;
    return (int)f->n_rules++;
}

void blk_fault_clear(struct blk *b)
{
    struct fault *f = container_of(b, struct fault, blk);
    HOLD(&f->lock);

    f->n_rules = 0;
}

uint64_t blk_fault_count(struct blk *b)
{
    struct fault *f = container_of(b, struct fault, blk);
    HOLD(&f->lock);

    return f->n_struck;
}

void blk_fault_room(struct blk *b, uint64_t bytes)
{
    struct fault *f = container_of(b, struct fault, blk);
    HOLD(&f->lock);

    f->room = bytes;
}
