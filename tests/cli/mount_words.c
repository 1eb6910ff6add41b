/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/mount_words.h: --help and the table of words know the same words. */

#include "cli/mount_words.h"
#include "lib/test.h"

#include <string.h>

static void help_names_every_word_of_the_table(void **state)
{
    const struct conf_word_help *w;

    (void)state;
    for (unsigned i = 0; (w = conf_options_help(i)) != NULL; i++)
        if (strstr(CMD_MOUNT_USAGE, w->name) == NULL)
            fail_msg("--help says nothing of -o %s", w->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_names_every_word_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
