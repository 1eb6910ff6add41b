/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The measurements of "hushvol benchmark": the sector engine and the key derivation, as volumes use
 * them, but in memory. */

#include "base/progress.h"
#include "base/report.h"
#include "crypto/cipher.h"
#include "keystore/kdf.h"

#define BENCH_SECTOR_MIN 512
#define BENCH_SECTOR_MAX 65536
#define BENCH_THREADS_MAX 256
#define BENCH_COUNTS 16 /* thread counts: 1, 2, 4 ... and all CPUs */
#define BENCH_KDFS 3

struct bench_spec {
    uint32_t sector_size; /* 0: every one */
    unsigned n_threads;   /* 0: 1, 2, 4 ... CPUs */
    unsigned time_ms;     /* for all of it, about; the key derivations take theirs in any case */
};

struct bench_row {
    const struct cipher *cipher;
    uint32_t sector_size;
    unsigned n_threads;
    double encrypt, decrypt; /* bytes per second; 0: OpenSSL does not offer this cipher here */
};

struct bench_kdf {
    struct kdf_cost cost;
    double ms; /* 0: not enough memory here */
};

struct bench {
    unsigned counts[BENCH_COUNTS], n_counts; /* thread counts, rising */
    struct bench_row *rows;                  /* by cipher, then sector size, then threads */
    unsigned n_rows;
    struct bench_kdf kdf[BENCH_KDFS];
    struct bench_kdf new_slot; /* what a new key slot gets here, and about how long that takes */
};

/* -ENOMEM, -EAGAIN no threads, -EINTR when progress says so (its bytes are milliseconds). */
int bench_run(struct bench *ret, const struct bench_spec *spec, struct progress *progress,
              struct report *rep);
/* Fine on a zeroed struct. */
void bench_done(struct bench *b);
#define AUTO_BENCH __attribute__((cleanup(bench_done)))
