/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/folder.c: a runtime folder counts only when it is ours alone. */

#include "fuse/folder.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[64];
static char path[128];

static int setup(void **state)
{
    (void)state;
    strcpy(base, "/tmp/hushvol-test.XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(path, sizeof(path), "%s/hushvol", base);
    return 0;
}

static int teardown(void **state)
{
    char other[128];

    (void)state;
    unlink(path);
    rmdir(path);
    snprintf(other, sizeof(other), "%s/other", base);
    rmdir(other);
    return rmdir(base);
}

static int try_open(uid_t owner)
{
    int fd = serve_folder_open(path, owner);

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void one_that_is_missing_is_made_with_mode_0700(void **state)
{
    struct stat st;
    int fd;

    (void)state;
    umask(0);
    assert_int_equal(try_open(geteuid()), -ENOENT);
    fd = serve_folder_make(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    fd = serve_folder_make(path);
    assert_true(fd >= 0);
    close(fd);
}

static void one_that_others_may_enter_is_refused(void **state)
{
    static const mode_t modes[] = {0701, 0710, 0750, 0755, 0777, 01700, 0500};

    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(try_open(geteuid()), -EPERM);
        assert_int_equal(serve_folder_make(path), -EPERM);
    }
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(try_open(geteuid()), 0);
}

static void one_of_another_owner_is_refused(void **state)
{
    (void)state;
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(try_open(geteuid() + 1), -EPERM);
    if (geteuid() != 0)
        return;
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_int_equal(serve_folder_make(path), -EPERM);
    assert_int_equal(try_open(12345), 0);
}

static void a_symbolic_link_is_refused_even_to_a_good_one(void **state)
{
    char other[128];

    (void)state;
    snprintf(other, sizeof(other), "%s/other", base);
    assert_int_equal(mkdir(other, 0700), 0);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(try_open(geteuid()), -EPERM);
    assert_int_equal(serve_folder_make(path), -EPERM);
}

static void a_file_is_refused(void **state)
{
    FILE *f = fopen(path, "we");

    (void)state;
    assert_non_null(f);
    fclose(f);
    assert_int_equal(serve_folder_make(path), -EPERM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        TEST(one_that_is_missing_is_made_with_mode_0700),
        TEST(one_that_others_may_enter_is_refused),
        TEST(one_of_another_owner_is_refused),
        TEST(a_symbolic_link_is_refused_even_to_a_good_one),
        TEST(a_file_is_refused),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
