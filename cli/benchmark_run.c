/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/benchmark_run.h"

/* A row is the sector engine under the worker pool with the pieces that the data path cuts, so what
 * it shows is what a volume can get from these cores when storage costs nothing. Both directions go
 * from one buffer into another. A volume's reads decipher in place, which is no different for a
 * real cipher, but would show the null one, which then does nothing, as infinitely fast. */

#include "base/auto.h"
#include "base/cpus.h"
#include "base/pool.h"
#include "base/secret.h"
#include "crypto/engine.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define PIECE (128 * 1024) /* bytes, as crypto/plain.c cuts large requests */
#define PIECES_EACH 4      /* of a request, for each thread */
#define PIECES_MIN 8       /* a request of 1 MiB */
#define KDF_PASSES 3
#define MIB_KIB 1024

static const uint32_t kdf_mib[BENCH_KDFS] = {64, 128, 256};

struct timing {
    int64_t start_ns;
    unsigned time_ms;
    struct progress *progress;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int step(const struct timing *t)
{
    uint64_t ms = (uint64_t)(now_ns() - t->start_ns) / 1000000;

    return progress_step(t->progress, ms < t->time_ms ? ms : t->time_ms, t->time_ms);
}

/* --- key derivation --- */

static int derive(double *ret_ms, const struct kdf_cost *cost)
{
    static const unsigned char salt[16];
    AUTO_SECRET struct secret password = {0};
    unsigned char out[32];
    int64_t start;
    int r = secret_copy(&password, "benchmark", 9);

    start = now_ns();
    if (r == 0)
        r = kdf_argon2id(out, &password, salt, cost, NULL);
    *ret_ms = (double)(now_ns() - start) / 1e6;
    return r;
}

/* A machine without the memory leaves the row empty. */
static int measure_kdf(struct bench *b, const struct timing *t)
{
    for (unsigned i = 0; i < BENCH_KDFS; i++) {
        struct bench_kdf *k = &b->kdf[i];
        int r = step(t);

        if (r < 0)
            return r;
        k->cost = (struct kdf_cost){kdf_mib[i] * MIB_KIB, KDF_PASSES, 1};
        if (kdf_check(&k->cost, 0, NULL) < 0 || derive(&k->ms, &k->cost) < 0)
            k->ms = 0;
    }
    return 0;
}

/* What a slot without options costs; its time follows from the passes measured. */
static int choose_new_slot(struct bench *b, const struct timing *t)
{
    const struct kdf_request nothing = {0};
    struct kdf_cost cost;
    int r = step(t);

    if (r < 0 || kdf_choose(&cost, &nothing, NULL) < 0)
        return r;
    b->new_slot.cost = cost;
    for (unsigned i = 0; i < BENCH_KDFS; i++)
        if (b->kdf[i].cost.m_kib == cost.m_kib)
            b->new_slot.ms = b->kdf[i].ms / KDF_PASSES * cost.t;
    return 0;
}

/* --- ciphers --- */

struct cell {
    struct sector_engine *engine;
    struct pool *pool;
    unsigned char *plain, *enciphered; /* n_pieces of PIECE bytes each */
    unsigned n_pieces;
};

static void cell_done(struct cell *c)
{
    sector_engine_close(c->engine);
    pool_close(c->pool);
    free(c->plain);
    free(c->enciphered);
}
#define AUTO_CELL __attribute__((cleanup(cell_done)))

static int encrypt_piece(void *arg, unsigned i)
{
    struct cell *c = arg;
    size_t at = (size_t)i * PIECE;

    return sector_encrypt(c->engine, c->enciphered + at, c->plain + at, PIECE, at);
}

static int decrypt_piece(void *arg, unsigned i)
{
    struct cell *c = arg;
    size_t at = (size_t)i * PIECE;

    return sector_decrypt(c->engine, c->plain + at, c->enciphered + at, PIECE, at);
}

static int cell_open(struct cell *c, const struct bench_row *row, struct report *rep)
{
    AUTO_SECRET struct secret prk = {0};
    struct chunk_rule keys = {.prk = &prk, .shift = 32, .head = "benchmark", .head_len = 9};
    const struct sector_engine_spec spec = {.cipher = row->cipher,
                                            .sector_size = row->sector_size,
                                            .keys = &keys,
                                            .n_lanes = row->n_threads};
    size_t size;
    int r = secret_make(&prk, 32);

    if (r < 0)
        return report_errno(rep, -r, "cannot measure");
    secret_random(prk.bytes, prk.len);
    c->n_pieces = row->n_threads * PIECES_EACH;
    if (c->n_pieces < PIECES_MIN)
        c->n_pieces = PIECES_MIN;
    size = (size_t)c->n_pieces * PIECE;
    c->plain = aligned_alloc(4096, size);
    c->enciphered = aligned_alloc(4096, size);
    if (c->plain == NULL || c->enciphered == NULL)
        return report_errno(rep, ENOMEM, "cannot measure");
    memset(c->plain, 0x5a, size);
    memset(c->enciphered, 0, size);
    r = sector_engine_open(&c->engine, &spec, NULL);
    return r < 0 ? r : pool_open(&c->pool, row->n_threads, rep);
}

/* Requests for so long, at least one after the one that sets up contexts and wakes the workers. */
static int measure(double *ret, struct cell *c, pool_fn *fn, int64_t for_ns, const struct timing *t)
{
    uint64_t bytes = 0;
    int64_t start, passed;
    int r = pool_run(c->pool, fn, c, c->n_pieces);

    start = now_ns();
    do {
        if (r == 0)
            r = step(t);
        if (r == 0)
            r = pool_run(c->pool, fn, c, c->n_pieces);
        if (r < 0)
            return r;
        bytes += (uint64_t)c->n_pieces * PIECE;
        passed = now_ns() - start;
    } while (passed < for_ns);
    *ret = (double)bytes / (double)passed * 1e9;
    return 0;
}

/* -ENOSYS, the library does not have the cipher, is an empty row. */
static int measure_row(struct bench_row *row, int64_t for_ns, const struct timing *t,
                       struct report *rep)
{
    AUTO_CELL struct cell c = {0};
    int r = cell_open(&c, row, rep);

    if (r == -ENOSYS)
        return 0;
    if (r == 0)
        r = measure(&row->encrypt, &c, encrypt_piece, for_ns, t);
    if (r == 0)
        r = measure(&row->decrypt, &c, decrypt_piece, for_ns, t);
    return r;
}

/* --- all of it --- */

static void list_counts(struct bench *b, unsigned n_threads)
{
    unsigned most = n_threads > 0 ? n_threads : cpus_usable();

    if (most > BENCH_THREADS_MAX)
        most = BENCH_THREADS_MAX;
    for (unsigned n = n_threads > 0 ? most : 1; n < most; n *= 2)
        b->counts[b->n_counts++] = n;
    b->counts[b->n_counts++] = most;
}

/* With NULL for the rows it only counts them. */
static unsigned list_rows(struct bench_row *rows, const struct bench *b, uint32_t sector_size)
{
    unsigned n = 0;

    for (const struct cipher *c = ciphers; c->name != NULL; c++)
        for (uint32_t s = BENCH_SECTOR_MIN; s <= BENCH_SECTOR_MAX && s <= c->sector_max; s *= 2)
            for (unsigned i = 0; i < b->n_counts; i++) {
                if (c->legacy || (sector_size != 0 && s != sector_size))
                    continue;
                if (rows != NULL)
                    rows[n] = (struct bench_row){
                        .cipher = c, .sector_size = s, .n_threads = b->counts[i]};
                n++;
            }
    return n;
}

int bench_run(struct bench *ret, const struct bench_spec *spec, struct progress *progress,
              struct report *rep)
{
    const struct timing t = {now_ns(), spec->time_ms, progress};
    AUTO_BENCH struct bench b = {0};
    int64_t left_ns, for_ns;
    int r;

    list_counts(&b, spec->n_threads);
    b.n_rows = list_rows(NULL, &b, spec->sector_size);
    b.rows = calloc(b.n_rows, sizeof(*b.rows));
    if (b.rows == NULL)
        return report_errno(rep, ENOMEM, "cannot measure");
    list_rows(b.rows, &b, spec->sector_size);
    r = measure_kdf(&b, &t);
    if (r == 0)
        r = choose_new_slot(&b, &t);
    left_ns = t.start_ns + (int64_t)spec->time_ms * 1000000 - now_ns();
    for_ns = left_ns > 0 ? left_ns / (2 * b.n_rows) : 0;
    for (unsigned i = 0; i < b.n_rows && r == 0; i++)
        r = measure_row(&b.rows[i], for_ns, &t, rep);
    if (r < 0)
        return r;
    *ret = b;
    b = (struct bench){0};
    return 0;
}

void bench_done(struct bench *b)
{
    free(b->rows);
    *b = (struct bench){0};
}
