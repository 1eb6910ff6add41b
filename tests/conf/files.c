/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves conf/files.h: which files are read, in which order, and which are not trusted. */

#include "conf/files.h"
#include "lib/files.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct test_report t;

static void put(const char *name, const char *text)
{
    FILE *f = fopen(test_path(test_disk, name), "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(test_path(test_disk, name), 0644), 0);
}

/* The folder of the test stands for /etc/hushvol, and own in it is the user's. */
static int read_here(struct conf **ret)
{
    test_report_init(&t);
    return conf_read_from(ret, test_disk, test_path(test_disk, "own"), &t.rep);
}

static void refused(const char *why)
{
    struct conf *c;

    assert_int_equal(read_here(&c), -EUCLEAN);
    if (!test_report_has(&t, why))
        fail_msg("no \"%s\" but \"%s\"", why, t.n_lines > 0 ? t.line[0] : "");
}

static void nothing_there_is_an_empty_configuration(void **state)
{
    struct conf *c;

    (void)state;
    assert_int_equal(read_here(&c), 0);
    assert_null(conf_volume(c, 0));
    conf_free(c);
}

static void files_come_in_order(void **state)
{
    static const char *const names[] = {"z", "a", "b", "own"};
    struct conf *c;

    (void)state;
    if (geteuid() != 0)
        skip(); /* a system file belongs to root */
    assert_int_equal(mkdir(test_path(test_disk, "conf.d"), 0755), 0);
    put("own", "[volume own]\ncontainer = /own\n");
    put("conf.d/2.conf", "[volume b]\ncontainer = /b\n");
    put("conf.d/1.conf", "[volume a]\ncontainer = /a\n");
    put("conf.d/3.conf~", "no configuration\n");
    put("conf.d/.conf", "no configuration\n");
    put("hushvol.conf", "[volume z]\ncontainer = /z\n");
    assert_int_equal(read_here(&c), 0);
    for (unsigned i = 0; i < 4; i++)
        assert_string_equal(conf_volume(c, i)->name, names[i]);
    assert_string_equal(conf_volume(c, 0)->file, test_path(test_disk, "hushvol.conf"));
    conf_free(c);
}

static void what_others_may_write_is_not_read(void **state)
{
    (void)state;
    put("own", "");
    chmod(test_path(test_disk, "own"), 0664);
    refused("others than its owner may write it (chmod go-w)");
    chmod(test_path(test_disk, "own"), 0646);
    refused("others than its owner may write it (chmod go-w)");
}

static void what_another_user_has_is_not_read(void **state)
{
    (void)state;
    if (geteuid() != 0)
        skip(); /* only root can make such a file */
    put("own", "");
    assert_int_equal(chown(test_path(test_disk, "own"), 1234, 1234), 0);
    refused("it belongs to user 1234 (must be root)");
    unlink(test_path(test_disk, "own"));
    put("hushvol.conf", "");
    assert_int_equal(chown(test_path(test_disk, "hushvol.conf"), 1234, 1234), 0);
    refused("it belongs to user 1234 (must be root)");
}

static void what_is_no_file_is_not_read(void **state)
{
    (void)state;
    put("other", "");
    assert_int_equal(symlink("other", test_path(test_disk, "own")), 0);
    refused("it is a symbolic link");
    unlink(test_path(test_disk, "own"));
    assert_int_equal(mkfifo(test_path(test_disk, "own"), 0600), 0);
    refused("it is not a regular file");
    unlink(test_path(test_disk, "own"));
    assert_int_equal(mkdir(test_path(test_disk, "own"), 0700), 0);
    refused("it is not a regular file");
}

static void a_huge_file_is_not_read(void **state)
{
    (void)state;
    put("own", "");
    assert_int_equal(truncate(test_path(test_disk, "own"), 1024 * 1024 + 1), 0);
    refused("more than 1 MiB");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(nothing_there_is_an_empty_configuration, test_files_clear),
        cmocka_unit_test_teardown(files_come_in_order, test_files_clear),
        cmocka_unit_test_teardown(what_others_may_write_is_not_read, test_files_clear),
        cmocka_unit_test_teardown(what_another_user_has_is_not_read, test_files_clear),
        cmocka_unit_test_teardown(what_is_no_file_is_not_read, test_files_clear),
        cmocka_unit_test_teardown(a_huge_file_is_not_read, test_files_clear),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
