/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/registry.c in a folder of its own: names, life and death by the lock, and files that
 * are not what they should be. */

#include "fuse/registry.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct serve_folder folder;
static struct test_report report;

static int setup(void **state)
{
    (void)state;
    strcpy(folder.path, "/tmp/hushvol-test.XXXXXX");
    assert_non_null(mkdtemp(folder.path));
    folder.owner = geteuid();
    test_report_init(&report);
    return 0;
}

static int teardown(void **state)
{
    char command[PATH_MAX + 16];

    (void)state;
    snprintf(command, sizeof(command), "rm -r '%s'", folder.path);
    return system(command);
}

static struct serve_slot *take(const char *wanted, const char *container)
{
    struct serve_slot *s = NULL;

    assert_int_equal(serve_slot_take(&s, &folder, wanted, container, &report.rep), 0);
    return s;
}

static void publish(struct serve_slot *s, const char *mountpoint)
{
    AUTO_RECORD struct serve_record r = {
        .pid = getpid(), .container = strdup("/c.hv"), .mountpoint = strdup(mountpoint)};

    strcpy(r.name, serve_slot_name(s));
    assert_int_equal(serve_slot_publish(s, &r, &report.rep), 0);
}

static bool exists(const char *file)
{
    char path[PATH_MAX + 32];

    snprintf(path, sizeof(path), "%s/%s", folder.path, file);
    return access(path, F_OK) == 0;
}

/* How many are there, and is the first alive? */
static unsigned count(bool *alive)
{
    struct serve_found *list = NULL;
    unsigned n = 0;

    assert_int_equal(serve_registry_list_in(&folder, &list, &n), 0);
    *alive = n > 0 && list[0].alive;
    serve_registry_list_done(list, n);
    return n;
}

static void the_second_of_a_name_gets_a_number(void **state)
{
    struct serve_slot *a = take(NULL, "/x/photos.hv"), *b = take(NULL, "/y/photos.img"), *c;

    (void)state;
    assert_string_equal(serve_slot_name(a), "photos");
    assert_string_equal(serve_slot_name(b), "photos-2");
    serve_slot_drop(a);
    c = take(NULL, "/z/photos");
    assert_string_equal(serve_slot_name(c), "photos");
    serve_slot_drop(b);
    serve_slot_drop(c);
}

static void a_wanted_name_that_is_taken_is_busy(void **state)
{
    struct serve_slot *a = take("mine", "/x"), *b = NULL;

    (void)state;
    assert_int_equal(serve_slot_take(&b, &folder, "mine", "/y", &report.rep), -EBUSY);
    assert_true(test_report_has(&report, "mine"));
    assert_int_equal(serve_slot_take(&b, &folder, "../up", "/y", &report.rep), -EINVAL);
    assert_null(b);
    serve_slot_drop(a);
}

static void dropping_leaves_no_file(void **state)
{
    struct serve_slot *s = take("mine", "/x");

    (void)state;
    publish(s, "/m");
    assert_true(exists("mine.json") && exists("mine.lock") && !exists("mine.new"));
    serve_slot_drop(s);
    assert_false(exists("mine.json") || exists("mine.lock"));
}

static void one_that_was_killed_is_dead_and_gives_way(void **state)
{
    struct serve_found *list = NULL;
    unsigned n = 0;
    bool alive;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        publish(take("mine", "/x"), "/m");
        _exit(0); /* as by kill -9: nothing is released but by the kernel */
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(count(&alive), 1);
    assert_false(alive);
    assert_int_equal(serve_registry_list_in(&folder, &list, &n), 0);
    assert_int_equal(serve_registry_wait(&list[0], 1000), 0);
    assert_int_equal(serve_registry_remove(&list[0]), 0);
    assert_int_equal(count(&alive), 0);
    serve_slot_drop(take("mine", "/x"));
    serve_registry_list_done(list, n);
}

static void the_living_cannot_be_removed(void **state)
{
    struct serve_slot *s = take("mine", "/x");
    struct serve_found *list = NULL;
    unsigned n = 0;

    (void)state;
    publish(s, "/m");
    assert_int_equal(serve_registry_list_in(&folder, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_true(list[0].alive);
    assert_int_equal(serve_registry_remove(&list[0]), -EBUSY);
    assert_int_equal(serve_registry_wait(&list[0], 40), -ETIMEDOUT);
    assert_true(exists("mine.json"));
    serve_slot_drop(s);
    assert_int_equal(serve_registry_wait(&list[0], 0), 0);
    serve_registry_list_done(list, n);
}

static void a_lock_is_looked_at_without_being_taken(void **state)
{
    struct serve_slot *s = take("mine", "/x");
    struct serve_found *list = NULL;
    unsigned n = 0;

    (void)state;
    publish(s, "/m");
    serve_slot_leave(s);
    assert_int_equal(serve_registry_list_in(&folder, &list, &n), 0);
    assert_int_equal(n, 1);
    assert_false(list[0].alive);
    s = take("mine", "/x"); /* although a list is out */
    assert_false(exists("mine.json"));
    serve_slot_drop(s);
    serve_registry_list_done(list, n);
}

static void write_file(const char *file, const char *text)
{
    char path[PATH_MAX + 32];
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s", folder.path, file);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void what_is_no_record_is_left_out(void **state)
{
    char from[PATH_MAX + 32], to[PATH_MAX + 32], *large = malloc(100001);
    struct serve_slot *s = take("good", "/x");
    bool alive;

    (void)state;
    publish(s, "/m");
    write_file("garbage.json", "{\"name\":");
    write_file("empty.json", "");
    write_file("list.json", "[1]");
    write_file("deep.json", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[");
    memset(large, ' ', 100000);
    large[100000] = '\0';
    write_file("large.json", large);
    free(large);
    snprintf(from, sizeof(from), "%s/good.json", folder.path);
    snprintf(to, sizeof(to), "%s/copied.json", folder.path);
    assert_int_equal(link(from, to), 0); /* its name inside is another */
    snprintf(to, sizeof(to), "%s/link.json", folder.path);
    assert_int_equal(symlink("/etc/passwd", to), 0);
    snprintf(to, sizeof(to), "%s/pipe.json", folder.path);
    assert_int_equal(mkfifo(to, 0600), 0); /* must not make us wait for a writer */
    snprintf(to, sizeof(to), "%s/dir.json", folder.path);
    assert_int_equal(mkdir(to, 0700), 0);
    assert_int_equal(count(&alive), 1);
    assert_true(alive);
    serve_slot_drop(s);
}

static void a_lock_that_is_a_link_is_not_followed(void **state)
{
    char at[PATH_MAX + 32];
    struct serve_slot *s = NULL;

    (void)state;
    snprintf(at, sizeof(at), "%s/mine.lock", folder.path);
    assert_int_equal(symlink("/tmp/hushvol-test-elsewhere", at), 0);
    assert_true(serve_slot_take(&s, &folder, "mine", "/x", &report.rep) < 0);
    assert_int_not_equal(access("/tmp/hushvol-test-elsewhere", F_OK), 0);
}

static void a_slot_removes_no_files_but_its_own(void **state)
{
    struct serve_slot *first = take("swept", "/c.hv"), *second;
    char path[PATH_MAX + 32];

    (void)state;
    publish(first, "/somewhere");
    snprintf(path, sizeof(path), "%s/swept.lock", folder.path);
    assert_int_equal(unlink(path), 0); /* as a job that cleans /tmp does */
    second = take("swept", "/d.hv");
    publish(second, "/elsewhere");
    serve_slot_drop(first);
    assert_true(exists("swept.json") && exists("swept.lock"));
    serve_slot_drop(second);
    assert_false(exists("swept.json") || exists("swept.lock"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        TEST(the_second_of_a_name_gets_a_number),
        TEST(a_wanted_name_that_is_taken_is_busy),
        TEST(dropping_leaves_no_file),
        TEST(one_that_was_killed_is_dead_and_gives_way),
        TEST(the_living_cannot_be_removed),
        TEST(a_lock_is_looked_at_without_being_taken),
        TEST(what_is_no_record_is_left_out),
        TEST(a_lock_that_is_a_link_is_not_followed),
        TEST(a_slot_removes_no_files_but_its_own),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
