/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* One sub-command is one file with one struct command, named in the table of main.c. */

#include "base/report.h"

#include <getopt.h>
#include <sys/types.h>

struct command {
    const char *name;    /* "create"; a family ("key add") parses its own second word */
    const char *summary; /* one line for "hushvol --help" */
    const char *usage;   /* the whole text of "hushvol NAME --help", ends in a newline */
    /* argv[0] is the sub-command's name. Returns 0 or -errno; it has said why through a report.
     * -EINVAL after cmd_usage() for words that are wrong. */
    int (*run)(int argc, char **argv);
};

extern const struct command cmd_create, cmd_mount, cmd_umount, cmd_attach, cmd_detach, cmd_list,
    cmd_status, cmd_stat, cmd_key, cmd_header, cmd_erase, cmd_convert, cmd_reencrypt, cmd_benchmark,
    cmd_doctor;
extern const struct command cmd_suspend, cmd_resume, cmd_resize, cmd_config;

/* The whole program under the name mount.hushvol. */
int cmd_mount_helper(int argc, char **argv);

/* Options that every sub-command has; put CMD_COMMON_OPTIONS first in the long option table. */
enum { CMD_OPT_HELP = 256, CMD_OPT_VERBOSE, CMD_OPT_OWN };
/* clang-format off */
#define CMD_COMMON_OPTIONS                                                                         \
    {"help", no_argument, NULL, CMD_OPT_HELP}, {"verbose", no_argument, NULL, 'v'}
/* clang-format on */

/* Print c's usage to stdout (--help); returns 0. */
int cmd_help(const struct command *c);
/* One line to stderr about wrong words, and where to read more. Returns -EINVAL. */
int cmd_usage(const struct command *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same when getopt_long() answered '?' or ':' (opterr is 0, the option string begins with ":").
 */
int cmd_option_error(const struct command *c, int opt, char **argv);

/* Say who holds the lock of a container, or of the file of its header (NULL: it has none): the
 * mount in a runtime folder, or process holder when the kernel knew it (not 0). Returns -EBUSY. */
int cmd_busy(const char *container, const char *header, pid_t holder, struct report *rep);

/* text for a person to read, on stdout: as report_escape() makes it, in memory of the block around.
 * What programs are to read (a path that "mount" prints) stays as it is. */
#define CMD_SHOWN_MAX 1024
#define CMD_SHOWN(text) cmd_shown((char[CMD_SHOWN_MAX]){0}, text)
static inline const char *cmd_shown(char out[CMD_SHOWN_MAX], const char *text)
{
    report_escape(out, CMD_SHOWN_MAX, text);
    return out;
}

/* The exit status (README, "Exit status") for the 0 or -errno that a command returned. */
int exit_status(int r);
/* Another process did the command and ended with this status. Returns what the command then has to
 * return, below 0, so that exit_status() makes the same status of it. */
int exit_elsewhere(int status);
