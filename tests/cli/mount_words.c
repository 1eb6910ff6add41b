/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves cli/mount_words.h: --help lists every word of the table. */

#include "cli/mount_words.h"
#include "lib/test.h"

#include <string.h>

/* Is the word in the list behind -o, by itself? Options have their own lines behind it. */
static bool is_listed(const char *word)
{
    static const char usage[] = CMD_MOUNT_USAGE;
    const char *end = strstr(usage, "  --header");
    size_t len = strlen(word);

    for (const char *at = usage; (at = strstr(at, word)) != NULL && at < end; at++)
        if (at[-1] == ' ' && strchr(",=\n", at[len]) != NULL)
            return true;
    return false;
}

static void help_names_every_word_of_the_table(void **state)
{
    const struct conf_word_help *w;

    (void)state;
    for (unsigned i = 0; (w = conf_options_help(i)) != NULL; i++)
        if (!is_listed(w->name))
            fail_msg("--help says nothing of -o %s", w->name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_names_every_word_of_the_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
