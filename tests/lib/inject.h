/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Transfers that are cut short or interrupted, and calls that fail: a test that uses this gets
 * pread, pwrite, fallocate and stat of its own in the place of libc's, so that every way round is
 * walked on any file system. All zero: as the kernel does it. The calls may come from many threads,
 * what is set here stays as it is meanwhile. */

#include <stddef.h>

struct test_inject {
    size_t at_most;                 /* bytes a transfer moves */
    unsigned every_nth_interrupted; /* of the transfers: EINTR */
    _Atomic unsigned n_transfers;   /* counted */
    int fallocate_err;              /* errno of fallocate, if mode is 0 or one of ... */
    int fallocate_modes;
    _Atomic unsigned n_fallocate; /* counted */
    _Atomic unsigned n_stat;      /* counted */
    void (*on_stat)(void);        /* runs before each, when n_stat is its number from 1 */
};
extern struct test_inject test_inject;
