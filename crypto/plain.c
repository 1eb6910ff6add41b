/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/sector.h"

/* The length-preserving layer: ciphertext lies where plaintext would, data_offset further down.
 *
 * Reads decipher in place, in the caller's private buffer. Writes encipher into a buffer of our
 * own: the caller's is not ours to change. */

#include "base/auto.h"
#include "base/bytes.h"
#include "crypto/layer.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define PIECE_SHORT (64 * 1024) /* bytes: what is worth a hand-off */
#define PIECE_LONG (128 * 1024) /* for requests that fill all threads several times over */
#define SMALL (8 * 1024)        /* writes up to here use the stack */
#define ZEROS_AT_ONCE (1u << 30)

struct plain {
    struct sector_layer layer; /* bufs of PIECE_LONG bytes */
    bool zero_pieces, discard;
};

static struct plain *plain_of(struct blk *b)
{
    return container_of(b, struct plain, layer.blk);
}

/* Two short pieces are not worth a wake-up (measured: 128 KiB at random is 10 % faster inline), and
 * it is what read-ahead asks for in a worker. */
static int run_pieces(struct sector_request *w, pool_fn *fn)
{
    w->piece = w->len >= 4 * PIECE_LONG ? PIECE_LONG : PIECE_SHORT;
    if (w->piece < w->layer->sector_size)
        w->piece = w->layer->sector_size;
    return sector_request_run(w, fn, PIECE_LONG);
}

/* Whose bytes are at off, and how many of *len are. */
static struct sector_engine *engine_at(const struct sector_layer *l, size_t *len, uint64_t off)
{
    if (off >= l->boundary)
        return l->old_engine;
    if (*len > l->boundary - off)
        *len = (size_t)(l->boundary - off);
    return l->engine;
}

static int decipher(struct plain *p, unsigned char *bytes, size_t len, uint64_t off)
{
    while (len > 0) {
        size_t n = len;
        struct sector_engine *e = engine_at(&p->layer, &n, off);
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
        struct sector_engine *e = engine_at(&p->layer, &n, off);
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
    struct sector_request *w = arg;
    struct plain *p = container_of(w->layer, struct plain, layer);
    size_t skip, len;
    int r;

    sector_request_piece(w, i, &skip, &len);
    r = blk_read(p->layer.blk.below, w->to + skip, len, p->layer.data_offset + w->off + skip);
    return r < 0 ? r : decipher(p, w->to + skip, len, w->off + skip);
}

/* serve_read → poison_read → space_read → align_read → PLAIN_READ → file_read */
static int plain_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct sector_request w = {.layer = &plain_of(b)->layer, .to = buf, .len = len, .off = off};

    return run_pieces(&w, read_piece);
}

static int encrypt_and_write(struct plain *p, unsigned char *copy, const unsigned char *from,
                             size_t len, uint64_t off)
{
    int r = encipher(p, copy, from, len, off);

    return r < 0 ? r : blk_write(p->layer.blk.below, copy, len, p->layer.data_offset + off);
}

static int write_piece(void *arg, unsigned i)
{
    static const unsigned char zeros[PIECE_LONG];
    struct sector_request *w = arg;
    struct plain *p = container_of(w->layer, struct plain, layer);
    const unsigned char *from;
    size_t skip, len;

    sector_request_piece(w, i, &skip, &len);
    from = w->from != NULL ? w->from + skip : zeros;
    if (len <= SMALL) {
        _Alignas(4096) unsigned char small[SMALL]; /* no lock for the requests of a random writer */

        return encrypt_and_write(p, small, from, len, w->off + skip);
    }
    AUTO_BUF struct buf *copy = buf_take(p->layer.bufs);

    return encrypt_and_write(p, copy->bytes, from, len, w->off + skip);
}

/* serve_write → poison_write → space_write → align_write → PLAIN_WRITE → file_write */
static int plain_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct sector_request w = {.layer = &plain_of(b)->layer, .from = buf, .len = len, .off = off};

    return run_pieces(&w, write_piece);
}

/* Zeros where zeros below mean nothing: enciphered ones. */
static int write_enciphered_zeros(struct plain *p, uint64_t len, uint64_t off)
{
    int r = 0;

    while (r == 0 && len > 0) {
        size_t n = len < ZEROS_AT_ONCE ? (size_t)len : ZEROS_AT_ONCE;

        r = plain_write(&p->layer.blk, NULL, n, off);
        off += n;
        len -= n;
    }
    return r;
}

static int plain_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct plain *p = plain_of(b);

    if (!p->zero_pieces)
        return write_enciphered_zeros(p, len, off);
    return blk_write_zeroes(b->below, len, p->layer.data_offset + off);
}

/* How far the range at off is a hole or is not, in whole granules. */
static uint64_t same_until(struct plain *p, uint64_t off, bool *hole)
{
    struct blk_extent e;
    uint64_t end;

    *hole = false;
    if (blk_extent(&p->layer.blk, off, &e) < 0)
        return p->layer.blk.size; /* not knowing is no failure: all of it gets zeros */
    end = e.hole ? bytes_round_down(e.end, p->layer.blk.granule)
                 : bytes_round_up(e.end, p->layer.blk.granule);
    *hole = e.hole && end > off;
    return end > off ? end : off + p->layer.blk.granule;
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
            r = blk_write_zeroes(p->layer.blk.below, n, p->layer.data_offset + off);
        off += n;
        len -= n;
    }
    return r;
}

static int plain_discard(struct blk *b, uint64_t len, uint64_t off)
{
    struct plain *p = plain_of(b);

    if (!p->zero_pieces)
        return plain_write_zeroes(b, len, off);
    if (!p->discard)
        return zero_what_is_there(p, len, off);
    return blk_discard(b->below, len, p->layer.data_offset + off);
}

static int plain_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    struct plain *p = plain_of(b);
    int r;

    *ret = (struct blk_extent){.end = b->size};
    if (!p->zero_pieces)
        return 0; /* a hole below reads as noise */
    r = blk_extent(b->below, p->layer.data_offset + off, ret);
    if (r < 0)
        return r;
    ret->end -= p->layer.data_offset;
    if (ret->end > b->size)
        ret->end = b->size;
    return 0;
}

static int plain_resize(struct blk *b, uint64_t size)
{
    struct plain *p = plain_of(b);
    int r;

    if (p->layer.old_engine !=
        NULL) /* on the way to another key, which ends at the size it began with */
        return -EOPNOTSUPP;
    if (size % p->layer.sector_size != 0 || size > INT64_MAX - p->layer.data_offset)
        return -EINVAL;
    r = sector_engine_resize(p->layer.engine, size);
    if (r < 0)
        return r;
    p->layer.end = size;
    if (size < b->size)
        b->size = size;
    r = blk_resize(b->below, p->layer.data_offset + size);
    if (r == 0)
        b->size = size;
    return r;
}

static void plain_close(struct blk *b)
{
    struct plain *p = plain_of(b);

    sector_layer_done(&p->layer);
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
    return 0;
}

/* What the cipher can do in part, and what direct I/O below needs. */
static int check_granule(const struct sector_spec *s, uint32_t granule, struct report *rep)
{
    if (s->size % granule == 0 && s->data_offset % granule == 0)
        return 0;
    return report_error(rep, EINVAL,
                        "the disk does not begin and end at a multiple of the %u bytes that "
                        "direct I/O needs here (use -o direct=off)",
                        granule);
}

int sector_plain_open(struct blk **ret, struct blk *below, const struct sector_spec *spec,
                      struct report *rep)
{
    struct plain *p = calloc(1, sizeof(*p));
    int r;

    if (p == NULL)
        return -ENOMEM;
    p->layer.blk =
        (struct blk){.ops = &plain_ops, .size = spec->size, .read_only = below->read_only};
    p->zero_pieces = spec->zero_pieces;
    p->discard = spec->discard;
    r = sector_layer_init(&p->layer, spec, spec->size, rep);
    if (r == 0)
        r = check_geometry(spec, below, rep);
    if (r == 0) {
        p->layer.blk.granule = sector_engine_granule(p->layer.engine);
        if (p->layer.blk.granule < below->granule)
            p->layer.blk.granule = below->granule;
        r = check_granule(spec, below->granule > SECTOR_PIECE ? below->granule : SECTOR_PIECE, rep);
    }
    if (r == 0)
        r = bufs_open(&p->layer.bufs, spec->n_callers, PIECE_LONG);
    if (r < 0) {
        blk_close(&p->layer.blk);
        return r;
    }
    p->layer.blk.below = below;
    *ret = &p->layer.blk;
    return 0;
}
