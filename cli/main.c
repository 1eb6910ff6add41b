/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol's command line: a table of sub-commands, one file each. */

#include "base/secret.h"
#include "cli/command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    NULL,
};

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

static void print_help(void)
{
    printf("Usage: hushvol COMMAND [OPTION...] [ARGUMENT...]\n\n"
           "Keeps a whole disk in one encrypted container and shows it decrypted as one file.\n\n");
    for (const struct command *const *c = commands; *c != NULL; c++)
        printf("  %-10s %s\n", (*c)->name, (*c)->summary);
    printf("\n\"hushvol COMMAND --help\" explains a command.\n");
}

int main(int argc, char **argv)
{
    struct report rep;
    int r;

    report_stderr_init(&rep, NULL, NULL);
    r = secret_start(&rep);
    if (r < 0)
        return exit_status(r);
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help();
        return argc < 2 ? exit_status(-EINVAL) : 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("hushvol %s\n", HUSHVOL_VERSION);
        return 0;
    }
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (strcmp((*c)->name, argv[1]) == 0)
            return exit_status((*c)->run(argc - 1, argv + 1));
    return exit_status(
        report_error(&rep, EINVAL, "no command \"%s\" (see \"hushvol --help\")", argv[1]));
}
