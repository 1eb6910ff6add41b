/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/doctor_findings.c: what is found is bounded, said once and safe on a terminal; and
 * what is no small file of text is not read. */

#include "cli/doctor.h"
#include "lib/files.h"
#include "lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static struct doctor d;

static void a_finding_is_said_once(void **state)
{
    (void)state;
    d.n = 0;
    doctor_found(&d, DOCTOR_WARN, "a", "mend it", "%s", "it is broken");
    doctor_found(&d, DOCTOR_WARN, "a", "mend it", "it is broken");
    doctor_found(&d, DOCTOR_WARN, "b", NULL, "it is broken");
    assert_int_equal(d.n, 2);
    assert_string_equal(d.findings[0].fix, "mend it");
}

static void names_reach_no_terminal_as_they_are(void **state)
{
    (void)state;
    d.n = 0;
    doctor_found(&d, DOCTOR_OK, "a", NULL, "\x1b[31m%s", "\n");
    assert_string_equal(d.findings[0].text, "\\x1b[31m\\x0a");
}

static void there_is_an_end_and_it_is_said(void **state)
{
    (void)state;
    d.n = 0;
    for (unsigned i = 0; i < 2 * DOCTOR_FINDINGS; i++)
        doctor_found(&d, DOCTOR_WARN, "a", "mend it", "fault %u", i);
    assert_int_equal(d.n, DOCTOR_FINDINGS);
    assert_string_equal(d.findings[DOCTOR_FINDINGS - 2].text, "fault 94");
    assert_string_equal(d.findings[DOCTOR_FINDINGS - 1].check, "more");
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void fields_and_texts(void **state)
{
    const char *path = test_path(test_disk, "f"), *fifo = test_path(test_disk, "fifo");
    char out[16], *text;

    (void)state;
    put(path, "other 1\nmount_max = 7\nmount_max = 8\n");
    assert_true(doctor_field(path, "mount_max", out, sizeof(out)));
    assert_string_equal(out, "= 7");
    assert_false(doctor_field(path, "absent", out, sizeof(out)));
    text = doctor_text(path);
    assert_string_equal(text, "other 1\nmount_max = 7\nmount_max = 8\n");
    free(text);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    assert_null(doctor_text(fifo));
    assert_null(doctor_text(test_disk));
    assert_null(doctor_text(test_path(test_disk, "absent")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finding_is_said_once),
        cmocka_unit_test(names_reach_no_terminal_as_they_are),
        cmocka_unit_test(there_is_an_end_and_it_is_said),
        cmocka_unit_test_teardown(fields_and_texts, test_files_clear),
    };

    return cmocka_run_group_tests(tests, test_files_make, test_files_remove);
}
