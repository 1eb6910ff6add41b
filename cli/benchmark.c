/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol benchmark: what this machine's cores can encipher, and what its key slots cost. */

#include "base/cpus.h"
#include "base/pool.h"
#include "base/size.h"
#include "cli/benchmark_run.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define SECONDS_MIN 0.1
#define SECONDS_MAX 3600.0

/* clang-format off */
static const char usage[] =
    "Usage: hushvol benchmark [OPTION...]\n"
    "\n"
    "How fast every cipher is here, in memory, by sector size and number of threads, and how long\n"
    "the key derivation of a slot takes. The cipher null only copies: it shows the memory's limit.\n"
    "\n"
    "      --sector-size SIZE   only this one (512 to 64K)\n"
    "      --threads N          only so many (1, 2, 4 ... and all CPUs)\n"
    "      --seconds S          for all of it, about (10)\n"
    "      --json               one object\n"
    "\n"
    "Examples:\n"
    "  hushvol benchmark\n"
    "  hushvol benchmark --sector-size 4096 --seconds 3\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN, OPT_SECTOR_SIZE, OPT_THREADS, OPT_SECONDS };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {"sector-size", required_argument, NULL, OPT_SECTOR_SIZE},
    {"threads", required_argument, NULL, OPT_THREADS},
    {"seconds", required_argument, NULL, OPT_SECONDS},
    {0},
};

struct request {
    struct bench_spec spec;
    bool json, help;
};

/* --- text --- */

static void print_heading(const struct bench *b)
{
    printf("MB/s in memory (1 MB = 1000000 bytes), encryption and decryption\n\n%-16s %7s",
           "cipher", "sector");
    for (unsigned i = 0; i < b->n_counts; i++) {
        char text[32];

        snprintf(text, sizeof(text), "%u thread%s", b->counts[i], b->counts[i] == 1 ? "" : "s");
        printf("%19s", text);
    }
    printf("\n%24s", "");
    for (unsigned i = 0; i < b->n_counts; i++)
        printf("  %8s %8s", "enc", "dec");
    printf("\n");
}

static void print_speed(double bytes_per_s)
{
    if (bytes_per_s > 0)
        printf(" %8.0f", bytes_per_s / 1e6);
    else
        printf(" %8s", "-");
}

/* Rows of one cipher and sector size are one line. */
static void print_ciphers(const struct bench *b)
{
    const struct cipher *last = NULL;

    print_heading(b);
    for (unsigned i = 0; i < b->n_rows; i++) {
        const struct bench_row *row = &b->rows[i];

        if (i % b->n_counts == 0)
            printf("%-16s %7" PRIu32, row->cipher == last ? "" : row->cipher->name,
                   row->sector_size);
        last = row->cipher;
        printf(" ");
        print_speed(row->encrypt);
        print_speed(row->decrypt);
        if (i % b->n_counts == b->n_counts - 1)
            printf("%s\n", row->cipher->evp == NULL ? "  copies, encrypts nothing" : "");
    }
}

static void print_kdfs(const struct bench *b)
{
    const struct bench_kdf *slot = &b->new_slot;
    char size[SIZE_TEXT];

    printf("\nargon2id\n");
    for (unsigned i = 0; i < BENCH_KDFS; i++) {
        const struct bench_kdf *k = &b->kdf[i];

        printf("%10s, %2" PRIu32 " passes", size_format(size, (uint64_t)k->cost.m_kib * 1024),
               k->cost.t);
        if (k->ms > 0)
            printf(" %8.0f ms\n", k->ms);
        else
            printf("  not enough memory\n");
    }
    if (slot->ms > 0)
        printf("%10s, %2" PRIu32 " passes %8.0f ms  (a new key slot)\n",
               size_format(size, (uint64_t)slot->cost.m_kib * 1024), slot->cost.t, slot->ms);
}

/* --- json --- */

static void put(struct json_object *to, const char *key, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.1f", value);
    json_object_object_add(to, key, value > 0 ? json_object_new_double_s(value, text) : NULL);
}

static struct json_object *row_json(const struct bench_row *row)
{
    struct json_object *o = json_object_new_object();

    json_object_object_add(o, "cipher", json_object_new_string(row->cipher->name));
    json_object_object_add(o, "encrypts", json_object_new_boolean(row->cipher->evp != NULL));
    json_object_object_add(o, "sector_size", json_object_new_int64(row->sector_size));
    json_object_object_add(o, "threads", json_object_new_int64(row->n_threads));
    put(o, "encrypt_mb_per_s", row->encrypt / 1e6);
    put(o, "decrypt_mb_per_s", row->decrypt / 1e6);
    return o;
}

static struct json_object *kdf_json(const struct bench_kdf *k)
{
    struct json_object *o = json_object_new_object();

    json_object_object_add(o, "name", json_object_new_string("argon2id"));
    json_object_object_add(o, "memory", json_object_new_uint64((uint64_t)k->cost.m_kib * 1024));
    json_object_object_add(o, "iterations", json_object_new_int64(k->cost.t));
    put(o, "ms", k->ms);
    return o;
}

static int print_json(const struct bench *b)
{
    struct json_object *o = json_object_new_object();
    struct json_object *rows = json_object_new_array(), *kdf = json_object_new_array();

    for (unsigned i = 0; i < b->n_rows; i++)
        json_object_array_add(rows, row_json(&b->rows[i]));
    for (unsigned i = 0; i < BENCH_KDFS; i++)
        json_object_array_add(kdf, kdf_json(&b->kdf[i]));
    json_object_object_add(o, "cpus", json_object_new_int64(cpus_usable()));
    json_object_object_add(o, "rows", rows);
    json_object_object_add(o, "kdf", kdf);
    json_object_object_add(o, "new_slot", b->new_slot.ms > 0 ? kdf_json(&b->new_slot) : NULL);
    return cmd_json_print(o);
}

/* --- words --- */

static int take_sector_size(struct request *q)
{
    uint64_t size;

    if (size_parse(&size, optarg) < 0 || size < BENCH_SECTOR_MIN || size > BENCH_SECTOR_MAX ||
        (size & (size - 1)) != 0)
        return cmd_usage(&cmd_benchmark, "--sector-size takes 512, 1K, 2K ... 64K, not \"%s\"",
                         optarg);
    q->spec.sector_size = (uint32_t)size;
    return 0;
}

static int take_threads(struct request *q)
{
    uint64_t n;

    if (size_parse(&n, optarg) < 0 || n < 1 || n > BENCH_THREADS_MAX)
        return cmd_usage(&cmd_benchmark, "--threads takes 1 to %u, not \"%s\"", BENCH_THREADS_MAX,
                         optarg);
    q->spec.n_threads = (unsigned)n;
    return 0;
}

static int take_seconds(struct request *q)
{
    char *end;
    double s = strtod(optarg, &end);

    if (end == optarg || *end != '\0' || !(s >= SECONDS_MIN && s <= SECONDS_MAX))
        return cmd_usage(&cmd_benchmark, "--seconds takes %.1f to %.0f, not \"%s\"", SECONDS_MIN,
                         SECONDS_MAX, optarg);
    q->spec.time_ms = (unsigned)(s * 1000);
    return 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r = 0;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            q->help = true;
        else if (opt == OPT_JSON)
            q->json = true;
        else if (opt == OPT_SECTOR_SIZE)
            r = take_sector_size(q);
        else if (opt == OPT_THREADS)
            r = take_threads(q);
        else if (opt == OPT_SECONDS)
            r = take_seconds(q);
        else if (opt != 'v')
            r = cmd_option_error(&cmd_benchmark, opt, argv);
    }
    if (r == 0 && !q->help && optind < argc)
        return cmd_usage(&cmd_benchmark, "takes no \"%s\"", argv[optind]);
    return r;
}

static int run(int argc, char **argv)
{
    struct request q = {.spec.time_ms = 10000};
    AUTO_BENCH struct bench b = {0};
    struct cmd_progress progress;
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_benchmark);
    report_stderr_init(&rep, "benchmark", NULL);
    cmd_progress_start(&progress, "benchmark");
    progress.no_rate = true;
    r = bench_run(&b, &q.spec, &progress.progress, &rep);
    cmd_progress_end(&progress, r);
    if (r < 0)
        return r;
    if (q.json)
        return print_json(&b);
    print_ciphers(&b);
    print_kdfs(&b);
    return 0;
}

const struct command cmd_benchmark = {
    .name = "benchmark",
    .summary = "how fast the ciphers and the key derivation are here",
    .usage = usage,
    .run = run,
};
