/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/unlock.c: what is refused before anybody is asked, and who may try again. */

#include "keystore/unlock.h"

#include "lib/container.h"
#include "lib/files.h"
#include "lib/session.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "old horse" is in slot 2. */
static void usual(struct key_container *c)
{
    unsigned char block[NATIVE_BLOCK];
    struct native_header h = container_header();

    container_block(block, &h);
    *c = (struct key_container){.blk = container_open(block), .format = key_format_named("native")};
    assert_int_equal(c->format->open(&c->store, c->blk, c->blk, NULL), 0);
}

/* The same after its bytes were changed. */
static void changed(struct key_container *c, void (*change)(unsigned char *block), int with_mac)
{
    unsigned char block[NATIVE_BLOCK];
    struct native_header h = container_header();

    container_block(block, &h);
    change(block);
    container_reseal(block, with_mac);
    *c = (struct key_container){.blk = container_open(block), .format = key_format_named("native")};
    assert_int_equal(c->format->open(&c->store, c->blk, c->blk, NULL), 0);
}

/* --- on a terminal --- */

struct typing {
    struct key_container *c;
    int slot;
    bool silent; /* no report */
};

/* What was said, as "warning; warning; error". */
static int unlock_typed(const void *arg, char text[TEST_SESSION_TEXT])
{
    const struct typing *t = arg;
    const struct credential_source src = {.prompt = "Passphrase for x"};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    struct test_report said;
    size_t n = 0;
    int r;

    test_report_init(&said);
    r = key_unlock_with(t->c, &src, t->slot, &volume, t->silent ? NULL : &said.rep);
    for (unsigned i = 0; i < said.n_lines; i++)
        n += (size_t)snprintf(text + n, TEST_SESSION_TEXT - n, "%s%s: %s", i > 0 ? "; " : "",
                              said.level[i] == REPORT_ERROR ? "error" : "warning", said.line[i]);
    return r;
}

#define AGAIN "warning: no key slot opens with this passphrase, try again"

/* Type these (up to the first NULL), one at each prompt; the answer, and what was said. */
static void typed(const struct typing *t, const char *const keys[4], int want, const char *said)
{
    struct test_session s = test_session_open(unlock_typed, t);
    struct test_asked asked;

    for (unsigned i = 0; i < 4 && keys[i] != NULL; i++) {
        test_session_expect(&s, "Passphrase for x: ");
        test_session_type(&s, keys[i]);
    }
    asked = test_session_next(&s);
    assert_int_equal(asked.what, TEST_ENDED);
    assert_int_equal(asked.r, want);
    assert_string_equal(asked.text, said);
    test_session_close(&s);
}

static void a_typed_passphrase_may_be_wrong_twice(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct typing t = {.c = &c, .slot = KEY_SLOT_ANY};

    (void)state;
    usual(&c);
    typed(&t, (const char *const[4]){"old horse\n"}, 0, "");
    typed(&t, (const char *const[4]){"new horse\n", "old horse\n"}, 0, AGAIN);
    typed(&t, (const char *const[4]){"a\n", "b\n", "old horse\n"}, 0, AGAIN "; " AGAIN);
}

static void the_third_wrong_one_is_the_answer(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct typing t = {.c = &c, .slot = KEY_SLOT_ANY};
    const struct typing named = {.c = &c, .slot = 2};
    const char *const wrong[4] = {"a\n", "b\n", "c\n"};

    (void)state;
    usual(&c);
    typed(&t, wrong, -EKEYREJECTED,
          AGAIN "; " AGAIN "; error: no key slot opens with this passphrase");
    typed(&named, wrong, -EKEYREJECTED,
          AGAIN "; " AGAIN "; error: key slot 2 does not open with this");
}

static void it_is_the_same_without_anybody_to_tell(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct typing t = {.c = &c, .slot = KEY_SLOT_ANY, .silent = true};

    (void)state;
    usual(&c);
    typed(&t, (const char *const[4]){"a\n", "b\n", "old horse\n"}, 0, "");
    typed(&t, (const char *const[4]){"a\n", "b\n", "c\n"}, -EKEYREJECTED, "");
}

static void ctrl_c_and_an_empty_line_end_the_tries(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct typing t = {.c = &c, .slot = KEY_SLOT_ANY};
    const struct typing silent = {.c = &c, .slot = KEY_SLOT_ANY, .silent = true};

    (void)state;
    usual(&c);
    typed(&silent, (const char *const[4]){"a\n", "b\x03"}, -EINTR, "");
    typed(&silent, (const char *const[4]){"a\n", "\n"}, -EINVAL, "");
    typed(&t, (const char *const[4]){"a\n", "b\x03"}, -EINTR,
          AGAIN "; error: interrupted while asking for the passphrase");
}

static void spoil_label(unsigned char *block)
{
    block[0x0c8] ^= 1; /* outside the parameters that every key is bound to */
}

static void a_header_that_its_mac_disowns_is_no_wrong_passphrase(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct typing t = {.c = &c, .slot = KEY_SLOT_ANY, .silent = true};

    (void)state;
    changed(&c, spoil_label, 0);
    typed(&t, (const char *const[4]){"old horse\n"}, -EBADMSG, "");
}

/* --- other sources --- */

/* A command that leaves a line in the file "asked" each time it is run. */
static const char *asking(const char *passphrase)
{
    static char command[512];

    snprintf(command, sizeof(command), "echo >>%s; echo %s", test_path(test_disk, "asked"),
             passphrase);
    return command;
}

static unsigned times_asked(void)
{
    int fd = open(test_path(test_disk, "asked"), O_RDONLY | O_CLOEXEC);
    char lines[64];
    ssize_t n = fd >= 0 ? read(fd, lines, sizeof(lines)) : 0;

    if (fd >= 0)
        close(fd);
    return (unsigned)n;
}

static void what_was_not_typed_is_tried_once(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    struct credential_source src = {.passphrase_command = asking("new horse")};
    struct test_report said;

    (void)state;
    usual(&c);
    test_report_init(&said);
    assert_int_equal(key_unlock_with(&c, &src, KEY_SLOT_ANY, &volume, &said.rep), -EKEYREJECTED);
    assert_int_equal(said.n_lines, 1);
    assert_int_equal(said.level[0], REPORT_ERROR);
    assert_int_equal(times_asked(), 1);
    assert_int_equal(key_unlock_with(&c, &src, KEY_SLOT_ANY, &volume, NULL), -EKEYREJECTED);
    assert_int_equal(times_asked(), 2);
    src.passphrase_command = asking("old horse");
    assert_int_equal(key_unlock_with(&c, &src, KEY_SLOT_ANY, &volume, NULL), 0);
    assert_int_equal(volume.slot, 2);
}

static void a_wrong_passphrase_file_is_tried_once(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    const struct credential_source src = {.passphrase_file = test_path(test_disk, "pass")};
    int fd = open(src.passphrase_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    struct test_report said;

    (void)state;
    assert_int_equal(write(fd, "new horse\n", 10), 10);
    close(fd);
    usual(&c);
    test_report_init(&said);
    assert_int_equal(key_unlock_with(&c, &src, KEY_SLOT_ANY, &volume, &said.rep), -EKEYREJECTED);
    assert_int_equal(said.n_lines, 1);
    assert_int_equal(said.level[0], REPORT_ERROR);
}

/* --- before a question --- */

static void refused_unasked(struct key_container *c, int slot, const char *words)
{
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    const struct credential_source src = {.passphrase_command = asking("old horse")};
    struct test_report said;

    test_report_init(&said);
    assert_int_equal(key_unlock_with(c, &src, slot, &volume, &said.rep), -EKEYREJECTED);
    assert_int_equal(said.n_lines, 1);
    assert_int_equal(said.level[0], REPORT_ERROR);
    assert_true(test_report_has(&said, words));
    assert_int_equal(times_asked(), 0);
}

static void erase(unsigned char *block)
{
    memset(native_header_slot(block, 2), 0, NATIVE_SLOT);
}

static void an_erased_container_is_refused_before_a_question(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};

    (void)state;
    changed(&c, erase, 1);
    refused_unasked(&c, KEY_SLOT_ANY, "erased");
    refused_unasked(&c, 2, "erased");
}

static void an_empty_slot_is_named_before_a_question(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};

    (void)state;
    usual(&c);
    refused_unasked(&c, 5, "no key in slot 5");
    refused_unasked(&c, 99, "no key in slot 99");
}

static void add_slot_of_another_derivation(unsigned char *block)
{
    memcpy(native_header_slot(block, 5), native_header_slot(block, 2), NATIVE_SLOT);
    native_header_slot(block, 5)[2] = 9;
}

static void a_slot_of_an_unknown_kind_is_not_called_empty(void **state)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    const struct credential_source src = {.passphrase_command = "echo old horse"};
    struct test_report said;

    (void)state;
    changed(&c, add_slot_of_another_derivation, 1);
    test_report_init(&said);
    assert_int_equal(key_unlock_with(&c, &src, 5, &volume, &said.rep), -EOPNOTSUPP);
    assert_int_equal(said.n_lines, 1);
    assert_true(test_report_has(&said, "key slot 5"));
    assert_true(test_report_has(&said, "does not support"));
    assert_int_equal(key_unlock_with(&c, &src, 2, &volume, NULL), 0);
}

/* --- opening --- */

static int open_path(struct key_container *ret, const char *path, struct report *rep)
{
    const struct blk_file_spec spec = {.path = path, .read_only = true};
    pid_t holder;

    return key_container_open(ret, &spec, NULL, &holder, rep);
}

static void a_file_becomes_a_container_or_nothing(void **state)
{
    const char *path = test_file(test_disk, CONTAINER_SIZE, false);
    AUTO_KEY_CONTAINER struct key_container c = {0}, none = {0};
    unsigned char block[NATIVE_BLOCK];
    struct native_header h = container_header();
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    (void)state;
    assert_int_equal(open_path(&none, path, NULL), -EBADMSG);
    assert_int_equal(open_path(&none, test_path(test_disk, "nothing"), NULL), -ENOENT);
    assert_true(none.blk == NULL && none.format == NULL && none.store == NULL);
    container_block(block, &h);
    assert_int_equal(pwrite(fd, block, sizeof(block), 0), sizeof(block));
    close(fd);
    assert_int_equal(open_path(&c, path, NULL), 0);
    assert_string_equal(c.format->name, "native");
    assert_int_equal(c.blk->size, CONTAINER_SIZE);
    refused_unasked(&c, 5, "no key in slot 5");
}

static void closing_twice_and_nothing_is_fine(void **state)
{
    struct key_container c = {0};

    (void)state;
    key_container_done(&c);
    usual(&c);
    key_container_done(&c);
    key_container_done(&c);
}

static int start(void **state)
{
    return test_start(state) < 0 ? -1 : test_files_make(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_typed_passphrase_may_be_wrong_twice),
        cmocka_unit_test(the_third_wrong_one_is_the_answer),
        cmocka_unit_test(it_is_the_same_without_anybody_to_tell),
        cmocka_unit_test(ctrl_c_and_an_empty_line_end_the_tries),
        cmocka_unit_test(a_header_that_its_mac_disowns_is_no_wrong_passphrase),
        cmocka_unit_test_teardown(what_was_not_typed_is_tried_once, test_files_clear),
        cmocka_unit_test_teardown(a_wrong_passphrase_file_is_tried_once, test_files_clear),
        cmocka_unit_test_teardown(an_erased_container_is_refused_before_a_question,
                                  test_files_clear),
        cmocka_unit_test_teardown(an_empty_slot_is_named_before_a_question, test_files_clear),
        cmocka_unit_test(a_slot_of_an_unknown_kind_is_not_called_empty),
        cmocka_unit_test_teardown(a_file_becomes_a_container_or_nothing, test_files_clear),
        cmocka_unit_test(closing_twice_and_nothing_is_fine),
    };

    return cmocka_run_group_tests(tests, start, test_files_remove);
}
