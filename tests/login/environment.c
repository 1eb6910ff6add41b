/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves login/environment.c: what the user's program gets, and that nothing else comes along. */

#include "login/environment.h"
#include "lib/test.h"

#include <stdlib.h>

static const struct login_user ada = {.name = "ada", .home = "/home/ada", .shell = "/bin/sh"};

static void expect(const char *const *given, const char *const *want)
{
    char **env = NULL;
    size_t n = 0;

    assert_int_equal(login_environment(&env, &ada, given), 0);
    for (; want[n] != NULL; n++) {
        assert_non_null(env[n]);
        assert_string_equal(env[n], want[n]);
    }
    assert_null(env[n]);
    login_environment_done(env);
}

static void it_is_the_users_own_and_nothing_of_the_hosts(void **state)
{
    static const char *const want[] = {"HOME=/home/ada",
                                       "USER=ada",
                                       "LOGNAME=ada",
                                       "SHELL=/bin/sh",
                                       "PATH=/usr/local/bin:/usr/bin:/bin",
                                       NULL};
    const char *const nothing[] = {NULL};

    (void)state;
    setenv("LD_PRELOAD", "/tmp/evil.so", 1);
    expect(NULL, want);
    expect(nothing, want);
    unsetenv("LD_PRELOAD");
}

static void of_what_pam_holds_three_kinds_pass(void **state)
{
    static const char *const given[] = {"PATH=/tmp",
                                        "XDG_RUNTIME_DIR=/run/user/1",
                                        "LD_PRELOAD=/tmp/evil.so",
                                        "LANG=de_DE",
                                        "LC_ALL=C",
                                        "LANGUAGE=de",
                                        "HOME=/root",
                                        "LC_TIME=C",
                                        "XDG_CONFIG_HOME=/tmp",
                                        NULL};
    static const char *const want[] = {"HOME=/home/ada",
                                       "USER=ada",
                                       "LOGNAME=ada",
                                       "SHELL=/bin/sh",
                                       "PATH=/usr/local/bin:/usr/bin:/bin",
                                       "XDG_RUNTIME_DIR=/run/user/1",
                                       "LANG=de_DE",
                                       "LC_ALL=C",
                                       "LC_TIME=C",
                                       NULL};

    (void)state;
    expect(given, want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_the_users_own_and_nothing_of_the_hosts),
        cmocka_unit_test(of_what_pam_holds_three_kinds_pass),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
