/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol stat: what a mount does, a line every few seconds. The daemon only counts; rates and
 * percentiles of an interval are taken here, from the counters at both of its ends, so that several
 * who look at once do not disturb each other. */

#include "cli/command.h"
#include "cli/find.h"
#include "cli/json.h"
#include "cli/stat_sample.h"
#include "fuse/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HEADER_EVERY 20 /* lines, on a terminal */
#define LOOK_MS 1000    /* is the volume still there? */
#define GONE_MS 2000    /* for a daemon that no longer answers to let go of its lock */
#define SECONDS_MIN 0.1
#define SECONDS_MAX 86400.0

/* clang-format off */
static const char usage[] =
    "Usage: hushvol stat DIR|NAME|CONTAINER [SECONDS] [--count N] [--json]\n"
    "\n"
    "What a mounted volume does, a line every SECONDS (1; parts of one too). The first line is since\n"
    "the mount. Ends when the volume is unmounted, or by Ctrl-C.\n"
    "\n"
    "  --count N                end after N lines\n"
    "  --json                   an object a line instead\n"
    "\n"
    "  r/s w/s rMB/s wMB/s      requests and bytes read and written (1 MB = 1000000 bytes)\n"
    "  r_avg r_p50 r_p99 ...    how long they took: on average, and what 50 and 99 % did not exceed\n"
    "  ahead                    of the bytes read, those that read-ahead had prepared\n"
    "  waste                    of the bytes prepared, those that nobody wanted\n"
    "  cores                    how many CPUs the cipher kept busy\n"
    "  pool                     of the pieces of large requests, those that worker threads did\n"
    "  flush                    flushes (fsync) per second\n"
    "  wait                     requests that wait for room on the host now\n"
    "\n"
    "Examples:\n"
    "  hushvol stat photos\n"
    "  hushvol stat ~/photos 10 --count 6 --json\n"
    "\n"
    "Exit status: 0 done (also when the volume went away), 1 failed, 2 wrong words, 7 no such mount.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN, OPT_COUNT };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {"count", required_argument, NULL, OPT_COUNT},
    {0},
};

struct request {
    const char *word;
    char name[SERVE_NAME_MAX + 1]; /* what word is when the configuration's is not the mount's */
    double seconds;
    unsigned long n_lines; /* 0: until it ends */
    bool json, help;
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* -ENOENT, in silence: there is no such mount (any more). */
static int take_sample(struct stat_sample *ret, const char *word, struct report *rep)
{
    AUTO_FOUND struct serve_found f = {0};
    struct json_object *answer = NULL;
    int r = serve_registry_find(&f, word);

    if (r < 0 && r != -ENOENT)
        return report_errno(rep, -r, "cannot read the runtime folders");
    if (r < 0 || !f.alive)
        return -ENOENT;
    r = serve_control_ask(&answer, &f, "counters", NULL, NULL);
    if (r < 0 && serve_registry_wait(&f, GONE_MS) == 0)
        return -ENOENT;
    if (r < 0)
        r = serve_control_ask(&answer, &f, "counters", NULL, rep);
    if (r < 0)
        return r;
    r = stat_sample_decode(ret, answer, f.record.pid);
    json_object_put(answer);
    return r < 0 ? report_error(rep, EIO,
                                "the process that serves %s counts otherwise than this "
                                "version of hushvol",
                                f.record.name)
                 : 0;
}

/* Is it still mounted when it is time for the next line? */
static bool wait_until(int64_t at_ms, const char *word)
{
    int64_t left;

    while ((left = at_ms - now_ms()) > 0) {
        AUTO_FOUND struct serve_found f = {0};
        int64_t nap = left < LOOK_MS ? left : LOOK_MS;
        const struct timespec t = {.tv_sec = nap / 1000, .tv_nsec = nap % 1000 * 1000000};

        nanosleep(&t, NULL);
        if (serve_registry_find(&f, word) == -ENOENT || !f.alive)
            return false;
    }
    return true;
}

#define CELL 16

static const char *time_text(char out[CELL], double us)
{
    if (us <= 0)
        snprintf(out, CELL, "-");
    else if (us < 999.5)
        snprintf(out, CELL, "%.0fus", us);
    else if (us < 99950)
        snprintf(out, CELL, "%.1fms", us / 1e3);
    else if (us < 999500)
        snprintf(out, CELL, "%.0fms", us / 1e3);
    else
        snprintf(out, CELL, "%.1fs", us / 1e6);
    return out;
}

static const char *share_text(char out[CELL], double share)
{
    if (share < 0)
        snprintf(out, CELL, "-");
    else
        snprintf(out, CELL, "%.0f%%", share * 100);
    return out;
}

static void print_header(void)
{
    printf("%8s %8s %8s %8s %6s %6s %6s %6s %6s %6s %5s %5s %5s %5s %6s %4s\n", "r/s", "w/s",
           "rMB/s", "wMB/s", "r_avg", "r_p50", "r_p99", "w_avg", "w_p50", "w_p99", "ahead", "waste",
           "cores", "pool", "flush", "wait");
}

static void print_times(const struct stat_flow *f)
{
    char avg[CELL], p50[CELL], p99[CELL];

    printf(" %6s %6s %6s", time_text(avg, f->avg_us), time_text(p50, f->p50_us),
           time_text(p99, f->p99_us));
}

static void print_text(const struct stat_interval *i)
{
    char hit[CELL], waste[CELL], workers[CELL];

    printf("%8.1f %8.1f %8.1f %8.1f", i->read.n_per_s, i->write.n_per_s, i->read.mb_per_s,
           i->write.mb_per_s);
    print_times(&i->read);
    print_times(&i->write);
    printf(" %5s %5s %5.2f %5s %6.1f %4llu\n", share_text(hit, i->readahead_hit),
           share_text(waste, i->readahead_waste), i->cipher_cores,
           share_text(workers, i->by_workers), i->flushes_per_s,
           (unsigned long long)i->waiting_for_space);
}

static void print_json(const struct stat_interval *i)
{
    struct json_object *o = stat_interval_json(i);

    json_object_object_add(o, "time", cmd_json_time((uint64_t)time(NULL)));
    puts(
        json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
}

static void print_line(const struct request *q, const struct stat_interval *i, unsigned long line)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;

    if (q->json) {
        print_json(i);
        return;
    }
    if (line == 0 || (terminal && line % HEADER_EVERY == 0))
        print_header();
    print_text(i);
}

/* The sample for a line when its time has come. -ENOENT as take_sample(). */
static int next_sample(struct stat_sample *ret, const struct request *q, int64_t start,
                       unsigned long line, struct report *rep)
{
    int64_t at_ms = start + (int64_t)((double)line * q->seconds * 1e3);

    if (line > 0 && !wait_until(at_ms, q->word))
        return -ENOENT;
    return take_sample(ret, q->word, rep);
}

/* One that never was there is a mistake. What is there is looked for by its own name from then on,
 * where the word is that of the configuration: that is not asked again and again. */
static int find_first(struct request *q, struct report *rep)
{
    AUTO_FOUND struct serve_found f = {0}, known = {0};
    int r = cmd_find_mounted(&f, q->word, rep);

    if (r < 0)
        return r;
    if (!f.alive)
        return report_error(rep, ENOENT, "its process died (\"hushvol umount %s\" cleans up)",
                            f.record.name);
    if (serve_registry_find(&known, q->word) == -ENOENT) {
        strcpy(q->name, f.record.name);
        q->word = q->name;
    }
    return 0;
}

/* A volume that goes away is an end like any other. */
static int end_watch(const struct request *q, int r, struct report *rep)
{
    if (r != -ENOENT)
        return r;
    report_info(rep, "%s is not mounted any more", q->word);
    return 0;
}

/* Output that cannot be written (a reader like head went away) ends it; main() says so. */
static int watch(struct request *q)
{
    struct stat_sample samples[2];
    int64_t start = now_ms();
    struct report rep;
    int r;

    report_stderr_init(&rep, "stat", q->word);
    r = find_first(q, &rep);
    if (r < 0)
        return r;
    for (unsigned long line = 0; q->n_lines == 0 || line < q->n_lines; line++) {
        struct stat_sample *now = &samples[line % 2];
        struct stat_interval interval;

        r = next_sample(now, q, start, line, &rep);
        if (r < 0)
            return end_watch(q, r, &rep);
        stat_difference(&interval, line > 0 ? &samples[(line + 1) % 2] : NULL, now);
        print_line(q, &interval, line);
        if (fflush(stdout) != 0)
            break;
    }
    return 0;
}

static int take_count(struct request *q)
{
    char *end;

    errno = 0;
    q->n_lines = strtoul(optarg, &end, 10);
    if (errno != 0 || *end != '\0' || optarg[0] < '0' || optarg[0] > '9' || q->n_lines == 0)
        return cmd_usage(&cmd_stat, "--count takes a number from 1 on, not \"%s\"", optarg);
    return 0;
}

static int take_arguments(struct request *q, int argc, char **argv)
{
    char *end;

    if (argc - optind < 1 || argc - optind > 2)
        return cmd_usage(&cmd_stat, "takes one DIR, NAME or CONTAINER, and how many seconds");
    q->word = argv[optind];
    if (argc - optind < 2)
        return 0;
    q->seconds = strtod(argv[optind + 1], &end);
    if (*end != '\0' || !(q->seconds >= SECONDS_MIN && q->seconds <= SECONDS_MAX))
        return cmd_usage(&cmd_stat, "the seconds are %.1f to %.0f, not \"%s\"", SECONDS_MIN,
                         SECONDS_MAX, argv[optind + 1]);
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
        else if (opt == OPT_COUNT)
            r = take_count(q);
        else if (opt != 'v')
            r = cmd_option_error(&cmd_stat, opt, argv);
    }
    if (r < 0 || q->help)
        return r;
    return take_arguments(q, argc, argv);
}

static int run(int argc, char **argv)
{
    struct request q = {.seconds = 1};
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    return q.help ? cmd_help(&cmd_stat) : watch(&q);
}

const struct command cmd_stat = {
    .name = "stat",
    .summary = "what a mounted volume does, a line every second",
    .usage = usage,
    .run = run,
};
