/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/credential.c and keystore/tty.c: every source, and asking on a terminal of our
 * own, with the signals that may come meanwhile. */

#include "keystore/credential.h"
#include "base/auto.h"
#include "lib/session.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/hushvol-credential-XXXXXX";

static int start(void **state)
{
    return mkdtemp(folder) == NULL ? -1 : test_start(state);
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

/* A file with these bytes; its path lives until the next call with this slot. */
static const char *file(unsigned slot, const void *bytes, size_t len, mode_t mode)
{
    static char path[4][64];
    int fd;

    snprintf(path[slot], sizeof(path[slot]), "%s/file%u", folder, slot);
    unlink(path[slot]);
    fd = open(path[slot], O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
    return path[slot];
}

static void assert_secret(const struct secret *s, const void *want, size_t len)
{
    assert_int_equal(s->len, len);
    assert_memory_equal(s->bytes, want, len);
}

/* --- files --- */

static void a_passphrase_file_loses_one_newline(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *want;
        size_t want_len;
    } cases[] = {
        {"horse", 5, "horse", 5},
        {"horse\n", 6, "horse", 5},
        {"horse\n\n", 7, "horse\n", 6},
        {"two\nlines\n", 10, "two\nlines", 9},
        {"horse\r\n", 7, "horse\r", 6},
        {" \n", 2, " ", 1},
        {"nul\0inside\n", 11, "nul\0inside", 10},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct credential_source src = {.passphrase_file =
                                                  file(0, cases[i].bytes, cases[i].len, 0600)};
        AUTO_CREDENTIAL struct credential c = {0};
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(credential_read(&c, &src, &said.rep), 0);
        assert_true(c.has_passphrase && !c.typed);
        assert_int_equal(c.n_keyfiles, 0);
        assert_secret(&c.passphrase, cases[i].want, cases[i].want_len);
        assert_int_equal(said.n_lines, 0);
    }
}

static void empty_and_too_long_passphrases_are_refused(void **state)
{
    AUTO_FREE char *text = calloc(1, CREDENTIAL_PASSPHRASE_MAX + 2);
    struct credential c = {0};
    struct test_report said;
    struct credential_source src = {0};

    (void)state;
    test_report_init(&said);
    memset(text, 'x', CREDENTIAL_PASSPHRASE_MAX + 2);
    src.passphrase_file = file(0, "", 0, 0600);
    assert_int_equal(credential_read(&c, &src, &said.rep), -EINVAL);
    src.passphrase_file = file(0, "\n", 1, 0600);
    assert_int_equal(credential_read(&c, &src, &said.rep), -EINVAL);
    assert_true(test_report_has(&said, "is empty"));
    src.passphrase_file = file(0, text, CREDENTIAL_PASSPHRASE_MAX + 1, 0600);
    assert_int_equal(credential_read(&c, &src, &said.rep), -EINVAL);
    assert_true(test_report_has(&said, "longer than 8192"));
    text[CREDENTIAL_PASSPHRASE_MAX] = '\n';
    src.passphrase_file = file(0, text, CREDENTIAL_PASSPHRASE_MAX + 2, 0600);
    assert_int_equal(credential_read(&c, &src, NULL), -EINVAL);
    src.passphrase_file = file(0, text, CREDENTIAL_PASSPHRASE_MAX + 1, 0600);
    assert_int_equal(credential_read(&c, &src, NULL), 0);
    assert_int_equal(c.passphrase.len, CREDENTIAL_PASSPHRASE_MAX);
    credential_done(&c);
}

/* As geli(8) reads pass files. */
static void first_lines_of_several_files_make_one_passphrase(void **state)
{
    AUTO_FREE char *text = calloc(1, CREDENTIAL_PASSPHRASE_MAX + 1);
    struct credential_source src = {.lines = true};
    AUTO_CREDENTIAL struct credential c = {0};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    src.passphrase_file = file(0, "old \nand more\n", 14, 0600);
    src.more_passphrase_files[0] = file(1, "\n", 1, 0600);
    src.more_passphrase_files[1] = file(2, "horse", 5, 0600);
    src.n_more_passphrase_files = 2;
    assert_int_equal(credential_read(&c, &src, &said.rep), 0);
    assert_secret(&c.passphrase, "old horse", 9);
    assert_int_equal(said.n_lines, 0);
    src.lines = false;
    assert_int_equal(credential_read(&c, &src, &said.rep), -EINVAL);
    assert_true(test_report_has(&said, "one file"));
    src = (struct credential_source){.lines = true, .passphrase_file = file(0, "", 0, 0600)};
    credential_done(&c);
    assert_int_equal(credential_read(&c, &src, NULL), 0);
    assert_true(c.has_passphrase);
    assert_int_equal(c.passphrase.len, 0);
    memset(text, 'x', CREDENTIAL_PASSPHRASE_MAX);
    src.passphrase_file = file(0, text, CREDENTIAL_PASSPHRASE_MAX, 0600);
    src.more_passphrase_files[0] = file(1, "y", 1, 0600);
    credential_done(&c);
    assert_int_equal(credential_read(&c, &src, NULL), 0);
    src.n_more_passphrase_files = 1;
    credential_done(&c);
    assert_int_equal(credential_read(&c, &src, NULL), -EINVAL);
}

static void files_that_are_not_there_are_named(void **state)
{
    struct credential_source src = {.passphrase_file = "/nonexistent/pass"};
    struct credential c = {0};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    assert_int_equal(credential_read(&c, &src, &said.rep), -ENOENT);
    assert_true(test_report_has(&said, "/nonexistent/pass"));
    src = (struct credential_source){.keyfiles = {"/nonexistent/key"}, .n_keyfiles = 1};
    assert_int_equal(credential_read(&c, &src, &said.rep), -ENOENT);
    assert_true(test_report_has(&said, "/nonexistent/key"));
    src.keyfiles[0] = folder;
    assert_int_equal(credential_read(&c, &src, &said.rep), -EISDIR);
}

static void a_file_that_others_can_read_gets_a_warning(void **state)
{
    static const mode_t modes[] = {0600, 0400, 0640, 0604, 0611};
    static const unsigned want[] = {0, 0, 1, 1, 0};

    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        const struct credential_source src = {.passphrase_file = file(0, "x", 1, modes[i])};
        AUTO_CREDENTIAL struct credential c = {0};
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(credential_read(&c, &src, &said.rep), 0);
        assert_int_equal(said.n_lines, want[i]);
        assert_true(want[i] == 0 || said.level[0] == REPORT_WARN);
    }
}

static void bytes_that_another_system_may_type_otherwise_get_a_hint(void **state)
{
    static const struct {
        const char *text;
        unsigned hints;
    } cases[] = {
        {"plain ascii", 0},         {"gr\xc3\xbc\xc3\x9f", 0}, /* composed */
        {"gru\xcc\x88\xc3\x9f", 1},                            /* u and a combining diaeresis */
        {"latin \xfc", 1},                                     /* not UTF-8 */
        {"\xe2\x84\xab", 1}, /* the angstrom sign is A with ring in NFC */
        {"\xed\x95\x9c", 0}, /* a Hangul syllable */
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct credential_source src = {
            .passphrase_file = file(0, cases[i].text, strlen(cases[i].text), 0600)};
        AUTO_CREDENTIAL struct credential c = {0};
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(credential_read(&c, &src, &said.rep), 0);
        assert_secret(&c.passphrase, cases[i].text, strlen(cases[i].text));
        assert_int_equal(said.n_lines, cases[i].hints);
    }
}

/* --- stdin and pipes --- */

/* Put the reading end of a pipe with this text at fd 0 and return what was there. */
static int stdin_with(const char *text)
{
    int ends[2], old = dup(STDIN_FILENO);

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    return old;
}

static void a_dash_takes_one_line_and_leaves_the_next(void **state)
{
    const struct credential_source src = {.passphrase_file = "-"};
    int old = stdin_with("first\nsecond");
    static const char *const want[] = {"first", "second"};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        AUTO_CREDENTIAL struct credential c = {0};

        assert_int_equal(credential_read(&c, &src, NULL), 0);
        assert_secret(&c.passphrase, want[i], strlen(want[i]));
    }
    {
        AUTO_CREDENTIAL struct credential c = {0};

        assert_int_equal(credential_read(&c, &src, NULL), -EINVAL);
    }
    dup2(old, STDIN_FILENO);
    close(old);
}

static void a_pipe_is_as_good_as_a_file(void **state)
{
    int old = stdin_with("from a pipe\n");
    const struct credential_source src = {.passphrase_file = "/dev/stdin"};
    AUTO_CREDENTIAL struct credential c = {0};

    (void)state;
    assert_int_equal(credential_read(&c, &src, NULL), 0);
    assert_secret(&c.passphrase, "from a pipe", 11);
    dup2(old, STDIN_FILENO);
    close(old);
}

static void behind_the_passphrase_standard_input_is_a_key_file(void **state)
{
    struct credential_source src = {.passphrase_file = "-", .keyfiles = {"-"}, .n_keyfiles = 1};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    for (unsigned i = 0; i < 3; i++) {
        int old = stdin_with("first\nsecond\n");
        AUTO_CREDENTIAL struct credential c = {0};

        if (i == 1)
            src.passphrase_file = NULL;
        if (i == 2)
            src.keyfiles[src.n_keyfiles++] = "-";
        assert_int_equal(credential_read(&c, &src, &said.rep), i == 2 ? -EINVAL : 0);
        assert_int_equal(c.has_passphrase, i == 0);
        if (i == 0)
            assert_secret(&c.passphrase, "first", 5);
        if (i < 2)
            assert_secret(&c.keyfiles, i == 0 ? "second\n" : "first\nsecond\n", i == 0 ? 7 : 13);
        dup2(old, STDIN_FILENO);
        close(old);
    }
    assert_true(test_report_has(&said, "one key file only"));
}

/* --- commands, systemd --- */

static void a_command_s_output_is_the_passphrase(void **state)
{
    static const struct {
        const char *command;
        int want;
        const char *text, *words;
    } cases[] = {
        {"echo horse", 0, "horse", NULL},
        {"printf 'a\\nb\\n'", 0, "a\nb", NULL},
        {"cat /dev/null", -EINVAL, NULL, "is empty"},
        {"exit 3", -EIO, NULL, "status 3"},
        {"echo horse; exit 1", -EIO, NULL, "status 1"},
        {"kill -9 $$", -EIO, NULL, "signal 9"},
        {"/nonexistent/program 2>/dev/null", -EIO, NULL, "status 127"},
        {"yes", -EINVAL, NULL, "longer than"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct credential_source src = {.passphrase_command = cases[i].command};
        AUTO_CREDENTIAL struct credential c = {0};
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(credential_read(&c, &src, &said.rep), cases[i].want);
        assert_int_equal(said.n_lines, cases[i].want != 0);
        if (cases[i].want == 0)
            assert_secret(&c.passphrase, cases[i].text, strlen(cases[i].text));
        else
            assert_true(test_report_has(&said, cases[i].words));
    }
}

static void a_recovery_key_is_the_same_in_every_spelling(void **state)
{
    static const char key[] = "ZGCCZ-K2908-6BT7P-M71X2-QFRXH-BAKD2-3B9QB-2FD16-APTZ4-PK858-JS4YX-"
                              "R1MCR-YB19Y";
    static const struct {
        const char *entry, *words;
    } cases[] = {
        {"ZGCCZ-K2908-6BT7P-M71X2-QFRXH-BAKD2-3B9QB-2FD16-APTZ4-PK858-JS4YX-R1MCR-YB19Y\n", NULL},
        {"zgccz k29o8 6bt7p m7lx2 qfrxh\nbakd2 3b9qb 2fdi6 aptz4\npk858 js4yx r1mcr yb19y", NULL},
        {"ZGCCZK29086BT7PM71X2QFRXHBAKD23B9QB2FD16APTZ4PK858JS4YXR1MCRYB19Y", NULL},
        {"ZGCCZ-K2908-6BT7P-M71X2-QFRXH-BAKD2-3B9QB-2FD16-APTZ4-PK858-JS4YX-R1MCR-YB1Y9",
         "looks like a recovery key with a slip in group 13 of 13"},
        {"ZGCCZ-K2980-6BT7P-M71X2-QFRXH-3B9QB-BAKD2-2FD16-APTZ4-PK858-JS4YX-R1MCR-YB19Y",
         "a slip in groups 2, 6 and 7 of 13"},
        {"ZGCCZ-K2908-6BT7P-M71X2-QFRXH-BAKD2-3B9QB-2FD16-APTZ4-PK858-JS4YX-R1MCR-YB19Y-A",
         "has 66 characters instead of 65"},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *entry = cases[i].entry, *want = cases[i].words != NULL ? entry : key;
        struct credential_source src = {.passphrase_file = file(0, entry, strlen(entry), 0600)};
        AUTO_CREDENTIAL struct credential c = {0};
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(credential_read(&c, &src, &said.rep), 0);
        assert_secret(&c.passphrase, want, strlen(want));
        assert_int_equal(said.n_lines, cases[i].words != NULL);
        assert_true(cases[i].words == NULL || test_report_has(&said, cases[i].words));
    }
}

static void two_sources_are_one_too_many(void **state)
{
    const struct credential_source src = {.passphrase_file = "-", .passphrase_command = "true"};
    struct credential c = {0};

    (void)state;
    assert_int_equal(credential_read(&c, &src, NULL), -EINVAL);
}

static void systemd_s_credential_is_used_when_it_is_there(void **state)
{
    struct credential_source src = {.name = "photos"};
    AUTO_CREDENTIAL struct credential c = {0}, with_key = {0}, without = {0};
    char path[128];

    (void)state;
    snprintf(path, sizeof(path), "%s/hushvol.photos", folder);
    assert_int_equal(rename(file(0, "from systemd\n", 13, 0400), path), 0);
    setenv("CREDENTIALS_DIRECTORY", folder, 1);
    assert_int_equal(credential_read(&c, &src, NULL), 0);
    assert_secret(&c.passphrase, "from systemd", 12);
    src.keyfiles[0] = file(1, "key", 3, 0600);
    src.n_keyfiles = 1;
    assert_int_equal(credential_read(&with_key, &src, NULL), 0);
    assert_true(with_key.has_passphrase);
    src.name = "other";
    assert_int_equal(credential_read(&without, &src, NULL), 0);
    assert_false(without.has_passphrase);
    unsetenv("CREDENTIALS_DIRECTORY");
}

/* --- the terminal --- */

static int ask(const void *arg, char text[TEST_SESSION_TEXT])
{
    const struct credential_source *src = arg;
    struct credential c = {0};
    int r = credential_read(&c, src, NULL);

    if (r == 0)
        memcpy(text, c.passphrase.bytes, c.passphrase.len);
    credential_done(&c);
    return r;
}

/* Asked for "Passphrase for x" with confirm, after these keys: r, and what the terminal does. */
static void asked(bool confirm, const char *first, const char *second, int want)
{
    const struct credential_source src = {.prompt = "Passphrase for x", .confirm = confirm};
    struct test_session s = test_session_open(ask, &src);
    struct test_asked result;

    test_session_expect(&s, "Passphrase for x: ");
    assert_false(test_session_echoes(&s));
    test_session_type(&s, first);
    if (second != NULL) {
        test_session_expect(&s, "The same again: ");
        assert_false(test_session_echoes(&s));
        test_session_type(&s, second);
    }
    result = test_session_next(&s);
    assert_int_equal(result.r, want);
    if (want == 0)
        assert_memory_equal(result.text, first, strlen(first) - 1);
    assert_true(test_session_echoes(&s));
    test_session_expect(&s, "\r\n");
    test_session_close(&s);
}

static void a_passphrase_is_asked_for_unseen(void **state)
{
    (void)state;
    asked(false, "old horse\n", NULL, 0);
}

static void a_new_passphrase_is_asked_for_twice(void **state)
{
    (void)state;
    asked(true, "old horse\n", "old horse\n", 0);
    asked(true, "old horse\n", "old hors\n", -EINVAL);
}

static void a_passphrase_is_asked_for_beside_key_files_if_that_is_wanted(void **state)
{
    struct credential_source src = {.prompt = "Passphrase for x",
                                    .ask = true,
                                    .keyfiles = {file(0, "k", 1, 0600)},
                                    .n_keyfiles = 1};
    struct test_session s = test_session_open(ask, &src);
    struct credential c = {0};

    (void)state;
    test_session_expect(&s, "Passphrase for x: ");
    test_session_type(&s, "old horse\n");
    assert_int_equal(test_session_next(&s).r, 0);
    test_session_close(&s);
    src.passphrase_file = file(1, "x", 1, 0600);
    assert_int_equal(credential_read(&c, &src, NULL), -EINVAL);
}

static void nothing_entered_is_no_passphrase(void **state)
{
    (void)state;
    asked(false, "\n", NULL, -EINVAL);
    asked(false, "\x04", NULL, -EINVAL);
}

static void ctrl_c_gives_the_echo_back(void **state)
{
    (void)state;
    asked(false, "old ho\x03", NULL, -EINTR);
    asked(true, "old horse\n", "\x03", -EINTR);
    asked(false, "\x1c", NULL, -EINTR);
}

static void ctrl_z_stops_with_echo_and_asks_again(void **state)
{
    const struct credential_source src = {.prompt = "Passphrase for x"};
    struct test_session s = test_session_open(ask, &src);
    struct test_asked result;

    (void)state;
    test_session_expect(&s, "Passphrase for x: ");
    test_session_type(&s, "half\x1a");
    result = test_session_next(&s);
    assert_int_equal(result.what, TEST_STOPPED);
    assert_true(result.echo);
    test_session_expect(&s, "Passphrase for x: ");
    assert_false(test_session_echoes(&s));
    test_session_type(&s, "old horse\n");
    result = test_session_next(&s);
    assert_int_equal(result.what, TEST_ENDED);
    assert_int_equal(result.r, 0);
    assert_string_equal(result.text, "old horse");
    assert_true(test_session_echoes(&s));
    test_session_close(&s);
}

static void without_a_terminal_the_options_are_named(void **state)
{
    const struct credential_source src = {.prompt = "Passphrase"};
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        struct credential c = {0};
        struct test_report said;

        setsid();
        test_report_init(&said);
        _exit(credential_read(&c, &src, &said.rep) != -ENXIO ||
              !test_report_has(&said, "--passphrase-file"));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void what_was_read_is_kept_and_given_again(void **state)
{
    AUTO_CREDENTIAL struct credential first = {0}, kept = {0}, again = {0};
    struct credential_source src = {.keep = &kept}, same = {.given = &kept};

    (void)state;
    src.passphrase_file = file(0, "horse\n", 6, 0600);
    assert_int_equal(credential_read(&first, &src, NULL), 0);
    src.keyfiles[src.n_keyfiles++] = file(1, "key\n", 4, 0600);
    credential_done(&first);
    assert_int_equal(credential_read(&first, &src, NULL), 0); /* the last one counts */
    same.passphrase_file = "/nobody/looks/here";
    assert_int_equal(credential_read(&again, &same, NULL), 0);
    assert_true(again.has_passphrase);
    assert_int_equal(again.n_keyfiles, 1);
    assert_secret(&again.passphrase, "horse", 5);
    assert_secret(&again.keyfiles, "key\n", 4);
    assert_ptr_not_equal(again.passphrase.bytes, kept.passphrase.bytes);
}

static void what_could_not_be_read_is_not_kept(void **state)
{
    AUTO_CREDENTIAL struct credential read = {0}, kept = {0};
    const struct credential_source src = {.passphrase_file = "/no/such/file", .keep = &kept};

    (void)state;
    assert_int_equal(credential_read(&read, &src, NULL), -ENOENT);
    assert_false(kept.has_passphrase);
    assert_null(kept.passphrase.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_passphrase_file_loses_one_newline),
        cmocka_unit_test(empty_and_too_long_passphrases_are_refused),
        cmocka_unit_test(first_lines_of_several_files_make_one_passphrase),
        cmocka_unit_test(files_that_are_not_there_are_named),
        cmocka_unit_test(a_file_that_others_can_read_gets_a_warning),
        cmocka_unit_test(bytes_that_another_system_may_type_otherwise_get_a_hint),
        cmocka_unit_test(a_dash_takes_one_line_and_leaves_the_next),
        cmocka_unit_test(a_pipe_is_as_good_as_a_file),
        cmocka_unit_test(a_command_s_output_is_the_passphrase),
        cmocka_unit_test(a_recovery_key_is_the_same_in_every_spelling),
        cmocka_unit_test(two_sources_are_one_too_many),
        cmocka_unit_test(systemd_s_credential_is_used_when_it_is_there),
        cmocka_unit_test(behind_the_passphrase_standard_input_is_a_key_file),
        cmocka_unit_test(what_was_read_is_kept_and_given_again),
        cmocka_unit_test(what_could_not_be_read_is_not_kept),
        cmocka_unit_test(a_passphrase_is_asked_for_unseen),
        cmocka_unit_test(a_new_passphrase_is_asked_for_twice),
        cmocka_unit_test(a_passphrase_is_asked_for_beside_key_files_if_that_is_wanted),
        cmocka_unit_test(nothing_entered_is_no_passphrase),
        cmocka_unit_test(ctrl_c_gives_the_echo_back),
        cmocka_unit_test(ctrl_z_stops_with_echo_and_asks_again),
        cmocka_unit_test(without_a_terminal_the_options_are_named),
    };

    return cmocka_run_group_tests(tests, start, end);
}
