/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/doctor_pam.c: which places of pam_hushvol.so in the files of PAM work, and what is
 * said of those that do not. */

#include "cli/doctor_pam.h"
#include "lib/test.h"

#include <stdio.h>
#include <string.h>

#define UNIX_JUMPS(n) "auth [success=" n " default=ignore] pam_unix.so nullok\n"
#define AUTH_TAIL                                                                                  \
    "auth requisite pam_deny.so\n"                                                                 \
    "auth required pam_permit.so\n"
#define OURS(type) type " optional pam_hushvol.so\n"
#define SESSION                                                                                    \
    "session [default=1] pam_permit.so\n"                                                          \
    "session requisite pam_deny.so\n"                                                              \
    "session required pam_permit.so\n"                                                             \
    "session required pam_unix.so\n"                                                               \
    "session optional pam_systemd.so\n"
#define LOGIN                                                                                      \
    "auth optional pam_faildelay.so delay=3000000\n"                                               \
    "auth requisite pam_nologin.so\n"                                                              \
    "@include common-auth\n"                                                                       \
    "session required pam_limits.so\n"                                                             \
    "@include common-session\n"

static struct doctor d;
static char module[64];

static void look(unsigned n, const struct doctor_pam_file *files)
{
    d.n = 0;
    assert_int_equal(doctor_pam(&d, files, n, module, sizeof(module)), 0);
}

static bool says(enum doctor_level level, const char *text)
{
    for (unsigned i = 0; i < d.n; i++)
        if (d.findings[i].level == level && strstr(d.findings[i].text, text) != NULL)
            return true;
    return false;
}

/* login with these common files, as Debian has them. */
static void look_at_login(const char *auth, const char *session)
{
    const struct doctor_pam_file files[] = {{"common-auth", "/P/common-auth", auth},
                                            {"common-session", "/P/common-session", session},
                                            {"login", "/P/login", LOGIN}};

    look(3, files);
}

static void look_at(const char *text)
{
    const struct doctor_pam_file file = {"login", "/P/login", text};

    look(1, &file);
}

static void warns(const char *text)
{
    if (!says(DOCTOR_WARN, text))
        fail_msg("no \"%s\" but \"%s\"", text, d.n > 0 ? d.findings[0].text : "");
    for (unsigned i = 0; i < d.n; i++)
        assert_non_null(d.findings[i].fix);
}

static void is_right(void)
{
    if (d.n != 1 || d.findings[0].level != DOCTOR_OK)
        fail_msg("\"%s\"", d.n > 0 ? d.findings[0].text : "nothing");
}

static void files_without_the_module_say_nothing(void **state)
{
    (void)state;
    look_at_login(UNIX_JUMPS("1") AUTH_TAIL, SESSION);
    assert_int_equal(d.n, 0);
    assert_string_equal(module, "");
}

static void as_the_package_puts_it_is_right(void **state)
{
    (void)state;
    look_at_login(UNIX_JUMPS("1") AUTH_TAIL OURS("auth"), SESSION OURS("session"));
    is_right();
    assert_string_equal(module, "pam_hushvol.so");
    assert_true(says(DOCTOR_OK, "1 service"));
}

static void a_jump_past_it_is_found(void **state)
{
    (void)state;
    look_at_login("# the trap\n" UNIX_JUMPS("2") OURS("auth") AUTH_TAIL, SESSION OURS("session"));
    warns("/P/common-auth:3: pam_hushvol.so (auth) is never reached: pam_unix.so in "
          "/P/common-auth:2 jumps past it");
}

static void a_jump_of_the_second_password_module_counts_too(void **state)
{
    static const char *const sss[] = {"1", "2"};
    char text[512];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        snprintf(text, sizeof(text),
                 "auth [success=2 default=ignore] pam_unix.so\n"
                 "auth [success=%s default=ignore] pam_sss.so use_first_pass\n"
                 "auth requisite pam_deny.so\n" OURS("auth") "auth required pam_permit.so\n",
                 sss[i]);
        look_at_login(text, SESSION OURS("session"));
        if (i == 0)
            is_right();
        else
            warns("pam_sss.so in /P/common-auth:2 jumps past it");
    }
}

static void sufficient_ends_the_stack(void **state)
{
    (void)state;
    look_at("auth sufficient pam_unix.so\n" OURS("auth") "auth required pam_deny.so\n" SESSION OURS(
        "session"));
    warns("pam_unix.so in /P/login:1 ends the stack");
}

static void sufficient_in_a_substack_ends_only_that(void **state)
{
    static const struct doctor_pam_file files[] = {
        {"system-auth", "/P/system-auth",
         "auth sufficient pam_unix.so\nauth required pam_deny.so\n"},
        {"login", "/P/login", "auth substack system-auth\n" OURS("auth") SESSION OURS("session")},
        {"other", "/P/other", "auth include system-auth\n" OURS("auth")}};

    (void)state;
    look(2, files);
    is_right();
    look(3, files);
    warns("/P/other:2: pam_hushvol.so (auth) is never reached");
}

static void a_substack_is_one_line_for_a_jump(void **state)
{
    static const struct doctor_pam_file files[] = {
        {"more", "/P/more", "auth optional pam_env.so\nauth optional pam_group.so\n"},
        {"login", "/P/login",
         UNIX_JUMPS("1") "auth substack more\n" OURS("auth") SESSION OURS("session")}};

    (void)state;
    look(2, files);
    is_right();
}

static void other_modules_do_not_lead_astray(void **state)
{
    (void)state;
    look_at("auth [success=1 default=ignore] pam_succeed_if.so quiet user ingroup nopasswd\n"
            "auth sufficient pam_rootok.so\n"
            "auth [default=1 ignore=ignore success=ok] pam_localuser.so\n"
            "auth required pam_unix.so \\\n"
            "   nullok\n" OURS("auth") "-session optional pam_systemd.so # here\n" OURS("session"));
    is_right();
}

static void before_the_password_it_has_none(void **state)
{
    (void)state;
    look_at(OURS("auth") "auth required pam_unix.so\n" SESSION OURS("session"));
    warns("/P/login:1: pam_hushvol.so (auth) stands before pam_unix.so in /P/login:2");
}

static void a_session_needs_its_places(void **state)
{
    (void)state;
    look_at("auth required pam_unix.so\n" OURS("auth") OURS("session") SESSION
            "session optional pam_mkhomedir.so\n");
    warns("/P/login:3: pam_hushvol.so (session) stands before pam_systemd.so in /P/login:8");
    warns("stands before pam_mkhomedir.so in /P/login:9");
    look_at("auth required pam_unix.so\n" OURS("auth") "session sufficient pam_unix.so\n" OURS(
        "session"));
    warns("/P/login:4: pam_hushvol.so (session) is never reached: pam_unix.so in /P/login:3");
}

static void it_is_to_be_optional(void **state)
{
    (void)state;
    look_at("auth required pam_unix.so\nauth required pam_hushvol.so\n" SESSION
            "session sufficient pam_hushvol.so\n");
    warns("/P/login:2: pam_hushvol.so is required: without its file nobody could log in");
    warns("/P/login:8: pam_hushvol.so is sufficient, which leaves out the lines after it");
    look_at("auth required pam_unix.so\nauth [success=ok default=ignore] pam_hushvol.so\n" SESSION
            "session [default=ignore] /opt/lib/pam_hushvol.so debug\n");
    is_right();
}

static void auth_and_session_belong_together(void **state)
{
    static const struct doctor_pam_file sudo = {"sudo", "/P/sudo",
                                                "auth required pam_unix.so\n" OURS("auth")};

    (void)state;
    look_at("auth required pam_unix.so\n" OURS("auth"));
    warns("/P/login: pam_hushvol.so is in auth and not in session, so nothing is mounted");
    look_at("auth required pam_unix.so\n" SESSION OURS("session"));
    warns("/P/login: pam_hushvol.so is in session and not in auth");
    look_at("auth required pam_permit.so\n" SESSION OURS("session")); /* nobody is asked */
    is_right();
    look(1, &sudo);
    assert_int_equal(d.n, 0);
}

static void twice_is_once_too_often(void **state)
{
    (void)state;
    look_at_login(UNIX_JUMPS("1") AUTH_TAIL OURS("auth") OURS("auth"), SESSION OURS("session"));
    warns("/P/common-auth:5: pam_hushvol.so (auth) is in /P/common-auth:4 already, so login calls "
          "it twice");
}

static void passwd_is_to_tell_it(void **state)
{
    struct doctor_pam_file files[] = {
        {"login", "/P/login", "auth required pam_unix.so\n" OURS("auth") SESSION OURS("session")},
        {"passwd", "/P/passwd", "password required pam_unix.so\n"}};

    (void)state;
    look(2, files);
    warns("passwd does not call pam_hushvol.so");
    files[1].text = "password [success=1 default=ignore] pam_unix.so\n"
                    "password requisite pam_deny.so\n" OURS("password");
    look(2, files);
    is_right();
    files[1].text = OURS("password") "password required pam_unix.so\n";
    look(2, files);
    warns("/P/passwd:1: pam_hushvol.so (password) stands before pam_unix.so in /P/passwd:2");
}

/* Each fault of a common file is said once, however many services include it. */
static void a_fault_is_said_once(void **state)
{
    const struct doctor_pam_file files[] = {
        {"common-auth", "/P/common-auth", UNIX_JUMPS("2") OURS("auth") AUTH_TAIL},
        {"common-session", "/P/common-session", SESSION OURS("session")},
        {"login", "/P/login", LOGIN},
        {"sshd", "/P/sshd", LOGIN}};

    (void)state;
    look(4, files);
    assert_int_equal(d.n, 1);
}

static void files_that_include_each_other_end(void **state)
{
    static const struct doctor_pam_file files[] = {
        {"a", "/P/a", "@include b\nauth substack a\n" OURS("auth")},
        {"b", "/P/b", "@include a\nauth include b\n" OURS("auth")},
        {"c", "/P/c", "auth [success=99 default=die pam_unix.so\n[\nauth\n@include\nauth [\n\\\n"},
        {"d", "/P/d", "@include a\nauth [success=4000000000 default=ignore] pam_unix.so\n"}};

    (void)state;
    look(4, files);
    assert_true(d.n < DOCTOR_FINDINGS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_without_the_module_say_nothing),
        cmocka_unit_test(as_the_package_puts_it_is_right),
        cmocka_unit_test(a_jump_past_it_is_found),
        cmocka_unit_test(a_jump_of_the_second_password_module_counts_too),
        cmocka_unit_test(sufficient_ends_the_stack),
        cmocka_unit_test(sufficient_in_a_substack_ends_only_that),
        cmocka_unit_test(a_substack_is_one_line_for_a_jump),
        cmocka_unit_test(other_modules_do_not_lead_astray),
        cmocka_unit_test(before_the_password_it_has_none),
        cmocka_unit_test(a_session_needs_its_places),
        cmocka_unit_test(it_is_to_be_optional),
        cmocka_unit_test(auth_and_session_belong_together),
        cmocka_unit_test(twice_is_once_too_often),
        cmocka_unit_test(passwd_is_to_tell_it),
        cmocka_unit_test(a_fault_is_said_once),
        cmocka_unit_test(files_that_include_each_other_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
