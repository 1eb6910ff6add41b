/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Folders for tests that make files: one below TMPDIR (or /tmp), one on /dev/shm, whose tmpfs knows
 * no ZERO_RANGE. And file layers in few words. */

#include "block/file.h"

#include <stdbool.h>
#include <stdint.h>

extern char test_disk[200], test_shm[200];

/* Group fixtures: make both; remove both with all that is in them. */
int test_files_make(void **state);
int test_files_remove(void **state);
/* Test teardown: empties both, and takes the injected faults away. */
int test_files_clear(void **state);

/* "FOLDER/NAME", in one of a few buffers that are used in turn. */
const char *test_path(const char *folder, const char *name);
/* A file "container" of size random bytes, or all hole. Returns its path. */
const char *test_file(const char *folder, uint64_t size, bool sparse);
unsigned test_n_files(const char *folder);

/* Run a shell command; its first line of output goes to out. Returns its exit status. */
int test_run(char *out, int size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* blk_file_open() and blk_file_create(), with a lock and without a report. */
int test_open(struct blk **ret, const char *path, bool read_only, enum blk_direct direct);
int test_create(struct blk **ret, const char *path, uint64_t size, bool preallocate, bool replace);
/* Open for writing; a failure fails the test. */
struct blk *test_open_file(const char *path);
/* A file in test_disk that is open with O_DIRECT; skips the test, saying so, where that is not
 * possible. */
struct blk *test_open_direct(uint64_t size, bool sparse);
/* Bytes of storage behind b. */
uint64_t test_allocated(struct blk *b);
bool test_zeros_at(struct blk *b, uint64_t len, uint64_t off);
