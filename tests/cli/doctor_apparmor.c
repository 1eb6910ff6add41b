/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/doctor_apparmor.c: which places a profile of fusermount3 allows. */

#include "cli/doctor_apparmor.h"
#include "lib/test.h"

/* In the form in which distributions have it. */
#define MOUNT "  mount fstype=@{fuse_types} options=(nosuid,nodev) options in (ro,rw,noexec) -> "
#define PROFILE(flags, rules)                                                                      \
    "abi <abi/4.0>,\n"                                                                             \
    "include <tunables/global>\n"                                                                  \
    "@{fuse_types} = {fuse,fuse.*,fuseblk,fusectl}\n"                                              \
    "profile fusermount3 /usr/bin/fusermount3 " flags "{\n"                                        \
    "  include <abstractions/base>\n"                                                              \
    "  capability sys_admin,\n"                                                                    \
    "  /dev/fuse rw, # the device, not a -> /place/**/,\n" rules "  umount /var/lib/**/,\n"        \
    "  include if exists <local/fusermount3>\n"                                                    \
    "}\n"

static const char usual[] =
    PROFILE("", MOUNT "@{HOME}/**/,\n" MOUNT "/mnt/{,**/},\n" MOUNT
                      "@{run}/user/@{uid}/**/,\n" MOUNT "/media/**/,\n" MOUNT "/tmp/**/,\n");

static void fit(const char *profile, const char *tunables, const char *folder,
                enum doctor_allowed want)
{
    if (doctor_apparmor_mount(profile, tunables, folder) != want)
        fail_msg("%s", folder);
}

static void the_usual_places(void **state)
{
    static const char *const yes[] = {"/home/ada/photos",
                                      "/home/ada/a/b/c",
                                      "/root/x",
                                      "/mnt",
                                      "/mnt/a/b",
                                      "/media/x",
                                      "/tmp/a b",
                                      "/var/run/user/0/a",
                                      "/run/user/1000/hushvol/mnt/x"};
    static const char *const no[] = {"/home/ada", "/srv/photos",     "/data",   "/var/lib/x",
                                     "/place/x",  "/run/user/ada/x", "/mnt2/x", "/tmp",
                                     "/media",    "/xtmp/a"};

    (void)state;
    for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        fit(usual, "", yes[i], DOCTOR_ALLOWED);
    for (unsigned i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        fit(usual, "", no[i], DOCTOR_REFUSED);
}

static void homes_are_where_the_tunables_say(void **state)
{
    static const char tunables[] =
        "# @{HOMEDIRS}=/no/\n@{HOME}=@{HOMEDIRS}/*/ /root/\n"
        "@{HOMEDIRS}=/home/\n  @{HOMEDIRS}+=/srv/homes/ \"/export\" # x\n";

    (void)state;
    fit(usual, "", "/srv/homes/ada/x", DOCTOR_REFUSED);
    fit(usual, tunables, "/srv/homes/ada/x", DOCTOR_ALLOWED);
    fit(usual, tunables, "/export/ada/x", DOCTOR_ALLOWED);
    fit(usual, tunables, "/home/ada/x", DOCTOR_ALLOWED);
    fit(usual, tunables, "/no/ada/x", DOCTOR_REFUSED);
}

static void rules_of_other_forms(void **state)
{
    (void)state;
    fit(PROFILE("", "mount,\n"), "", "/srv/x", DOCTOR_ALLOWED);
    fit(PROFILE("", "mountain fstype=fuse,\n"), "", "/srv/x", DOCTOR_UNKNOWN);
    fit(PROFILE("", "mount fstype=fuse,\n"), "", "/srv/x", DOCTOR_ALLOWED);
    fit(PROFILE("", "mount fstype=ext4 -> /srv/**,\n"), "", "/srv/x", DOCTOR_UNKNOWN);
    fit(PROFILE("", "  allow mount fstype=(fuse, fuse.*)\n     -> \"/s.v/[a-c]?/\",\n"), "",
        "/s.v/bx", DOCTOR_ALLOWED);
    fit(PROFILE("", "mount fstype=fuse -> /s.v/[a-c]?/,\n"), "", "/srv/bx", DOCTOR_REFUSED);
    fit(PROFILE("", "mount fstype=fuse -> /srv/*/,\n"), "", "/srv/b/c", DOCTOR_REFUSED);
}

static void deny_is_stronger(void **state)
{
    static const char profile[] =
        PROFILE("", "mount fstype=fuse -> /srv/**,\naudit deny mount -> /srv/no/**,\n");

    (void)state;
    fit(profile, "", "/srv/x", DOCTOR_ALLOWED);
    fit(profile, "", "/srv/no/x", DOCTOR_REFUSED);
}

static void what_is_not_understood_refuses_nothing(void **state)
{
    static const char profile[] =
        PROFILE("", "mount fstype=fuse -> @{PLACES}/**/,\nmount fstype=fuse -> /srv/**/,\n");

    (void)state;
    fit(profile, "", "/srv/x", DOCTOR_ALLOWED);
    fit(profile, "", "/data/x", DOCTOR_UNKNOWN);
    fit(PROFILE("", ""), "", "/data/x", DOCTOR_UNKNOWN);
    fit(PROFILE("", "mount fstype=fuse -> /a[b,\n"), "", "/data/x", DOCTOR_UNKNOWN);
    fit("", "", "/data/x", DOCTOR_UNKNOWN);
    fit("mount fstype=fuse -> {{{{,", "@{HOMEDIRS}", "/data/x", DOCTOR_UNKNOWN);
}

static void one_that_is_not_enforced_allows_all(void **state)
{
    (void)state;
    fit(PROFILE("flags=(complain) ", MOUNT "/mnt/**/,\n"), "", "/srv/x", DOCTOR_ALLOWED);
    fit(PROFILE("flags=(unconfined) ", ""), "", "/srv/x", DOCTOR_ALLOWED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_usual_places),
        cmocka_unit_test(homes_are_where_the_tunables_say),
        cmocka_unit_test(rules_of_other_forms),
        cmocka_unit_test(deny_is_stronger),
        cmocka_unit_test(what_is_not_understood_refuses_nothing),
        cmocka_unit_test(one_that_is_not_enforced_allows_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
