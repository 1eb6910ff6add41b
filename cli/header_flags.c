/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header flags: what geli(8) calls configure. Needs no key: whoever may write the header
 * can change them anyway. */

#include "cli/reach.h"

#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header flags CONTAINER WORD,... [--header FILE]\n"
    "\n"
    "Sets and clears flags in the header of a GELI container, also while it is mounted; \"hushvol\n"
    "header dump\" shows them. They mean something to FreeBSD:\n"
    "\n"
    "  boot         its kernel asks for the passphrase before it mounts the root file system\n"
    "  geliboot     its boot loader may unlock it\n"
    "  displaypass  a passphrase typed at boot is shown as asterisks\n"
    "  nodelete     the file system's discards are not passed on\n"
    "  autoresize   the container follows when its device grows\n"
    "\n"
    "no- before a word clears the flag.\n"
    "\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol header flags bsd.img boot,no-autoresize\n"
    "\n"
    "Exit status: 0 changed, 1 failed, 2 wrong words, 4 not a container or damaged, 5 mounted\n"
    "read-only or in use, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_HEADER_OPTION,
    {0},
};

static int set_flags(const struct header_words *w, struct report *rep)
{
    AUTO_REACH struct cmd_reach at = {0};
    int r = cmd_reach_open(&at, w->container, w->header, rep);

    return r < 0 ? r : cmd_reach_flags(&at, w->file, rep);
}

static int header_flags(int argc, char **argv)
{
    struct header_words w;
    struct report rep;
    int r = header_take_words(&w, &cmd_header_flags, options, "of flags", argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_header_flags);
    report_stderr_init(&rep, "header flags", w.container);
    rep.silent_infos = !w.verbose;
    r = set_flags(&w, &rep);
    if (r == 0)
        printf("changed the flags of %s\n", CMD_SHOWN(w.container));
    return r;
}

const struct command cmd_header_flags = {
    .name = "header flags",
    .summary = "set and clear flags of a GELI container",
    .usage = usage,
    .run = header_flags,
};
