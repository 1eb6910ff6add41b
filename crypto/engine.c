/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/engine.h"

/* Contexts of the library are not for two threads at once and a key schedule is not cheap, so they
 * live in lanes: a thread takes a lane while it ciphers, the same one as last time unless somebody
 * is in it, and finds there the contexts of the chunks it met before. Lanes belong to the engine,
 * not to the threads: closing the engine wipes every key wherever it was used, and the number of
 * lanes is the number of threads that cipher at once (-o threads).
 *
 * A request may begin or end inside a sector. XTS enciphers its 16-byte blocks independently, but
 * the library's tweak starts at the first block of the sector, so the blocks before the request are
 * run through as filler in a scratch sector and thrown away; those after it are left out. */

#include "base/auto.h"
#include "base/bytes.h"
#include "crypto/chunkkey.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* Contexts a lane has at most in each direction: 256 GiB of random access. */
#define LANE_CHUNKS 64
#define NO_CHUNK UINT64_MAX

enum direction { DECRYPT, ENCRYPT };

struct context {
    uint64_t chunk;
    EVP_CIPHER_CTX *ctx;
};

struct lane {
    _Alignas(64) atomic_bool taken; /* a line of its own: neighbours are other threads' */
    struct context contexts[2][LANE_CHUNKS];
    unsigned char *scratch; /* one sector; NULL when sectors are single pieces */
    /* counters, written by the holder, read by anyone */
    atomic_ullong cipher_ns, enciphered, deciphered;
};

struct sector_engine {
    const struct cipher *cipher;
    EVP_CIPHER *evp;
    struct chunk_keys *keys;
    uint32_t sector_size;
    uint32_t chunk_shift;
    unsigned n_contexts; /* in each direction of a lane */
    unsigned n_lanes;
    struct lane *lanes;
    unsigned char *scratch; /* of all lanes */
    size_t scratch_len;
    pthread_mutex_t lock; /* only for those who find every lane taken */
    pthread_cond_t dropped;
    atomic_uint n_waiting;
};

static _Thread_local unsigned lane_hint;

static struct lane *lane_try(struct sector_engine *e)
{
    for (unsigned i = 0; i < e->n_lanes; i++) {
        unsigned at = (lane_hint + i) % e->n_lanes;

        if (!atomic_exchange(&e->lanes[at].taken, true)) {
            lane_hint = at;
            return &e->lanes[at];
        }
    }
    return NULL;
}

static struct lane *lane_take(struct sector_engine *e)
{
    struct lane *lane = lane_try(e);

    if (lane != NULL)
        return lane;
    HOLD(&e->lock);
    atomic_fetch_add(&e->n_waiting, 1);
    while ((lane = lane_try(e)) == NULL)
        pthread_cond_wait(&e->dropped, &e->lock);
    atomic_fetch_sub(&e->n_waiting, 1);
    return lane;
}

/* Either this thread sees the waiter, or the waiter, who counted itself first, sees the free lane.
 */
static void lane_drop(struct sector_engine *e, struct lane *lane)
{
    atomic_store(&lane->taken, false);
    if (atomic_load(&e->n_waiting) > 0) {
        HOLD(&e->lock);
        pthread_cond_signal(&e->dropped);
    }
}

/* SP 800-38E by way of FIPS 140 IG A.9: with equal halves the tweak can be cancelled out. */
static bool halves_equal(const struct cipher *c, const unsigned char *key)
{
    return c->xts && secret_equal(key, key + c->key_len / 2, c->key_len / 2);
}

static int context_key(struct sector_engine *e, struct context *c, enum direction dir,
                       uint64_t chunk)
{
    unsigned char key[CHUNK_KEY_MAX];
    int r = chunk_keys_get(e->keys, chunk, key);

    if (r == 0 && halves_equal(e->cipher, key))
        r = -EKEYREJECTED;
    c->chunk = NO_CHUNK;
    if (r == 0 && EVP_CipherInit_ex2(c->ctx, NULL, key, NULL, dir == ENCRYPT, NULL) != 1)
        r = -EIO;
    if (r == 0)
        c->chunk = chunk;
    secret_wipe(key, sizeof(key));
    return r;
}

static int context_get(struct sector_engine *e, struct lane *lane, enum direction dir,
                       uint64_t chunk, EVP_CIPHER_CTX **ret)
{
    struct context *c = &lane->contexts[dir][chunk % e->n_contexts];
    int r = c->chunk == chunk ? 0 : context_key(e, c, dir, chunk);

    *ret = c->ctx;
    return r;
}

/* len bytes from the start of one sector. */
static int run_sector(EVP_CIPHER_CTX *ctx, unsigned char *out, const unsigned char *in, size_t len,
                      uint64_t sector)
{
    unsigned char iv[16] = {0};
    int n;

    bytes_put_le64(iv, sector);
    if (EVP_CipherInit_ex2(ctx, NULL, NULL, iv, -1, NULL) != 1 ||
        EVP_CipherUpdate(ctx, out, &n, in, (int)len) != 1 || (size_t)n != len)
        return -EIO;
    return 0;
}

/* len bytes of one sector from skip bytes after its start. */
static int run_inside(struct lane *lane, EVP_CIPHER_CTX *ctx, unsigned char *out,
                      const unsigned char *in, size_t len, size_t skip, uint64_t sector)
{
    int r;

    if (skip == 0)
        return run_sector(ctx, out, in, len, sector);
    memcpy(lane->scratch + skip, in, len);
    r = run_sector(ctx, lane->scratch, lane->scratch, skip + len, sector);
    if (r == 0)
        memcpy(out, lane->scratch + skip, len);
    secret_wipe(lane->scratch + skip, len);
    return r;
}

static int run(struct sector_engine *e, struct lane *lane, enum direction dir, unsigned char *out,
               const unsigned char *in, size_t len, uint64_t off)
{
    if (e->cipher->evp == NULL) {
        memmove(out, in, len);
        return 0;
    }
    while (len > 0) {
        size_t skip = off % e->sector_size;
        size_t n = e->sector_size - skip < len ? e->sector_size - skip : len;
        EVP_CIPHER_CTX *ctx;
        int r = context_get(e, lane, dir, off >> e->chunk_shift, &ctx);

        if (r == 0)
            r = run_inside(lane, ctx, out, in, n, skip, off / e->sector_size);
        if (r < 0)
            return r;
        out += n;
        in += n;
        off += n;
        len -= n;
    }
    return 0;
}

/* Most pieces are told by their first word. */
static bool piece_is_zero(const unsigned char *piece)
{
    return bytes_get_le64(piece) == 0 && bytes_are_zero(piece, SECTOR_PIECE);
}

/* How many bytes from p on are all zero pieces (zero true) or none of them is. */
static size_t same_kind(const unsigned char *p, size_t len, bool zero)
{
    size_t n = SECTOR_PIECE;

    while (n < len && piece_is_zero(p + n) == zero)
        n += SECTOR_PIECE;
    return n;
}

static int run_zeros(struct sector_engine *e, struct lane *lane, unsigned char *out,
                     const unsigned char *in, size_t len, uint64_t off)
{
    while (len > 0) {
        bool zero = piece_is_zero(in);
        size_t n = same_kind(in, len, zero);
        int r = 0;

        if (!zero)
            r = run(e, lane, DECRYPT, out, in, n, off);
        else if (out != in)
            memset(out, 0, n);
        if (r < 0)
            return r;
        out += n;
        in += n;
        off += n;
        len -= n;
    }
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Only the holder of the lane adds, so load and store serve where an addition would lock the bus.
 */
static void count(atomic_ullong *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

enum what { WHAT_ENCRYPT, WHAT_DECRYPT, WHAT_DECRYPT_ZEROS };

static int in_a_lane(struct sector_engine *e, enum what what, unsigned char *out,
                     const unsigned char *in, size_t len, uint64_t off)
{
    struct lane *lane = lane_take(e);
    uint64_t start = now_ns();
    int r;

    assert(len % SECTOR_PIECE == 0 && off % SECTOR_PIECE == 0);
    if (what == WHAT_DECRYPT_ZEROS)
        r = run_zeros(e, lane, out, in, len, off);
    else
        r = run(e, lane, what == WHAT_ENCRYPT ? ENCRYPT : DECRYPT, out, in, len, off);
    count(&lane->cipher_ns, now_ns() - start);
    count(what == WHAT_ENCRYPT ? &lane->enciphered : &lane->deciphered, len);
    lane_drop(e, lane);
    return r;
}

int sector_encrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off)
{
    return in_a_lane(e, WHAT_ENCRYPT, out, in, len, off);
}

int sector_decrypt(struct sector_engine *e, unsigned char *out, const unsigned char *in, size_t len,
                   uint64_t off)
{
    return in_a_lane(e, WHAT_DECRYPT, out, in, len, off);
}

int sector_decrypt_zeros(struct sector_engine *e, unsigned char *out, const unsigned char *in,
                         size_t len, uint64_t off)
{
    return in_a_lane(e, WHAT_DECRYPT_ZEROS, out, in, len, off);
}

void sector_engine_stats(struct sector_engine *e, struct sector_stats *ret)
{
    *ret = (struct sector_stats){0};
    for (unsigned i = 0; i < e->n_lanes; i++) {
        ret->cipher_ns += atomic_load(&e->lanes[i].cipher_ns);
        ret->bytes_enciphered += atomic_load(&e->lanes[i].enciphered);
        ret->bytes_deciphered += atomic_load(&e->lanes[i].deciphered);
    }
}

static int open_lanes(struct sector_engine *e)
{
    size_t stride = e->sector_size > SECTOR_PIECE ? e->sector_size : 0;

    e->lanes = aligned_alloc(64, e->n_lanes * sizeof(struct lane));
    if (e->lanes == NULL)
        return -ENOMEM;
    memset(e->lanes, 0, e->n_lanes * sizeof(struct lane));
    e->scratch_len = e->n_lanes * stride;
    e->scratch = calloc(1, e->scratch_len > 0 ? e->scratch_len : 1);
    if (e->scratch == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < e->n_lanes; i++) {
        e->lanes[i].scratch = e->scratch + i * stride;
        for (unsigned c = 0; c < LANE_CHUNKS; c++)
            e->lanes[i].contexts[ENCRYPT][c].chunk = e->lanes[i].contexts[DECRYPT][c].chunk =
                NO_CHUNK;
    }
    return 0;
}

static int open_context(struct sector_engine *e, struct context *c, enum direction dir)
{
    EVP_CIPHER_CTX *ctx;

    if (c->ctx != NULL)
        return 0;
    ctx = EVP_CIPHER_CTX_new();
    /* No padding; but XTS never pads, and a context told so tells its cipher with every IV. */
    if (ctx != NULL && EVP_CipherInit_ex2(ctx, e->evp, NULL, NULL, dir == ENCRYPT, NULL) == 1 &&
        (EVP_CIPHER_get_block_size(e->evp) == 1 || EVP_CIPHER_CTX_set_padding(ctx, 0) == 1)) {
        c->ctx = ctx;
        return 0;
    }
    EVP_CIPHER_CTX_free(ctx);
    return -ENOMEM;
}

/* As many in each lane as there are chunks, while that is a number to afford; those that are there
 * stay. A chunk's place depends on the number, so some will get their key once more. */
static int open_contexts(struct sector_engine *e, uint64_t n_chunks)
{
    unsigned n = n_chunks < LANE_CHUNKS ? (unsigned)n_chunks : LANE_CHUNKS;
    int r = 0;

    for (unsigned i = 0; i < e->n_lanes; i++)
        for (unsigned c = 0; c < n && r == 0; c++) {
            r = open_context(e, &e->lanes[i].contexts[DECRYPT][c], DECRYPT);
            if (r == 0)
                r = open_context(e, &e->lanes[i].contexts[ENCRYPT][c], ENCRYPT);
        }
    if (r == 0 && n > e->n_contexts)
        e->n_contexts = n;
    return r;
}

static int open_cipher(struct sector_engine *e, const struct sector_engine_spec *spec,
                       struct report *rep)
{
    uint64_t n_chunks;
    int r;

    if (e->cipher->evp == NULL)
        return 0;
    e->evp = EVP_CIPHER_fetch(NULL, e->cipher->evp, NULL);
    if (e->evp == NULL)
        return report_error(rep, ENOSYS, "this machine's OpenSSL does not offer %s",
                            e->cipher->evp);
    e->chunk_shift = spec->keys->shift;
    n_chunks = (spec->size >> e->chunk_shift) + 1;
    r = chunk_keys_open(&e->keys, spec->keys, e->cipher->key_len);
    if (r == 0)
        r = chunk_keys_warm(e->keys, n_chunks);
    if (r == 0)
        r = open_contexts(e, n_chunks);
    return r < 0 ? report_errno(rep, -r, "cannot prepare the cipher") : 0;
}

int sector_engine_open(struct sector_engine **ret, const struct sector_engine_spec *spec,
                       struct report *rep)
{
    struct sector_engine *e;
    int r;

    if (!bytes_is_power_of_two(spec->sector_size) || spec->sector_size < SECTOR_PIECE ||
        spec->sector_size > spec->cipher->sector_max || spec->n_lanes == 0 ||
        (spec->cipher->evp != NULL &&
         (spec->keys->shift > 63 || (UINT64_C(1) << spec->keys->shift) < spec->sector_size)))
        return report_error(rep, EINVAL, "%s does not take sectors of %u bytes", spec->cipher->name,
                            spec->sector_size);
    e = calloc(1, sizeof(*e));
    if (e == NULL)
        return -ENOMEM;
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->dropped, NULL);
    e->cipher = spec->cipher;
    e->sector_size = spec->sector_size;
    e->n_lanes = spec->n_lanes;
    r = open_lanes(e);
    if (r == 0)
        r = open_cipher(e, spec, rep);
    if (r < 0) {
        sector_engine_close(e);
        return r;
    }
    *ret = e;
    return 0;
}

int sector_engine_resize(struct sector_engine *e, uint64_t size)
{
    uint64_t n_chunks = (size >> e->chunk_shift) + 1;
    int r;

    if (e->cipher->evp == NULL)
        return 0;
    r = chunk_keys_warm(e->keys, n_chunks);
    return r < 0 ? r : open_contexts(e, n_chunks);
}

static void forget_context(struct context *c)
{
    EVP_CIPHER_CTX_free(c->ctx); /* cleanses the schedule */
    *c = (struct context){.chunk = NO_CHUNK};
}

static void forget_contexts(struct sector_engine *e)
{
    for (unsigned i = 0; e->lanes != NULL && i < e->n_lanes; i++) {
        assert(!atomic_load(&e->lanes[i].taken));
        for (unsigned c = 0; c < LANE_CHUNKS; c++) {
            forget_context(&e->lanes[i].contexts[ENCRYPT][c]);
            forget_context(&e->lanes[i].contexts[DECRYPT][c]);
        }
    }
}

void sector_engine_forget(struct sector_engine *e)
{
    if (e == NULL || e->cipher->evp == NULL)
        return;
    forget_contexts(e);
    chunk_keys_forget(e->keys);
    secret_wipe(e->scratch, e->scratch_len);
}

int sector_engine_rekey(struct sector_engine *e, const struct secret *prk, uint64_t size)
{
    int r;

    if (e->cipher->evp == NULL)
        return 0;
    r = chunk_keys_rekey(e->keys, prk);
    if (r == 0)
        r = sector_engine_resize(e, size);
    if (r < 0)
        sector_engine_forget(e);
    return r;
}

void sector_engine_close(struct sector_engine *e)
{
    if (e == NULL)
        return;
    forget_contexts(e);
    chunk_keys_close(e->keys);
    EVP_CIPHER_free(e->evp);
    free(e->scratch);
    free(e->lanes);
    pthread_cond_destroy(&e->dropped);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
