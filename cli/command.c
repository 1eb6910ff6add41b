/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/command.h"

/* What every sub-command says in the same words. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cmd_help(const struct command *c)
{
    fputs(c->usage, stdout);
    return 0;
}

int cmd_usage(const struct command *c, const char *fmt, ...)
{
    char text[REPORT_LINE];
    struct report rep;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    report_stderr_init(&rep, NULL, NULL);
    return report_error(&rep, EINVAL, "%s: %s (see \"hushvol %s --help\")", c->name, text, c->name);
}

/* The offending word is the last that getopt looked at; a short option may hide within one. */
int cmd_option_error(const struct command *c, int opt, char **argv)
{
    const char *word = argv[optind - 1];

    if (opt == ':')
        return cmd_usage(c, "option %s needs a value", word);
    if (optopt > 0 && optopt < 256 && strncmp(word, "--", 2) != 0)
        return cmd_usage(c, "no option -%c", optopt);
    if (optopt > 0)
        return cmd_usage(c, "option %s takes no value", word);
    return cmd_usage(c, "no option %s, or not enough of its name", word);
}
