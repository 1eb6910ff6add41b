/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/inject.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct test_inject test_inject;

/* The names that the C library has for 64-bit offsets. */
ssize_t inject_pread(int fd, void *buf, size_t len, off_t off) __asm__("pread64");
ssize_t inject_pwrite(int fd, const void *buf, size_t len, off_t off) __asm__("pwrite64");
int inject_fallocate(int fd, int mode, off_t off, off_t len) __asm__("fallocate64");
int inject_stat(const char *path, struct stat *st) __asm__("stat64");

static bool inject_interrupts(size_t *len)
{
    struct test_inject *i = &test_inject;
    unsigned n = ++i->n_transfers;

    if (i->at_most != 0 && *len > i->at_most)
        *len = i->at_most;
    if (i->every_nth_interrupted == 0 || n % i->every_nth_interrupted != 0)
        return false;
    errno = EINTR;
    return true;
}

ssize_t inject_pread(int fd, void *buf, size_t len, off_t off)
{
    return inject_interrupts(&len) ? -1 : syscall(SYS_pread64, fd, buf, len, off);
}

ssize_t inject_pwrite(int fd, const void *buf, size_t len, off_t off)
{
    return inject_interrupts(&len) ? -1 : syscall(SYS_pwrite64, fd, buf, len, off);
}

int inject_fallocate(int fd, int mode, off_t off, off_t len)
{
    const struct test_inject *i = &test_inject;

    test_inject.n_fallocate++;
    if (i->fallocate_err != 0 && (mode == 0 || (mode & i->fallocate_modes) != 0)) {
        errno = i->fallocate_err;
        return -1;
    }
    return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int inject_stat(const char *path, struct stat *st)
{
    test_inject.n_stat++;
    if (test_inject.on_stat != NULL)
        test_inject.on_stat();
    return fstatat(AT_FDCWD, path, st, 0);
}
