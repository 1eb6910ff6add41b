/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/unmount.c: root takes down what the mount table showed, whatever the owner of the
 * folders on the way does between the look and the call. The mount table is one of our own here,
 * so that something can happen right after each look. */

#include "fuse/unmount.h"
#include "fuse/mounts.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char box[] = "/tmp/hushvol-unmount.XXXXXX";
static struct serve_mount_id shown;
static void (*after_look)(void);

int serve_mounts_at(struct serve_mount_id *ret, const char *point)
{
    (void)point;
    *ret = shown;
    if (after_look != NULL)
        after_look();
    return 0;
}

bool serve_mounts_same(const struct serve_mount_id *a, const struct serve_mount_id *b)
{
    return a->id == b->id;
}

static struct serve_mount_id id_of(const char *path)
{
    struct statx st;

    assert_int_equal(statx(AT_FDCWD, path, 0, STATX_BASIC_STATS | STATX_MNT_ID, &st), 0);
    return (struct serve_mount_id){
        .id = st.stx_mnt_id, .major = st.stx_dev_major, .minor = st.stx_dev_minor};
}

static void mount_at(const char *folder)
{
    char point[64];

    assert_int_equal(mkdir(folder, 0755), 0);
    snprintf(point, sizeof(point), "%s/m", folder);
    assert_int_equal(mkdir(point, 0755), 0);
    assert_int_equal(mount("none", point, "tmpfs", 0, "size=64k"), 0);
}

/* A mount namespace of our own, which takes everything along when we end. */
static int set_up(void **state)
{
    (void)state;
    if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
        return 0;
    if (mkdtemp(box) == NULL || chdir(box) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
        return -1;
    mount_at("users");
    mount_at("victim");
    return 0;
}

static int tear_down(void **state)
{
    static const char *const points[] = {"users/m", "moved/m", "victim/m"};
    static const char *const folders[] = {"users", "moved", "victim"};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        umount2(points[i], MNT_DETACH);
        rmdir(points[i]);
    }
    unlink("users");
    for (unsigned i = 0; i < 3; i++)
        rmdir(folders[i]);
    return chdir("/") < 0 || (geteuid() == 0 && rmdir(box) < 0 && errno != ENOENT);
}

static void users_folder_becomes_a_link(void)
{
    rename("users", "moved");
    assert_int_equal(symlink("victim", "users"), 0);
    after_look = NULL;
}

static bool is_mounted(const char *folder)
{
    char point[64];

    snprintf(point, sizeof(point), "%s/m", folder);
    return id_of(point).id != id_of(folder).id;
}

static void a_link_on_the_way_leads_root_to_no_other_mount(void **state)
{
    char point[128];

    (void)state;
    if (access("victim", F_OK) < 0)
        skip();
    snprintf(point, sizeof(point), "%s/users/m", box);
    shown = id_of(point);
    users_folder_becomes_a_link();
    assert_int_equal(serve_unmount(point, false, NULL), -EPERM);
    assert_int_equal(serve_unmount(point, true, NULL), -EPERM);
    assert_true(is_mounted("victim"));
    unlink("users");
    assert_int_equal(rename("moved", "users"), 0);
    after_look = users_folder_becomes_a_link; /* later: its folder is held by then */
    assert_int_equal(serve_unmount(point, false, NULL), 0);
    assert_true(is_mounted("victim"));
    assert_false(is_mounted("moved"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_link_on_the_way_leads_root_to_no_other_mount),
    };

    return cmocka_run_group_tests_name("unmount", tests, set_up, tear_down);
}
