/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/sector.h"

/* The length-preserving layer: ciphertext lies where plaintext would, data_offset further down.
 *
 * A request is cut into pieces at absolute multiples of the piece size, so that pieces are whole
 * sectors but at its ends, and a batch of the pool runs them: each does its own transfer and its
 * own cipher work, so reading one piece overlaps deciphering another. What is too short for two
 * pieces is done by the caller inline: a wake-up costs more than it would save.
 *
 * Reads decipher in place, in the caller's private buffer. Writes encipher into a buffer of our
 * own: the caller's is not ours to change. */

#include "base/auto.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "crypto/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PIECE_SHORT (64 * 1024) /* bytes: what is worth a hand-off */
#define PIECE_LONG (128 * 1024) /* for requests that fill all threads several times over */
#define SMALL (8 * 1024)        /* writes up to here use the stack */

struct plain {
    struct blk blk;
    struct sector_engine *engine;
    struct sector_engine *old_engine; /* from boundary on; NULL when there is no boundary */
    uint64_t boundary;                /* bytes of plaintext; UINT64_MAX: all is engine's */
    struct pool *pool;
    struct bufs *bufs; /* of PIECE_LONG bytes */
    uint64_t data_offset;
    uint32_t sector_size;
    bool zero_pieces, discard;
};

struct piecewise {
    struct plain *p;
    unsigned char *to;         /* reads */
    const unsigned char *from; /* writes */
    size_t len;
    uint64_t off;
    size_t piece;
};

static size_t piece_size(const struct plain *p, size_t len)
{
    size_t piece = len >= 4 * PIECE_LONG ? PIECE_LONG : PIECE_SHORT;

    return piece < p->sector_size ? p->sector_size : piece;
}

/* The bytes of a request that piece number i covers. */
static void piece_range(const struct piecewise *w, unsigned i, size_t *skip, size_t *len)
{
    uint64_t first = bytes_round_down(w->off, w->piece) + (uint64_t)i * w->piece;
    uint64_t start = first > w->off ? first : w->off;
    uint64_t end = first + w->piece < w->off + w->len ? first + w->piece : w->off + w->len;

    *skip = (size_t)(start - w->off);
    *len = (size_t)(end - start);
}

static int run_pieces(struct piecewise *w, pool_fn *fn)
{
    uint64_t first, last;

    w->piece = piece_size(w->p, w->len);
    first = w->off / w->piece;
    last = (w->off + w->len - 1) / w->piece;
    /* Two short pieces are not worth a wake-up either (measured: 128 KiB at random is 10 % faster
     * inline), and it is what read-ahead asks for in a worker. */
    if (w->len <= PIECE_LONG || w->p->pool == NULL) {
        for (unsigned i = 0; i <= last - first; i++) {
            int r = fn(w, i);

            if (r < 0)
                return r;
        }
        return 0;
    }
    return pool_run(w->p->pool, fn, w, (unsigned)(last - first + 1));
}

/* Whose bytes are at off, and how many of *len are. */
static struct sector_engine *engine_at(const struct plain *p, size_t *len, uint64_t off)
{
    if (off >= p->boundary)
        return p->old_engine;
    if (*len > p->boundary - off)
        *len = (size_t)(p->boundary - off);
    return p->engine;
}

static int decipher(struct plain *p, unsigned char *bytes, size_t len, uint64_t off)
{
    while (len > 0) {
        size_t n = len;
        struct sector_engine *e = engine_at(p, &n, off);
        int r = p->zero_pieces ? sector_decrypt_zeros(e, bytes, bytes, n, off)
                               : sector_decrypt(e, bytes, bytes, n, off);

        if (r < 0)
            return r;
        bytes += n;
        off += n;
        len -= n;
    }
    return 0;
}

static int encipher(struct plain *p, unsigned char *out, const unsigned char *in, size_t len,
                    uint64_t off)
{
    while (len > 0) {
        size_t n = len;
        struct sector_engine *e = engine_at(p, &n, off);
        int r = sector_encrypt(e, out, in, n, off);

        if (r < 0)
            return r;
        out += n;
        in += n;
        off += n;
        len -= n;
    }
    return 0;
}

static int read_piece(void *arg, unsigned i)
{
    struct piecewise *w = arg;
    struct plain *p = w->p;
    size_t skip, len;
    int r;

    piece_range(w, i, &skip, &len);
    r = blk_read(p->blk.below, w->to + skip, len, p->data_offset + w->off + skip);
    return r < 0 ? r : decipher(p, w->to + skip, len, w->off + skip);
}

/* serve_read → poison_read → space_read → align_read → PLAIN_READ → file_read */
static int plain_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct piecewise w = {
        .p = container_of(b, struct plain, blk), .to = buf, .len = len, .off = off};

    return run_pieces(&w, read_piece);
}

static int encrypt_and_write(struct plain *p, unsigned char *copy, const unsigned char *from,
                             size_t len, uint64_t off)
{
    int r = encipher(p, copy, from, len, off);

    return r < 0 ? r : blk_write(p->blk.below, copy, len, p->data_offset + off);
}

static int write_piece(void *arg, unsigned i)
{
    struct piecewise *w = arg;
    size_t skip, len;

    piece_range(w, i, &skip, &len);
    if (len <= SMALL) {
        _Alignas(4096) unsigned char small[SMALL]; /* no lock for the requests of a random writer */

        return encrypt_and_write(w->p, small, w->from + skip, len, w->off + skip);
    }
    AUTO_BUF struct buf *copy = buf_take(w->p->bufs);

    return encrypt_and_write(w->p, copy->bytes, w->from + skip, len, w->off + skip);
}

/* serve_write → poison_write → space_write → align_write → PLAIN_WRITE → file_write */
static int plain_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct piecewise w = {
        .p = container_of(b, struct plain, blk), .from = buf, .len = len, .off = off};

    return run_pieces(&w, write_piece);
}

/* Zeros where zeros below mean nothing: enciphered ones. */
static int write_enciphered_zeros(struct plain *p, uint64_t len, uint64_t off)
{
    static const unsigned char zeros[PIECE_LONG];

    while (len > 0) {
        size_t n = len < sizeof(zeros) ? (size_t)len : sizeof(zeros);
        int r = plain_write(&p->blk, zeros, n, off);

        if (r < 0)
            return r;
        off += n;
        len -= n;
    }
    return 0;
}

static int plain_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct plain *p = container_of(b, struct plain, blk);

    if (!p->zero_pieces)
        return write_enciphered_zeros(p, len, off);
    return blk_write_zeroes(b->below, len, p->data_offset + off);
}

/* How far the range at off is a hole or is not, in whole granules. */
static uint64_t same_until(struct plain *p, uint64_t off, bool *hole)
{
    struct blk_extent e;
    uint64_t end;

    *hole = false;
    if (blk_extent(&p->blk, off, &e) < 0)
        return p->blk.size; /* not knowing is no failure: all of it gets zeros */
    end = e.hole ? bytes_round_down(e.end, p->blk.granule) : bytes_round_up(e.end, p->blk.granule);
    *hole = e.hole && end > off;
    return end > off ? end : off + p->blk.granule;
}

/* Zeros where nothing may be given back. Holes read as zeros already, and stay: else a trim of free
 * space would fill a sparse container with the very space that nobody uses. */
static int zero_what_is_there(struct plain *p, uint64_t len, uint64_t off)
{
    int r = 0;

    while (r == 0 && len > 0) {
        bool hole;
        uint64_t n = same_until(p, off, &hole) - off;

        if (n > len)
            n = len;
        if (!hole)
            r = blk_write_zeroes(p->blk.below, n, p->data_offset + off);
        off += n;
        len -= n;
    }
    return r;
}

static int plain_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct plain *p = container_of(b, struct plain, blk);

    if (!p->zero_pieces)
        return plain_write_zeroes(b, len, off);
    if (!p->discard)
        return zero_what_is_there(p, len, off);
    return blk_discard(b->below, len, p->data_offset + off);
}

static int plain_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    struct plain *p = container_of(b, struct plain, blk);
    int r;

    *ret = (struct blk_extent){.end = b->size};
    if (!p->zero_pieces)
        return 0; /* a hole below reads as noise */
    r = blk_extent(b->below, p->data_offset + off, ret);
    if (r < 0)
        return r;
    ret->end -= p->data_offset;
    if (ret->end > b->size)
        ret->end = b->size;
    return 0;
}

static int plain_resize(struct blk *b, uint64_t size)
{
    struct plain *p = container_of(b, struct plain, blk);
    int r;

    if (p->old_engine != NULL) /* on the way to another key, which ends at the size it began with */
        return -EOPNOTSUPP;
    if (size % p->sector_size != 0 || size > INT64_MAX - p->data_offset)
        return -EINVAL;
    r = sector_engine_resize(p->engine, size);
    if (r < 0)
        return r;
    if (size < b->size)
        b->size = size;
    r = blk_resize(b->below, p->data_offset + size);
    if (r == 0)
        b->size = size;
    return r;
}

static void plain_close(struct blk *b)
{
    struct plain *p = container_of(b, struct plain, blk);

    sector_engine_close(p->engine);
    sector_engine_close(p->old_engine);
    bufs_close(p->bufs);
    free(p);
}

static const struct blk_ops plain_ops = {
    .name = "plain",
    .read = plain_read,
    .write = plain_write,
    .flush = blk_pass_flush,
    .discard = plain_discard,
    .write_zeroes = plain_write_zeroes,
    .extent = plain_extent,
    .stat = blk_pass_stat,
    .resize = plain_resize,
    .close = plain_close,
};

/* Written so that no sum can overflow. */
static int check_geometry(const struct sector_spec *s, const struct blk *below, struct report *rep)
{
    uint32_t granule = below->granule > SECTOR_PIECE ? below->granule : SECTOR_PIECE;

    if (s->data_offset > below->size || s->size > below->size - s->data_offset)
        return report_error(rep, EINVAL,
                            "the disk (%" PRIu64 " bytes from %" PRIu64
                            ") does not fit into %" PRIu64 " bytes",
                            s->size, s->data_offset, below->size);
    if (s->old_keys != NULL && (s->boundary > s->size || s->boundary % s->sector_size != 0))
        return report_error(rep, EINVAL, "the keys cannot change at byte %" PRIu64, s->boundary);
    if (s->size % s->sector_size != 0)
        return report_error(rep, EINVAL, "the disk is not a whole number of sectors of %u bytes",
                            s->sector_size);
    if (s->size % granule != 0 || s->data_offset % granule != 0)
        return report_error(rep, EINVAL,
                            "the disk does not begin and end at a multiple of the %u bytes that "
                            "direct I/O needs here (use -o direct=off)",
                            granule);
    return 0;
}

int sector_plain_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                      struct report *rep)
{
    struct sector_engine_spec engine = {.cipher = spec->cipher,
                                        .sector_size = spec->sector_size,
                                        .size = spec->size,
                                        .keys = &spec->keys,
                                        .n_lanes = spec->n_lanes};
    struct plain *p = calloc(1, sizeof(*p));
    int r;

    if (p == NULL)
        return -ENOMEM;
    p->blk = (struct blk){.ops = &plain_ops,
                          .size = spec->size,
                          .granule = below->granule > SECTOR_PIECE ? below->granule : SECTOR_PIECE,
                          .read_only = below->read_only};
    p->pool = spec->pool;
    p->data_offset = spec->data_offset;
    p->sector_size = spec->sector_size;
    p->zero_pieces = spec->zero_pieces;
    p->discard = spec->discard;
    p->boundary = spec->old_keys != NULL ? spec->boundary : UINT64_MAX;
    r = sector_engine_open(&p->engine, &engine, rep);
    engine.keys = spec->old_keys;
    if (r == 0 && spec->old_keys != NULL)
        r = sector_engine_open(&p->old_engine, &engine, rep);
    if (r == 0)
        r = check_geometry(spec, below, rep);
    if (r == 0)
        r = bufs_open(&p->bufs, spec->n_callers, PIECE_LONG);
    if (r < 0) {
        blk_close(&p->blk);
        return r;
    }
    p->blk.below = below;
    *ret = &p->blk;
    return 0;
}

void sector_plain_forget(struct blk *b)
{
    struct plain *p = container_of(b, struct plain, blk);

    sector_engine_forget(p->engine);
    sector_engine_forget(p->old_engine);
    bufs_wipe(p->bufs);
}

int sector_plain_rekey(struct blk *b, const struct secret *prk, const struct secret *old_prk)
{
    struct plain *p = container_of(b, struct plain, blk);
    int r;

    if ((old_prk != NULL) != (p->old_engine != NULL))
        return -EINVAL;
    r = sector_engine_rekey(p->engine, prk, b->size);
    if (r == 0 && old_prk != NULL)
        r = sector_engine_rekey(p->old_engine, old_prk, b->size);
    if (r < 0)
        sector_plain_forget(b);
    return r;
}

void sector_plain_stats(struct blk *b, struct sector_stats *ret)
{
    struct plain *p = container_of(b, struct plain, blk);
    struct sector_stats old = {0};

    sector_engine_stats(p->engine, ret);
    if (p->old_engine != NULL)
        sector_engine_stats(p->old_engine, &old);
    ret->cipher_ns += old.cipher_ns;
    ret->bytes_enciphered += old.bytes_enciphered;
    ret->bytes_deciphered += old.bytes_deciphered;
}
