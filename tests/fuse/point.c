/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/point.c: root mounts only on what is the user's, whoever moves what meanwhile. */

#include "fuse/point.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOMEBODY 65534
#define OTHER 65533

static char base[64], folder[128], path[192];
static char name[] = "somebody";
static gid_t group = SOMEBODY;
static const struct serve_become user = {
    .uid = SOMEBODY, .gid = SOMEBODY, .name = name, .groups = &group, .n_groups = 1};

/* BASE/folder/point, all of it the user's. */
static int setup(void **state)
{
    (void)state;
    strcpy(base, "/tmp/hushvol-test.XXXXXX");
    assert_non_null(mkdtemp(base));
    snprintf(folder, sizeof(folder), "%s/folder", base);
    snprintf(path, sizeof(path), "%s/point", folder);
    assert_int_equal(chmod(base, 0755) | mkdir(folder, 0700) | mkdir(path, 0700), 0);
    if (geteuid() == 0)
        assert_int_equal(chown(folder, SOMEBODY, SOMEBODY) | chown(path, SOMEBODY, SOMEBODY), 0);
    return 0;
}

static int teardown(void **state)
{
    char moved[128];

    (void)state;
    snprintf(moved, sizeof(moved), "%s/moved", base);
    unlink(path);
    rmdir(path);
    unlink(folder);
    rmdir(folder);
    snprintf(path, sizeof(path), "%s/point", moved);
    rmdir(path);
    rmdir(moved);
    return rmdir(base);
}

static int try_open(const char *granted)
{
    int fd = serve_point_open(path, &user, granted, NULL);

    assert_int_equal(geteuid(), 0); /* we are root again */
    if (fd >= 0)
        close(fd);
    return fd < 0 ? fd : 0;
}

static void needs_root(void)
{
    if (geteuid() != 0)
        skip();
}

static void a_folder_of_the_users_is_taken(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(try_open(NULL), 0);
}

static void another_users_is_not_even_where_all_may_write(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(chown(path, OTHER, OTHER) | chmod(path, 0777), 0);
    assert_int_equal(try_open(NULL), -EPERM);
    assert_int_equal(try_open(path), -EPERM);
    assert_int_equal(chown(path, 0, 0), 0);
    assert_int_equal(try_open(path), -EPERM);
}

static void what_the_user_may_not_enter_root_does_not_enter_for_him(void **state)
{
    (void)state;
    needs_root();
    assert_int_equal(chown(folder, OTHER, OTHER), 0);
    assert_int_equal(try_open(NULL), -EACCES);
}

static void no_symbolic_link_is_followed(void **state)
{
    char moved[128];

    (void)state;
    needs_root();
    snprintf(moved, sizeof(moved), "%s/moved", base);
    assert_int_equal(rename(folder, moved) | symlink(moved, folder), 0);
    assert_int_equal(try_open(NULL), -ELOOP);
    assert_int_equal(unlink(folder) | rename(moved, folder) | rmdir(path), 0);
    assert_int_equal(symlink("/etc", path), 0);
    assert_int_equal(try_open(NULL), -ELOOP);
}

static void what_was_opened_stays_when_its_place_is_taken(void **state)
{
    struct stat before, after;
    char moved[128];
    int fd;

    (void)state;
    needs_root();
    assert_int_equal(stat(path, &before), 0);
    fd = serve_point_open(path, &user, NULL, NULL);
    assert_true(fd >= 0);
    snprintf(moved, sizeof(moved), "%s/moved", base);
    assert_int_equal(rename(folder, moved) | symlink("/etc", folder), 0);
    assert_int_equal(fstat(fd, &after), 0);
    close(fd);
    assert_true(before.st_dev == after.st_dev && before.st_ino == after.st_ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_of_the_users_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(another_users_is_not_even_where_all_may_write, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_the_user_may_not_enter_root_does_not_enter_for_him,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(no_symbolic_link_is_followed, setup, teardown),
        cmocka_unit_test_setup_teardown(what_was_opened_stays_when_its_place_is_taken, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
