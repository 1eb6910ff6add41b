/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol's command line: a table of sub-commands, one file each. */

#include "base/run.h"
#include "base/secret.h"
#include "cli/command.h"
#include "keystore/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const struct command *const commands[] = {
    &cmd_create,
    &cmd_mount,
    &cmd_umount,
    &cmd_attach,
    &cmd_detach,
    &cmd_list,
    &cmd_status,
    &cmd_stat,
    &cmd_suspend,
    &cmd_resume,
    &cmd_key,
    &cmd_header,
    &cmd_erase,
    &cmd_reencrypt,
    &cmd_convert,
    &cmd_resize,
    &cmd_config,
    &cmd_benchmark,
    &cmd_doctor,
    NULL,
};
/* clang-format on */

static void print_help(void)
{
    printf("Usage: hushvol COMMAND [OPTION...] [ARGUMENT...]\n\n"
           "Keeps a whole disk in one encrypted container and shows it decrypted as one file.\n\n");
    for (const struct command *const *c = commands; *c != NULL; c++)
        printf("  %-10s %s\n", (*c)->name, (*c)->summary);
    printf("\n\"hushvol COMMAND --help\" explains a command.\n");
}

static const struct command *find_command(const char *name)
{
    for (const struct command *const *c = commands; *c != NULL; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static bool is_one_of(const char *word, const char *a, const char *b)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* Called by mount(8), under the name that it looks for? */
static bool is_mount_helper(const char *program)
{
    const char *slash = strrchr(program, '/');

    return strcmp(slash != NULL ? slash + 1 : program, "mount.hushvol") == 0;
}

static int run(int argc, char **argv, struct report *rep)
{
    const struct command *c;
    bool help;

    if (argc > 0 && is_mount_helper(argv[0]))
        return cmd_mount_helper(argc, argv);
    if (argc < 2) {
        print_help();
        return -EINVAL;
    }
    if (is_one_of(argv[1], "--version", "version")) {
        printf("hushvol %s\n", HUSHVOL_VERSION);
        return 0;
    }
    help = is_one_of(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0;
    if (help && argc < 3) {
        print_help();
        return 0;
    }
    c = find_command(argv[help ? 2 : 1]);
    if (c == NULL)
        return report_error(rep, EINVAL, "no command \"%s\" (see \"hushvol --help\")",
                            argv[help ? 2 : 1]);
    return help ? cmd_help(c) : c->run(argc - 1, argv + 1);
}

static void wake_up(int sig)
{
    (void)sig;
}

/* A reader that went away and a limit on the size of files shall be a failed write with an exit
 * status: EPIPE, EFBIG. A handler, and not SIG_IGN, because that would be inherited by every helper
 * that is started. */
static void let_writes_fail(void)
{
    const struct sigaction action = {.sa_handler = wake_up, .sa_flags = SA_RESTART};

    sigaction(SIGPIPE, &action, NULL);
    sigaction(SIGXFSZ, &action, NULL);
}

/* Whoever started us may ignore the ends of its children, and that is inherited: then nobody could
 * hear how a helper ended. */
static void hear_of_children(void)
{
    signal(SIGCHLD, SIG_DFL);
}

/* Half a list in a file must not look like success. */
static int finish_output(int r, struct report *rep)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return r;
    report_errno(rep, errno, "cannot write to standard output");
    return r == 0 ? -EIO : r;
}

/* Ctrl-C at a prompt was taken until everything was in order again: a shell that runs a loop of
 * commands has to see that it came. */
static void end_by_signal(int sig)
{
    signal(sig, SIG_DFL);
    raise(sig);
}

int main(int argc, char **argv)
{
    struct report rep;
    int r;

    let_writes_fail();
    hear_of_children();
    report_stderr_init(&rep, NULL, NULL);
    r = run_open_stdio(&rep);
    if (r == 0)
        r = secret_start(&rep);
    if (r == 0)
        r = run(argc, argv, &rep);
    r = finish_output(r, &rep);
    if (r == -EINTR && key_interrupt() != 0)
        end_by_signal(key_interrupt());
    return exit_status(r);
}
