/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/progress.h"

#include "base/auto.h"
#include "base/size.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#define FIRST_MS 1000 /* what ends sooner shows no bar */
#define NEXT_MS 200

static const int signals[CMD_PROGRESS_SIGNALS] = {SIGINT, SIGTERM, SIGHUP};
static volatile sig_atomic_t caught;

static void catch_signal(int sig)
{
    caught = sig;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* "create: 34 %, 1.2 GiB/s, 0:12 left", without the middle when it counts something else; with a
 * phase "convert: checking 34 %, ..." */
static void draw(struct cmd_progress *p, uint64_t done, uint64_t total, int64_t ms)
{
    double rate = (double)(done - p->first) / (double)ms; /* bytes per ms */
    uint64_t left_s = rate > 0 ? (uint64_t)((double)(total - done) / rate / 1000) : 0;
    char size[SIZE_TEXT], speed[SIZE_TEXT + 8] = "";

    if (!p->no_rate)
        snprintf(speed, sizeof(speed), "%s/s, ", size_format(size, (uint64_t)(rate * 1000)));
    fprintf(stderr, "\r%s: %s%s%3.0f %%, %s%" PRIu64 ":%02" PRIu64 " left \033[K", p->doing,
            p->phase != NULL ? p->phase : "", p->phase != NULL ? " " : "",
            total > 0 ? 100.0 * (double)done / (double)total : 100.0, speed, left_s / 60,
            left_s % 60);
    fflush(stderr);
    p->drawn = true;
}

static int step(struct progress *progress, uint64_t done, uint64_t total)
{
    struct cmd_progress *p = container_of(progress, struct cmd_progress, progress);
    int64_t now = now_ms();

    if (caught != 0)
        return -EINTR;
    if (!p->counting)
        p->first = done;
    p->counting = true;
    if (!p->terminal || now - p->started_ms < FIRST_MS || now - p->drawn_ms < NEXT_MS)
        return 0;
    p->drawn_ms = now;
    draw(p, done, total, now - p->started_ms);
    return 0;
}

static void phase(struct progress *progress, const char *doing)
{
    struct cmd_progress *p = container_of(progress, struct cmd_progress, progress);

    p->phase = doing;
    p->counting = false;
    p->started_ms = now_ms();
}

/* What was ignored (nohup) stays ignored. No SA_RESTART: a prompt has to wake up. */
void cmd_progress_start(struct cmd_progress *p, const char *doing)
{
    const struct sigaction action = {.sa_handler = catch_signal};

    *p = (struct cmd_progress){.progress = {.step = step, .phase = phase},
                               .doing = doing,
                               .terminal = isatty(STDERR_FILENO) == 1};
    p->started_ms = now_ms();
    caught = 0;
    for (unsigned i = 0; i < CMD_PROGRESS_SIGNALS; i++) {
        sigaction(signals[i], NULL, &p->old[i]);
        if (p->old[i].sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

void cmd_progress_end(struct cmd_progress *p, int r)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
    for (unsigned i = 0; i < CMD_PROGRESS_SIGNALS; i++)
        sigaction(signals[i], &p->old[i], NULL);
    if (r == -EINTR && caught != 0)
        raise(caught);
}
