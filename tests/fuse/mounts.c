/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/mounts.c on tables as proc(5) describes them. */

#include "fuse/mounts.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char table[] =
    "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
    "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 propagate_from:2 - ext3 /dev/root "
    "rw,errors=x\n"
    "60 27 0:39 / /home/me/a\\134b\\012c rw,nosuid - fuse.hushvol /c\\0401.hv "
    "rw,user_id=1000,group_id=100\n"
    "nonsense\n"
    "61 27 0:40 / /short rw\n"
    "62 27 zero / /x rw - t s o\n"
    "18446744073709551615 27 4095:1048575 / / rw - tmpfs none rw\n";

struct seen {
    unsigned n;
    struct serve_mounted m[8];
};

static int remember(const struct serve_mounted *m, void *arg)
{
    struct seen *s = arg;

    s->m[s->n] = *m;
    s->m[s->n].point = strdup(m->point);
    s->m[s->n].type = strdup(m->type);
    s->m[s->n].source = strdup(m->source);
    s->m[s->n++].super = strdup(m->super);
    return 0;
}

static int third(const struct serve_mounted *m, void *arg)
{
    (void)m;
    return ++*(int *)arg == 3 ? 42 : 0;
}

static FILE *open_table(void)
{
    FILE *f = fmemopen((void *)table, sizeof(table) - 1, "r");

    assert_non_null(f);
    return f;
}

static void lines_are_cut_and_decoded(void **state)
{
    struct seen s = {0};
    FILE *f = open_table();

    (void)state;
    assert_int_equal(serve_mounts_read(f, remember, &s), 0);
    fclose(f);
    assert_int_equal(s.n, 4);
    assert_string_equal(s.m[1].point, "/mnt 2");
    assert_string_equal(s.m[1].type, "ext3");
    assert_string_equal(s.m[1].source, "/dev/root");
    assert_int_equal(s.m[1].major, 98);
    assert_int_equal(s.m[2].id, 60);
    assert_int_equal(s.m[2].minor, 39);
    assert_string_equal(s.m[2].point, "/home/me/a\\b\nc");
    assert_string_equal(s.m[2].type, "fuse.hushvol");
    assert_string_equal(s.m[2].source, "/c 1.hv");
    assert_string_equal(s.m[2].super, "rw,user_id=1000,group_id=100");
    assert_true(s.m[3].id == UINT64_MAX);
    assert_int_equal(s.m[3].minor, 1048575);
    for (unsigned i = 0; i < s.n; i++) {
        free(s.m[i].point);
        free(s.m[i].type);
        free(s.m[i].source);
        free(s.m[i].super);
    }
}

static void the_first_answer_ends_it(void **state)
{
    FILE *f = open_table();
    int n = 0;

    (void)state;
    assert_int_equal(serve_mounts_read(f, third, &n), 42);
    assert_int_equal(n, 3);
    fclose(f);
}

static void a_mount_is_the_same_only_with_id_and_device(void **state)
{
    const struct serve_mount_id a = {.id = 60, .major = 0, .minor = 39};
    struct serve_mount_id b = a;

    (void)state;
    assert_true(serve_mounts_same(&a, &b));
    b.id = 61; /* somebody else mounted there later */
    assert_false(serve_mounts_same(&a, &b));
    b = a;
    b.minor = 40; /* the id was used again */
    assert_false(serve_mounts_same(&a, &b));
}

static void our_own_table_has_proc(void **state)
{
    struct serve_mount_id id;

    (void)state;
    assert_int_equal(serve_mounts_at(&id, "/proc"), 0);
    assert_false(id.fuse);
    assert_false(id.ours);
    assert_int_equal(id.user_id, -1);
    assert_int_equal(serve_mounts_at(&id, "/proc/nowhere"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_cut_and_decoded),
        cmocka_unit_test(the_first_answer_ends_it),
        cmocka_unit_test(a_mount_is_the_same_only_with_id_and_device),
        cmocka_unit_test(our_own_table_has_proc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
