/* SPDX-License-Identifier: BSD-2-Clause */
#include "crypto/engine.h"

/* A request may begin or end inside a sector. XTS enciphers its 16-byte blocks independently, but
 * the library's tweak starts at the first block of the sector, so the blocks before the request are
 * run through as filler in a scratch sector and thrown away; those after it are left out.
 *
 * Units with MACs are whole: enciphered, then their ciphertext authenticated; the other way round
 * nothing is deciphered before everything has been verified. */

#include "base/auto.h"
#include "base/bytes.h"
#include "crypto/chunkkey.h"
#include "crypto/lane.h"
#include "crypto/unit.h"

#include <assert.h>
#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <time.h>

struct sector_engine {
    const struct cipher *cipher;
    EVP_CIPHER *evp;         /* NULL for a cipher without a key */
    struct chunk_keys *keys; /* the same */
    struct unit_rules rules;
    uint32_t sector_size;
    uint32_t chunk_shift;
    unsigned n_contexts; /* in each direction of a lane */
    struct lanes lanes;
};

/* SP 800-38E by way of FIPS 140 IG A.9: with equal halves the tweak can be cancelled out. */
static bool halves_equal(const struct cipher *c, const unsigned char *key)
{
    return c->mode == CIPHER_XTS && secret_equal(key, key + c->key_len / 2, c->key_len / 2);
}

static int context_key(struct sector_engine *e, struct lane_context *c, enum direction dir,
                       uint64_t chunk)
{
    unsigned char key[CHUNK_KEY_MAX];
    int r = chunk_keys_get(e->keys, chunk, key);

    if (r == 0 && halves_equal(e->cipher, key))
        r = -EKEYREJECTED;
    c->chunk = LANE_NO_CHUNK;
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
    struct lane_context *c = &lane->contexts[dir][chunk % e->n_contexts];
    int r = c->chunk == chunk ? 0 : context_key(e, c, dir, chunk);

    *ret = c->ctx;
    return r;
}

/* len bytes from the start of the data unit at off. */
static int run_unit(struct sector_engine *e, struct lane *lane, enum direction dir,
                    unsigned char *out, const unsigned char *in, size_t len, uint64_t off)
{
    EVP_CIPHER_CTX *ctx;
    unsigned char iv[16];
    int n, r;

    if (e->evp == NULL) {
        memmove(out, in, len);
        return 0;
    }
    r = context_get(e, lane, dir, off >> e->chunk_shift, &ctx);
    if (r == 0)
        r = unit_iv(&e->rules, lane, iv, off);
    if (r == 0 && (EVP_CipherInit_ex2(ctx, NULL, NULL, iv, -1, NULL) != 1 ||
                   EVP_CipherUpdate(ctx, out, &n, in, (int)len) != 1 || (size_t)n != len))
        r = -EIO;
    return r;
}

/* len bytes of one sector from skip bytes after its start, which is at off. */
static int run_inside(struct sector_engine *e, struct lane *lane, enum direction dir,
                      unsigned char *out, const unsigned char *in, size_t len, size_t skip,
                      uint64_t off)
{
    int r;

    if (skip == 0)
        return run_unit(e, lane, dir, out, in, len, off);
    memcpy(lane->scratch + skip, in, len);
    r = run_unit(e, lane, dir, lane->scratch, lane->scratch, skip + len, off);
    if (r == 0)
        memcpy(out, lane->scratch + skip, len);
    secret_wipe(lane->scratch + skip, len);
    return r;
}

static int run(struct sector_engine *e, struct lane *lane, enum direction dir, unsigned char *out,
               const unsigned char *in, size_t len, uint64_t off)
{
    if (e->evp == NULL) {
        memmove(out, in, len);
        return 0;
    }
    while (len > 0) {
        size_t skip = off % e->sector_size;
        size_t n = e->sector_size - skip < len ? e->sector_size - skip : len;
        int r = run_inside(e, lane, dir, out, in, n, skip, off - skip);

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

enum what { WHAT_ENCRYPT, WHAT_DECRYPT, WHAT_DECRYPT_ZEROS };

static int in_a_lane(struct sector_engine *e, enum what what, unsigned char *out,
                     const unsigned char *in, size_t len, uint64_t off)
{
    struct lane *lane = lane_take(&e->lanes);
    uint64_t start = now_ns();
    int r;

    assert((len | off) % sector_engine_granule(e) == 0);
    if (what == WHAT_DECRYPT_ZEROS)
        r = run_zeros(e, lane, out, in, len, off);
    else
        r = run(e, lane, what == WHAT_ENCRYPT ? ENCRYPT : DECRYPT, out, in, len, off);
    lane_count(&lane->cipher_ns, now_ns() - start);
    lane_count(what == WHAT_ENCRYPT ? &lane->enciphered : &lane->deciphered, len);
    lane_drop(&e->lanes, lane);
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

static int seal_unit(struct sector_engine *e, struct lane *lane, const struct sector_unit *u)
{
    int r = run_unit(e, lane, ENCRYPT, u->out, u->in, u->len, u->off);

    return r < 0 ? r : unit_mac(&e->rules, lane, u->mac, u->out, u->len, u->off);
}

int sector_seal(struct sector_engine *e, const struct sector_unit *units, unsigned n)
{
    struct lane *lane = lane_take(&e->lanes);
    uint64_t start = now_ns(), bytes = 0;
    int r = 0;

    for (unsigned i = 0; i < n && r == 0; i++) {
        r = seal_unit(e, lane, &units[i]);
        bytes += units[i].len;
    }
    lane_count(&lane->cipher_ns, now_ns() - start);
    lane_count(&lane->enciphered, bytes);
    lane_drop(&e->lanes, lane);
    return r;
}

static int verify_unit(struct sector_engine *e, struct lane *lane, const struct sector_unit *u)
{
    unsigned char mac[MAC_MAX];
    int r = unit_mac(&e->rules, lane, mac, u->in, u->len, u->off);

    if (r == 0 && !secret_equal(mac, u->mac, e->rules.mac_len))
        r = -EBADMSG;
    return r;
}

int sector_unseal(struct sector_engine *e, const struct sector_unit *units, unsigned n,
                  unsigned *bad)
{
    struct lane *lane = lane_take(&e->lanes);
    uint64_t start = now_ns(), bytes = 0;
    int r = 0;

    for (unsigned i = 0; i < n && r == 0; i++) {
        r = verify_unit(e, lane, &units[i]);
        if (r == -EBADMSG)
            *bad = i;
    }
    for (unsigned i = 0; i < n && r == 0; i++) {
        r = run_unit(e, lane, DECRYPT, units[i].out, units[i].in, units[i].len, units[i].off);
        bytes += units[i].len;
    }
    lane_count(&lane->cipher_ns, now_ns() - start);
    lane_count(&lane->deciphered, bytes);
    lane_drop(&e->lanes, lane);
    return r;
}

void sector_engine_stats(struct sector_engine *e, struct sector_stats *ret)
{
    *ret = (struct sector_stats){0};
    for (unsigned i = 0; i < e->lanes.n; i++) {
        ret->cipher_ns += atomic_load(&e->lanes.lane[i].cipher_ns);
        ret->bytes_enciphered += atomic_load(&e->lanes.lane[i].enciphered);
        ret->bytes_deciphered += atomic_load(&e->lanes.lane[i].deciphered);
    }
}

static int open_context(struct sector_engine *e, struct lane_context *c, enum direction dir)
{
    if (c->ctx == NULL)
        c->ctx = cipher_context(e->cipher, e->evp, dir == ENCRYPT);
    return c->ctx != NULL ? 0 : -ENOMEM;
}

/* As many in each lane as there are chunks, while that is a number to afford; those that are there
 * stay. A chunk's place depends on the number, so some will get their key once more. */
static int open_contexts(struct sector_engine *e, uint64_t n_chunks)
{
    unsigned n = n_chunks < LANE_CHUNKS ? (unsigned)n_chunks : LANE_CHUNKS;
    int r = 0;

    for (unsigned i = 0; i < e->lanes.n; i++)
        for (unsigned c = 0; c < n && r == 0; c++) {
            r = open_context(e, &e->lanes.lane[i].contexts[DECRYPT][c], DECRYPT);
            if (r == 0)
                r = open_context(e, &e->lanes.lane[i].contexts[ENCRYPT][c], ENCRYPT);
        }
    if (r == 0 && n > e->n_contexts)
        e->n_contexts = n;
    return r;
}

/* What lanes need for a volume of so many bytes, as far as they do not have it. */
static int equip(struct sector_engine *e, uint64_t size)
{
    uint64_t n_chunks = (size >> e->chunk_shift) + 1;
    int r = 0;

    for (unsigned i = 0; i < e->lanes.n && r == 0; i++)
        r = unit_rules_equip(&e->rules, &e->lanes.lane[i]);
    if (r == 0 && e->evp != NULL)
        r = chunk_keys_warm(e->keys, n_chunks);
    if (r == 0 && e->evp != NULL)
        r = open_contexts(e, n_chunks);
    return r;
}

static int open_cipher(struct sector_engine *e, const struct sector_engine_spec *spec,
                       struct report *rep)
{
    if (e->cipher->evp == NULL)
        return 0;
    e->evp = cipher_fetch(e->cipher);
    if (e->evp == NULL)
        return report_error(rep, ENOSYS, "this machine's OpenSSL does not offer %s%s",
                            e->cipher->evp,
                            e->cipher->legacy ? " (its legacy provider has it)" : "");
    e->chunk_shift = spec->keys->derivation == CHUNK_SINGLE ? 63 : spec->keys->shift;
    return chunk_keys_open(&e->keys, spec->keys, e->cipher->key_len);
}

static bool spec_is_sound(const struct sector_engine_spec *s)
{
    bool keyed = s->cipher->evp != NULL;

    if (!bytes_is_power_of_two(s->sector_size) || s->sector_size < SECTOR_PIECE ||
        s->sector_size > s->cipher->sector_max || s->n_lanes == 0)
        return false;
    if (s->units.mac != NULL && s->units.iv == SECTOR_IV_NUMBER)
        return false; /* units are no sectors then */
    return !keyed || s->keys->derivation == CHUNK_SINGLE ||
           (s->keys->shift <= 63 && (UINT64_C(1) << s->keys->shift) >= s->sector_size);
}

int sector_engine_open(struct sector_engine **ret, const struct sector_engine_spec *spec,
                       struct report *rep)
{
    struct sector_engine *e;
    int r;

    if (!spec_is_sound(spec))
        return report_error(rep, EINVAL, "%s does not take sectors of %u bytes", spec->cipher->name,
                            spec->sector_size);
    e = calloc(1, sizeof(*e));
    if (e == NULL)
        return -ENOMEM;
    e->cipher = spec->cipher;
    e->sector_size = spec->sector_size;
    r = lanes_init(&e->lanes, spec->n_lanes,
                   spec->sector_size > SECTOR_PIECE ? spec->sector_size : 0);
    if (r == 0)
        r = open_cipher(e, spec, rep);
    if (r == 0)
        r = unit_rules_init(&e->rules, &spec->units, spec->sector_size, rep);
    if (r == 0)
        r = equip(e, spec->size);
    if (r == -ENOMEM || r == -EIO)
        report_errno(rep, -r, "cannot prepare the cipher");
    if (r < 0) {
        sector_engine_close(e);
        return r;
    }
    *ret = e;
    return 0;
}

uint32_t sector_engine_granule(const struct sector_engine *e)
{
    return e->cipher->mode == CIPHER_CBC ? e->sector_size : SECTOR_PIECE;
}

uint32_t sector_engine_mac_len(const struct sector_engine *e)
{
    return e->rules.mac_len;
}

int sector_engine_resize(struct sector_engine *e, uint64_t size)
{
    return equip(e, size);
}

void sector_engine_forget(struct sector_engine *e)
{
    if (e == NULL)
        return;
    lanes_forget(&e->lanes);
    if (e->keys != NULL)
        chunk_keys_forget(e->keys);
    unit_rules_forget(&e->rules);
}

int sector_engine_rekey(struct sector_engine *e, const struct sector_secrets *secrets,
                        uint64_t size)
{
    int r = unit_rules_rekey(&e->rules, secrets->iv_key, secrets->mac_key);

    if (r == 0 && e->keys != NULL)
        r = chunk_keys_rekey(e->keys, secrets->prk);
    if (r == 0)
        r = equip(e, size);
    if (r < 0)
        sector_engine_forget(e);
    return r;
}

void sector_engine_close(struct sector_engine *e)
{
    if (e == NULL)
        return;
    lanes_done(&e->lanes);
    chunk_keys_close(e->keys);
    unit_rules_done(&e->rules);
    EVP_CIPHER_free(e->evp);
    free(e);
}
