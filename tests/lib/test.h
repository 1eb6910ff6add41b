/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What unit tests share: cmocka, a report that keeps its lines, seeded random numbers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/report.h"

#define TEST_LINES 32
struct test_report {
    struct report rep;
    unsigned n_lines;
    enum report_level level[TEST_LINES];
    char line[TEST_LINES][REPORT_LINE];
};
void test_report_init(struct test_report *t);
/* Does any line contain this? */
int test_report_has(const struct test_report *t, const char *part);

/* The seed of this run: HUSHVOL_SEED, else from the clock; printed once, so a run can be repeated.
 */
uint64_t test_seed(void);
/* The next number of the sequence *state (start it with test_seed()). */
uint64_t test_random(uint64_t *state);
void test_random_bytes(uint64_t *state, void *p, size_t len);

/* The group setup of tests that hold secrets. */
int test_start(void **state);
