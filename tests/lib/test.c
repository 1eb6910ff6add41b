/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include "base/secret.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t lines = PTHREAD_MUTEX_INITIALIZER;

static void keep(struct report *rep, enum report_level level, const char *text)
{
    struct test_report *t = (struct test_report *)rep;

    pthread_mutex_lock(&lines);
    if (t->n_lines < TEST_LINES) {
        t->level[t->n_lines] = level;
        snprintf(t->line[t->n_lines++], REPORT_LINE, "%s", text);
    }
    pthread_mutex_unlock(&lines);
}

void test_report_init(struct test_report *t)
{
    memset(t, 0, sizeof(*t));
    t->rep.say = keep;
}

int test_report_has(const struct test_report *t, const char *part)
{
    for (unsigned i = 0; i < t->n_lines; i++)
        if (strstr(t->line[i], part) != NULL)
            return 1;
    return 0;
}

uint64_t test_seed(void)
{
    const char *given = getenv("HUSHVOL_SEED");
    struct timespec now;
    uint64_t seed;

    clock_gettime(CLOCK_REALTIME, &now);
    seed =
        given ? strtoull(given, NULL, 0) : (uint64_t)now.tv_sec * 1000003 + (uint64_t)now.tv_nsec;
    printf("HUSHVOL_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void test_random_bytes(uint64_t *state, void *p, size_t len)
{
    unsigned char *b = p;

    while (len > 0) {
        uint64_t v = test_random(state);
        size_t n = len < sizeof(v) ? len : sizeof(v);

        memcpy(b, &v, n);
        b += n;
        len -= n;
    }
}

int test_start(void **state)
{
    (void)state;
    return secret_start(NULL);
}
