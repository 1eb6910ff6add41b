/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/files.h"
#include "base/bytes.h"
#include "lib/inject.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

char test_disk[200], test_shm[200];

int test_files_make(void **state)
{
    const char *tmp = getenv("TMPDIR");

    (void)state;
    snprintf(test_disk, sizeof(test_disk), "%s/hushvol-test-XXXXXX", tmp != NULL ? tmp : "/tmp");
    snprintf(test_shm, sizeof(test_shm), "/dev/shm/hushvol-test-XXXXXX");
    return mkdtemp(test_disk) == NULL || mkdtemp(test_shm) == NULL;
}

int test_files_remove(void **state)
{
    char out[8];

    (void)state;
    return test_run(out, sizeof(out), "rm -r '%s' '%s'", test_disk, test_shm);
}

int test_files_clear(void **state)
{
    char out[8];

    (void)state;
    test_inject = (struct test_inject){0};
    return test_run(out, sizeof(out), "find '%s' '%s' -mindepth 1 -delete", test_disk, test_shm);
}

const char *test_path(const char *folder, const char *name)
{
    static char path[4][300];
    static unsigned next;
    char *p = path[next++ % 4];

    snprintf(p, sizeof(path[0]), "%s/%s", folder, name);
    return p;
}

const char *test_file(const char *folder, uint64_t size, bool sparse)
{
    const char *path = test_path(folder, "container");
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    AUTO_FREE unsigned char *bytes = malloc(size + 1);
    uint64_t seed = 1;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    if (!sparse) {
        test_random_bytes(&seed, bytes, size);
        assert_int_equal(write(fd, bytes, size), size);
    }
    return path;
}

unsigned test_n_files(const char *folder)
{
    char out[20];

    assert_int_equal(test_run(out, sizeof(out), "ls -A '%s' | wc -l", folder), 0);
    return (unsigned)atoi(out);
}

int test_run(char *out, int size, const char *fmt, ...)
{
    char command[600];
    va_list ap;
    FILE *p;

    va_start(ap, fmt);
    vsnprintf(command, sizeof(command), fmt, ap);
    va_end(ap);
    p = popen(command, "re");
    if (p == NULL)
        return -1;
    if (fgets(out, size, p) == NULL)
        out[0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    return pclose(p);
}

int test_open(struct blk **ret, const char *path, bool read_only, enum blk_direct direct)
{
    const struct blk_file_spec spec = {.path = path, .read_only = read_only, .direct = direct};

    return blk_file_open(ret, &spec, NULL, NULL);
}

int test_create(struct blk **ret, const char *path, uint64_t size, bool preallocate, bool replace)
{
    const struct blk_file_create spec = {
        .path = path, .size = size, .preallocate = preallocate, .replace = replace};

    return blk_file_create(ret, &spec, NULL);
}

struct blk *test_open_file(const char *path)
{
    struct blk *b = NULL;

    assert_int_equal(test_open(&b, path, false, BLK_DIRECT_AUTO), 0);
    return b;
}

uint64_t test_allocated(struct blk *b)
{
    struct blk_stat st;

    assert_int_equal(blk_flush(b), 0); /* delayed allocation does not count before */
    assert_int_equal(blk_stat(b, &st), 0);
    return st.allocated;
}

bool test_zeros_at(struct blk *b, uint64_t len, uint64_t off)
{
    AUTO_FREE unsigned char *bytes = malloc(len);

    memset(bytes, 1, len);
    assert_int_equal(blk_read(b, bytes, len, off), 0);
    return bytes_are_zero(bytes, len);
}

struct blk *test_open_direct(uint64_t size, bool sparse)
{
    struct blk *b = NULL;
    int r = test_open(&b, test_file(test_disk, size, sparse), false, BLK_DIRECT_ON);

    if (r == -EOPNOTSUPP) {
        print_message("not run: the file system of %s does no direct I/O\n", test_disk);
        skip();
    }
    assert_int_equal(r, 0);
    return b;
}
