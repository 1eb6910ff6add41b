/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/sector.h"

/* Sectors that carry their MACs: a sector of the disk is a few pieces below, each MAC || ciphertext
 * || zeros (docs/geli-format.md 8). It is a layer of its own, not a mode of the plain one, since
 * what it transfers is more than what it is asked for: pieces are read into a buffer of ours,
 * verified there, and deciphered from there into the caller's, which so never holds what did not
 * verify.
 *
 * A write replaces whole sectors, so it does not care what was there before. Nothing protects
 * against an old sector in the place of a newer one, and a write that the machine's end tears
 * between two pieces leaves a mixture: both are the format's.
 *
 * Storage is never given back: what reads as zeros must verify as zeros. */

#include "base/auto.h"
#include "base/bytes.h"
#include "crypto/layer.h"
#include "crypto/unverified.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

/* Bytes of plaintext that are worth a hand-off: with a hash it is half of what plain takes. */
#define PIECE (32 * 1024)
#define SECTOR_MAX 131072
#define UNITS 64 /* that the engine gets at once */
#define ZEROS_AT_ONCE (1u << 30)

struct hmac_sector {
    struct sector_layer layer; /* bufs of what a request's piece takes below */
    struct unverified unverified;
    uint32_t piece;   /* bytes below: one MAC and one unit */
    uint32_t mac_len; /* bytes */
    uint32_t room;    /* bytes of ciphertext in a piece */
    uint32_t n;       /* pieces of a sector */
};

static struct hmac_sector *hmac_of(struct blk *b)
{
    return container_of(b, struct hmac_sector, layer.blk);
}

/* Where a sector lies, from data_offset on. */
static uint64_t stored_at(const struct hmac_sector *h, uint64_t off)
{
    return off / h->layer.sector_size * h->n * h->piece;
}

/* The next units of a run of sectors, for the engine. */
struct run {
    struct hmac_sector *h;
    unsigned char *stored; /* the pieces of all sectors of the run */
    uint64_t off;          /* of the disk: where it begins */
    size_t n_units, at;
};

static size_t unit_len(const struct hmac_sector *h, size_t number)
{
    size_t piece = number % h->n;

    return piece < h->n - 1 ? h->room : h->layer.sector_size - piece * h->room;
}

/* From the run's beginning, in plaintext. */
static size_t unit_skip(const struct hmac_sector *h, size_t number)
{
    return number / h->n * h->layer.sector_size + number % h->n * h->room;
}

/* Fill units, ciphertext in its place in stored and plain being either's other end; returns how
 * many. */
static unsigned next_units(struct run *run, struct sector_unit units[UNITS], unsigned char *out,
                           const unsigned char *in)
{
    const struct hmac_sector *h = run->h;
    unsigned n = 0;

    for (; n < UNITS && run->at < run->n_units; n++, run->at++) {
        unsigned char *piece = run->stored + run->at * h->piece;

        units[n] = (struct sector_unit){
            .out = out != NULL ? out + unit_skip(h, run->at) : piece + h->mac_len,
            .in = in != NULL ? in + unit_skip(h, run->at) : piece + h->mac_len,
            .mac = piece,
            .len = unit_len(h, run->at),
            .off = h->layer.data_offset + stored_at(h, run->off) + run->at * h->piece,
        };
    }
    return n;
}

static struct run run_of(struct hmac_sector *h, unsigned char *stored, size_t len, uint64_t off)
{
    return (struct run){
        .h = h, .stored = stored, .off = off, .n_units = len / h->layer.sector_size * h->n};
}

/* What is unused in a piece, behind the ciphertext, becomes zeros: whatever was in the buffer is
 * nobody's business below. */
static void clear_slack(const struct hmac_sector *h, const struct sector_unit *u)
{
    size_t used = h->mac_len + u->len;

    memset(u->mac + used, 0, h->piece - used);
}

static int seal(struct hmac_sector *h, unsigned char *stored, const unsigned char *from, size_t len,
                uint64_t off)
{
    struct run run = run_of(h, stored, len, off);
    struct sector_unit units[UNITS];
    unsigned n;
    int r = 0;

    while (r == 0 && (n = next_units(&run, units, NULL, from)) > 0) {
        r = sector_seal(h->layer.engine, units, n);
        for (unsigned i = 0; i < n; i++)
            clear_slack(h, &units[i]);
    }
    return r;
}

/* After a unit that does not verify goes on with the next sector, so that all bad ones are known.
 */
static int unseal(struct hmac_sector *h, unsigned char *to, unsigned char *stored, size_t len,
                  uint64_t off)
{
    struct run run = run_of(h, stored, len, off);
    struct sector_unit units[UNITS];
    unsigned n, bad;
    int ret = 0;

    for (size_t first = 0; (n = next_units(&run, units, to, NULL)) > 0; first = run.at) {
        int r = sector_unseal(h->layer.engine, units, n, &bad);

        if (r == -EBADMSG) {
            uint64_t sector = (first + bad) / h->n, ss = h->layer.sector_size;

            unverified_found(&h->unverified, off + sector * ss, off + (sector + 1) * ss);
            run.at = (size_t)(sector + 1) * h->n;
            ret = r;
        } else if (r < 0) {
            return r;
        }
    }
    return ret;
}

struct reading {
    struct sector_request w;
    atomic_bool bad; /* something did not verify; the other pieces are read all the same, so that
                        what is said is the whole range */
};

static int read_piece(void *arg, unsigned i)
{
    struct reading *reading = arg;
    struct sector_request *w = &reading->w;
    struct hmac_sector *h = container_of(w->layer, struct hmac_sector, layer);
    AUTO_BUF struct buf *stored = buf_take(h->layer.bufs);
    size_t skip, len;
    uint64_t at;
    int r;

    sector_request_piece(w, i, &skip, &len);
    at = stored_at(h, w->off + skip);
    r = blk_read(h->layer.blk.below, stored->bytes,
                 (size_t)(stored_at(h, w->off + skip + len) - at), h->layer.data_offset + at);
    if (r == 0)
        r = unseal(h, w->to + skip, stored->bytes, len, w->off + skip);
    if (r != -EBADMSG)
        return r;
    atomic_store(&reading->bad, true);
    return 0;
}

static int write_piece(void *arg, unsigned i)
{
    static const unsigned char zeros[SECTOR_MAX];
    struct sector_request *w = arg;
    struct hmac_sector *h = container_of(w->layer, struct hmac_sector, layer);
    AUTO_BUF struct buf *stored = buf_take(h->layer.bufs);
    size_t skip, len;
    uint64_t at;
    int r;

    sector_request_piece(w, i, &skip, &len);
    at = stored_at(h, w->off + skip);
    r = seal(h, stored->bytes, w->from != NULL ? w->from + skip : zeros, len, w->off + skip);
    if (r == 0)
        r = blk_write(h->layer.blk.below, stored->bytes,
                      (size_t)(stored_at(h, w->off + skip + len) - at), h->layer.data_offset + at);
    return r;
}

static size_t piece_size(const struct hmac_sector *h)
{
    return h->layer.sector_size > PIECE ? h->layer.sector_size : PIECE;
}

/* serve_read → poison_read → space_read → align_read → HMAC_READ → file_read */
static int hmac_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct hmac_sector *h = hmac_of(b);
    struct reading reading = {
        .w = {.layer = &h->layer, .to = buf, .len = len, .off = off, .piece = piece_size(h)}};
    int r = sector_request_run(&reading.w, read_piece, reading.w.piece);

    return r == 0 && atomic_load(&reading.bad) ? -EBADMSG : r;
}

/* serve_write → poison_write → space_write → align_write → HMAC_WRITE → file_write */
static int hmac_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct hmac_sector *h = hmac_of(b);
    struct sector_request w = {
        .layer = &h->layer, .from = buf, .len = len, .off = off, .piece = piece_size(h)};
    int r = sector_request_run(&w, write_piece, w.piece);

    unverified_mended(&h->unverified, off, off + len);
    return r;
}

static int hmac_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    int r = 0;

    while (r == 0 && len > 0) {
        size_t n = len < ZEROS_AT_ONCE ? (size_t)len : ZEROS_AT_ONCE;

        r = hmac_write(b, NULL, n, off);
        off += n;
        len -= n;
    }
    return r;
}

static int hmac_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    (void)off;
    *ret = (struct blk_extent){.end = b->size};
    return 0;
}

static int hmac_resize(struct blk *b, uint64_t size)
{
    struct hmac_sector *h = hmac_of(b);
    uint64_t end = h->layer.data_offset + stored_at(h, size);
    int r;

    if (size % h->layer.sector_size != 0 ||
        size / h->layer.sector_size > (INT64_MAX - h->layer.data_offset) / h->n / h->piece)
        return -EINVAL;
    r = sector_engine_resize(h->layer.engine, end);
    if (r < 0)
        return r;
    h->layer.end = end;
    if (size < b->size)
        b->size = size;
    r = blk_resize(b->below, end);
    if (r == 0)
        b->size = size;
    return r;
}

static void hmac_close(struct blk *b)
{
    struct hmac_sector *h = hmac_of(b);

    sector_layer_done(&h->layer);
    unverified_done(&h->unverified);
    free(h);
}

static const struct blk_ops hmac_ops = {
    .name = "hmac",
    .read = hmac_read,
    .write = hmac_write,
    .flush = blk_pass_flush,
    .discard = hmac_write_zeroes,
    .write_zeroes = hmac_write_zeroes,
    .extent = hmac_extent,
    .stat = blk_pass_stat,
    .resize = hmac_resize,
    .close = hmac_close,
};

/* How sectors lie below. */
static int lay_out(struct hmac_sector *h, const struct sector_spec *s, struct report *rep)
{
    h->mac_len = s->units.mac != NULL ? sector_mac_length(s->units.mac) : 0;
    h->piece = s->mac_piece;
    if (h->mac_len == 0)
        return report_error(rep, EINVAL, "there is no MAC %s",
                            s->units.mac != NULL ? s->units.mac : "without a name");
    if (!bytes_is_power_of_two(s->sector_size) || s->sector_size > SECTOR_MAX ||
        !bytes_is_power_of_two(h->piece) || h->piece < SECTOR_PIECE || h->piece > s->sector_size)
        return report_error(rep, EINVAL, "pieces of %u bytes do not make sectors of %u", h->piece,
                            s->sector_size);
    h->room = (h->piece - h->mac_len) & ~15u;
    h->n = (s->sector_size + h->room - 1) / h->room;
    return 0;
}

static int check_geometry(const struct hmac_sector *h, const struct sector_spec *s,
                          const struct blk *below, struct report *rep)
{
    uint64_t sectors = s->size / s->sector_size, each = (uint64_t)h->n * h->piece;

    if (s->size % s->sector_size != 0)
        return report_error(rep, EINVAL, "the disk is not a whole number of sectors of %u bytes",
                            s->sector_size);
    if (s->data_offset > below->size || sectors > (below->size - s->data_offset) / each)
        return report_error(rep, EINVAL,
                            "the disk (%" PRIu64 " sectors of %" PRIu64 " bytes from %" PRIu64
                            ") does not fit into %" PRIu64 " bytes",
                            sectors, each, s->data_offset, below->size);
    if (s->old_keys != NULL)
        return report_error(rep, EINVAL, "the keys of authenticated sectors cannot change");
    if (h->piece % below->granule != 0 || s->data_offset % below->granule != 0)
        return report_error(rep, EINVAL,
                            "sectors do not begin at a multiple of the %u bytes that direct I/O "
                            "needs here (use -o direct=off)",
                            below->granule);
    return 0;
}

int sector_hmac_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                     struct report *rep)
{
    struct hmac_sector *h = calloc(1, sizeof(*h));
    int r;

    if (h == NULL)
        return -ENOMEM;
    h->layer.blk = (struct blk){.ops = &hmac_ops,
                                .size = spec->size,
                                .granule = spec->sector_size,
                                .read_only = below->read_only};
    unverified_init(&h->unverified, rep);
    r = lay_out(h, spec, rep);
    if (r == 0)
        r = check_geometry(h, spec, below, rep);
    if (r == 0)
        r = sector_layer_init(&h->layer, spec,
                              spec->data_offset + spec->size / spec->sector_size * h->n * h->piece,
                              rep);
    if (r == 0)
        r = bufs_open(&h->layer.bufs, spec->n_callers,
                      piece_size(h) / spec->sector_size * h->n * h->piece);
    if (r < 0) {
        blk_close(&h->layer.blk);
        return r;
    }
    h->layer.blk.below = below;
    *ret = &h->layer.blk;
    return 0;
}
