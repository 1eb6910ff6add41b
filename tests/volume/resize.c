/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves volume/resize.c on real files: a disk of another size has what it had and zeros, killed
 * between any two system calls it opens with the old size or the new one, and what a power failure
 * may undo is never more than that, because each step is durable before the next. */

#include "block/file.h"
#include "keystore/native/header.h"
#include "lib/container.h"
#include "lib/test.h"
#include "volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MIB = 1 << 20, OLD = 3 * MIB, CALLS = 64 };

static char folder[] = "/tmp/hushvol-resize-XXXXXX";
static char path[64], data[64], passphrase[64];

/* What changes a file, in the order in which it was called; the process dies before number die_at
 * (from 1; 0: never). */
struct call {
    enum { PWRITE, TRUNCATE, ALLOCATE, SYNC } what;
    uint64_t off;
};
static struct call calls[CALLS];
static unsigned n_calls, die_at;

static void called(unsigned what, uint64_t off)
{
    if (n_calls < CALLS)
        calls[n_calls] = (struct call){what, off};
    if (++n_calls == die_at)
        _exit(77);
}

/* The names that the C library has for 64-bit offsets. */
ssize_t traced_pwrite(int fd, const void *buf, size_t len, off_t off) __asm__("pwrite64");
int traced_ftruncate(int fd, off_t size) __asm__("ftruncate64");
int traced_fallocate(int fd, int mode, off_t off, off_t len) __asm__("fallocate64");
int traced_fsync(int fd) __asm__("fsync");
int traced_fdatasync(int fd) __asm__("fdatasync");

ssize_t traced_pwrite(int fd, const void *buf, size_t len, off_t off)
{
    called(PWRITE, (uint64_t)off);
    return syscall(SYS_pwrite64, fd, buf, len, off);
}

int traced_ftruncate(int fd, off_t size)
{
    called(TRUNCATE, (uint64_t)size);
    return (int)syscall(SYS_ftruncate, fd, size);
}

int traced_fallocate(int fd, int mode, off_t off, off_t len)
{
    called(ALLOCATE, (uint64_t)off);
    return (int)syscall(SYS_fallocate, fd, mode, off, len);
}

int traced_fsync(int fd)
{
    called(SYNC, 0);
    return (int)syscall(SYS_fsync, fd);
}

int traced_fdatasync(int fd)
{
    called(SYNC, 0);
    return (int)syscall(SYS_fdatasync, fd);
}

static void put(const char *name, const void *bytes, size_t len, off_t size)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(ftruncate(fd, size), 0);
    close(fd);
}

static int start(void **state)
{
    if (test_start(state) < 0 || mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/disk.hv", folder);
    snprintf(data, sizeof(data), "%s/data", folder);
    snprintf(passphrase, sizeof(passphrase), "%s/passphrase", folder);
    put(passphrase, "old horse\n", 10, 10);
    return 0;
}

static int end(void **state)
{
    (void)state;
    unlink(path);
    unlink(data);
    unlink(passphrase);
    return rmdir(folder);
}

/* A container whose slot costs next to nothing; detached: its data are in a file of their own. */
struct kind {
    bool sparse, detached;
};

static void make(const struct kind *k)
{
    struct native_header h = container_header();
    unsigned char *bytes = calloc(1, NATIVE_DATA);

    h.capacity = OLD;
    h.flags = k->sparse ? NATIVE_FLAG_DISCARD : 0;
    container_block(bytes, &h);
    memcpy(bytes + NATIVE_COPY_STEP, bytes, NATIVE_BLOCK);
    put(path, bytes, NATIVE_DATA, NATIVE_DATA + (k->detached ? 0 : OLD));
    if (k->detached)
        put(data, "", 0, NATIVE_DATA + OLD);
    free(bytes);
}

static int try_open(struct volume **ret, const struct kind *k)
{
    const struct vol_spec spec = {.container = k->detached ? data : path,
                                  .header = k->detached ? path : NULL,
                                  .threads = 1,
                                  .slot = KEY_SLOT_ANY,
                                  .credential = {.passphrase_file = passphrase}};

    return vol_open(ret, &spec, NULL, NULL);
}

static struct volume *opened(const struct kind *k)
{
    struct volume *v = NULL;

    assert_int_equal(try_open(&v, k), 0);
    return v;
}

static uint64_t file_size(const struct kind *k)
{
    struct stat st;

    assert_int_equal(lstat(k->detached ? data : path, &st), 0);
    return (uint64_t)st.st_size;
}

static uint64_t size_of(struct volume *v)
{
    struct vol_info info;

    vol_get_info(v, &info);
    assert_int_equal(info.size, vol_top(v)->size);
    return info.size;
}

/* What is at off, for every OLD bytes. */
static void fill(struct volume *v)
{
    uint64_t seed = 7;
    unsigned char *bytes = malloc(OLD);

    test_random_bytes(&seed, bytes, OLD);
    assert_int_equal(blk_write(vol_top(v), bytes, OLD, 0), 0);
    assert_int_equal(blk_flush(vol_top(v)), 0);
    free(bytes);
}

static void check(struct volume *v, uint64_t n_kept)
{
    uint64_t seed = 7, size = size_of(v);
    unsigned char *bytes = calloc(1, size > OLD ? size : OLD), *there = malloc(size);

    test_random_bytes(&seed, bytes, OLD);
    if (n_kept < size)
        memset(bytes + n_kept, 0, size - n_kept);
    assert_int_equal(blk_read(vol_top(v), there, size, 0), 0);
    assert_memory_equal(there, bytes, size);
    free(bytes);
    free(there);
}

static int resize(struct volume *v, uint64_t size)
{
    int r;

    if (size < size_of(v))
        return vol_shrink(v, size, NULL);
    r = vol_make_room(v, size, NULL, NULL);
    return r < 0 ? r : vol_grow(v, size, NULL);
}

static const struct kind kinds[] = {{false, false}, {true, false}, {false, true}};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

static void the_disk_has_another_size_at_once_and_for_good(void **state)
{
    static const uint64_t sizes[] = {9 * MIB, OLD + 4096, 5 * MIB - 4095, MIB, 4096, 2 * MIB};

    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        uint64_t kept = OLD;
        struct volume *v;

        make(k);
        v = opened(k);
        fill(v);
        for (unsigned n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
            uint64_t want = (sizes[n] + 4095) / 4096 * 4096;

            assert_int_equal(resize(v, sizes[n]), 0);
            kept = want < kept ? want : kept;
            assert_int_equal(size_of(v), want);
            assert_int_equal(file_size(k), NATIVE_DATA + want);
            check(v, kept);
            assert_int_equal(vol_close(v), 0);
            v = opened(k);
            assert_int_equal(size_of(v), want);
            check(v, kept);
        }
        vol_close(v);
    }
}

static void storage_is_promised_unless_the_container_is_sparse(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        struct stat st;
        struct volume *v;

        make(&kinds[i]);
        v = opened(&kinds[i]);
        assert_int_equal(resize(v, OLD + 8 * MIB), 0);
        vol_close(v);
        assert_int_equal(lstat(kinds[i].detached ? data : path, &st), 0);
        assert_int_equal(st.st_blocks * 512 >= 8 * MIB, !kinds[i].sparse);
    }
}

/* Killed before each of the system calls that change something. */
static bool killed_at(struct volume *v, uint64_t size, unsigned n)
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0) {
        n_calls = 0;
        die_at = n;
        _exit(resize(v, size) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 0);
    return WEXITSTATUS(status) == 77;
}

static void killed_anywhere_it_opens_with_one_size_or_the_other(void **state)
{
    static const uint64_t sizes[] = {5 * MIB, MIB};

    (void)state;
    for (unsigned i = 0; i < 2 * N_KINDS; i++) {
        const struct kind *k = &kinds[i / 2];
        uint64_t want = sizes[i % 2];
        bool was_old = false, was_new = false, killed = true;
        unsigned n;

        for (n = 1; killed; n++) {
            struct volume *v;
            uint64_t size;

            make(k);
            v = opened(k);
            fill(v);
            killed = killed_at(v, want, n);
            vol_close(v); /* ours is the memory of before: it only lets the lock go */
            v = opened(k);
            size = size_of(v);
            assert_true(size == OLD || size == want);
            was_old = was_old || size == OLD;
            was_new = was_new || size == want;
            assert_true(file_size(k) >= NATIVE_DATA + size);
            check(v, OLD < want || size == OLD ? OLD : want);
            /* the next one ends what this one began */
            assert_int_equal(resize(v, want), 0);
            check(v, OLD < want ? OLD : want);
            assert_int_equal(file_size(k), NATIVE_DATA + want);
            vol_close(v);
        }
        assert_true(was_old && was_new);
        assert_true(n > 6); /* there are at least two writes, with their syncs, and a truncation */
    }
}

/* Room was made and the disk did not follow, since requests were waiting; then it is to be another
 * size, or none: what the header speaks of is never cut off meanwhile. */
static void room_that_was_not_used_is_safe_to_change(void **state)
{
    static const uint64_t sizes[] = {OLD, 4 * MIB, 9 * MIB};

    (void)state;
    for (unsigned i = 0; i < 3 * N_KINDS; i++) {
        const struct kind *k = &kinds[i / 3];
        uint64_t want = sizes[i % 3];
        bool killed = true;

        for (unsigned n = 1; killed; n++) {
            struct volume *v;
            uint64_t size;

            make(k);
            v = opened(k);
            fill(v);
            assert_int_equal(vol_make_room(v, 6 * MIB, NULL, NULL), 0);
            assert_int_equal(size_of(v), OLD);
            killed = killed_at(v, want, n);
            vol_close(v);
            v = opened(k);
            size = size_of(v);
            assert_true(size == want || (killed && size == 6 * MIB));
            assert_true(file_size(k) >= NATIVE_DATA + size);
            check(v, OLD);
            if (!killed)
                assert_int_equal(file_size(k), NATIVE_DATA + want);
            vol_close(v);
        }
    }
}

/* The calls of one resize. */
static void trace(const struct kind *k, uint64_t size)
{
    struct volume *v;

    make(k);
    v = opened(k);
    n_calls = 0;
    assert_int_equal(resize(v, size), 0);
    assert_true(n_calls < CALLS);
    vol_close(v);
}

static unsigned first_call(unsigned what)
{
    unsigned i = 0;

    while (calls[i].what != what)
        assert_true(++i < n_calls);
    return i;
}

static void the_file_is_durably_larger_before_the_header_says_so(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        unsigned header;

        trace(&kinds[i], 5 * MIB);
        header = first_call(PWRITE);
        assert_int_equal(calls[header].off, NATIVE_COPY_STEP);
        assert_true(header > 1);
        assert_int_equal(calls[header - 1].what, SYNC);
        assert_int_equal(calls[header - 2].what, TRUNCATE);
        assert_int_equal(calls[header - 2].off, NATIVE_DATA + 5 * MIB);
    }
}

static void the_header_is_durably_smaller_before_the_file_is_cut(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_KINDS; i++) {
        unsigned cut;

        trace(&kinds[i], MIB);
        cut = first_call(TRUNCATE);
        assert_int_equal(calls[cut].off, NATIVE_DATA + MIB);
        assert_int_equal(cut, 4);
        assert_int_equal(calls[0].what, PWRITE);
        assert_int_equal(calls[1].what, SYNC);
        assert_int_equal(calls[2].what, PWRITE);
        assert_int_equal(calls[3].what, SYNC);
        assert_int_equal(calls[cut + 1].what, SYNC);
    }
}

static void what_is_impossible_changes_nothing(void **state)
{
    static const uint64_t bad[] = {0, UINT64_MAX, INT64_MAX, INT64_MAX - MIB};
    const struct kind k = {false, false};
    struct volume *v;
    uint64_t size;

    (void)state;
    make(&k);
    v = opened(&k);
    fill(v);
    n_calls = 0;
    for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct test_report said;

        test_report_init(&said);
        size = bad[i];
        assert_int_equal(vol_resize_check(v, &size, &said.rep), -EINVAL);
        assert_int_equal(said.n_lines, 1);
        assert_int_equal(vol_make_room(v, bad[i], NULL, NULL), -EINVAL);
        assert_int_equal(vol_shrink(v, bad[i], NULL), -EINVAL);
    }
    assert_int_equal(vol_make_room(v, OLD - 4096, NULL, NULL), -EINVAL);
    assert_int_equal(vol_shrink(v, OLD + 4096, NULL), -EINVAL);
    assert_int_equal(vol_device_room(v, &size, NULL), -EINVAL);
    assert_int_equal(vol_make_room(v, OLD - 1, NULL, NULL), 0); /* that is OLD: nothing to do */
    assert_int_equal(n_calls, 0);
    assert_int_equal(vol_make_room(v, UINT64_C(1) << 56, NULL, NULL), -ENOSPC);
    assert_int_equal(file_size(&k), NATIVE_DATA + OLD);
    check(v, OLD);
    vol_close(v);
}

static void a_volume_for_reading_keeps_its_size(void **state)
{
    struct vol_spec spec = {.container = path,
                            .read_only = true,
                            .threads = 1,
                            .slot = KEY_SLOT_ANY,
                            .credential = {.passphrase_file = passphrase}};
    struct volume *v = NULL;

    (void)state;
    make(&kinds[0]);
    assert_int_equal(vol_open(&v, &spec, NULL, NULL), 0);
    assert_int_equal(vol_make_room(v, 2 * OLD, NULL, NULL), -EROFS);
    assert_int_equal(vol_shrink(v, MIB, NULL), -EROFS);
    vol_close(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_disk_has_another_size_at_once_and_for_good),
        cmocka_unit_test(storage_is_promised_unless_the_container_is_sparse),
        cmocka_unit_test(killed_anywhere_it_opens_with_one_size_or_the_other),
        cmocka_unit_test(room_that_was_not_used_is_safe_to_change),
        cmocka_unit_test(the_file_is_durably_larger_before_the_header_says_so),
        cmocka_unit_test(the_header_is_durably_smaller_before_the_file_is_cut),
        cmocka_unit_test(what_is_impossible_changes_nothing),
        cmocka_unit_test(a_volume_for_reading_keeps_its_size),
    };

    return cmocka_run_group_tests_name("resize", tests, start, end);
}
