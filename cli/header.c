/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* The family "hushvol header ...": which of it, and what its members share. */

#include "base/size.h"
#include "cli/named.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct command *const members[] = {
    &cmd_header_backup, &cmd_header_restore, &cmd_header_dump,
    &cmd_header_check,  &cmd_header_flags,   NULL,
};

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header backup CONTAINER FILE\n"
    "       hushvol header restore CONTAINER FILE [--yes] [--force]\n"
    "       hushvol header dump CONTAINER [--json]\n"
    "       hushvol header check CONTAINER [--unlock]\n"
    "       hushvol header flags CONTAINER WORD,...\n"
    "\n"
    "The header is the first megabyte of a container (of a GELI one, its last sector): what the disk\n"
    "is, and the key slots. Without it\n"
    "nothing opens the container, so keep a backup of it elsewhere, and make a new one when keys\n"
    "change. Who has a backup and a passphrase that opened the container when it was made can open\n"
    "the container, even if that passphrase was removed since.\n"
    "\n"
    "  backup   copy the header to a new file\n"
    "  restore  put such a copy in the place of the header\n"
    "  dump     every field, without what a passphrase could be guessed with\n"
    "  check    is everything in it as it should be?\n"
    "  flags    set and clear those of a GELI container\n"
    "\n"
    "\"hushvol header backup --help\" and so on explain each. A backup can also be used as it is:\n"
    "hushvol mount CONTAINER --header FILE.\n"
    "\n"
    "Example:\n"
    "  hushvol header backup photos.hv /media/stick/photos.header\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 3 no slot opens, 4 not a container or damaged,\n"
    "5 in use (restore only) or being re-encrypted, 6 not possible in this format, 7 no such file.\n";
/* clang-format on */

static int take_shared(struct header_words *w, const struct command *c, int opt, char **argv)
{
    int r = cmd_credential_option(c, opt, optarg, &w->key, NULL);

    if (r > 0)
        w->unlock = true; /* what else would a key be for? */
    if (r == 0)
        r = cmd_header_option(c, opt, optarg, &w->header);
    if (r == 0)
        return cmd_option_error(c, opt, argv);
    return r < 0 ? r : 0;
}

static int take_option(struct header_words *w, const struct command *c, int opt, char **argv)
{
    switch (opt) {
    case CMD_OPT_HELP:
        w->help = true;
        return 0;
    case 'v':
        w->verbose = true;
        return 0;
    case CMD_OPT_YES:
        w->yes = true;
        return 0;
    case HEADER_OPT_FORCE:
        w->force = true;
        return 0;
    case HEADER_OPT_JSON:
        w->json = true;
        return 0;
    case HEADER_OPT_RESIZE_FROM:
        w->resize_find = strcmp(optarg, "find") == 0;
        if (w->resize_find)
            return 0;
        if (size_parse(&w->resize_from, optarg) < 0 || w->resize_from == 0)
            return cmd_usage(
                c, "--resize-from takes the size that the container had, or \"find\", not \"%s\"",
                optarg);
        return 0;
    case HEADER_OPT_UNLOCK:
        w->unlock = true;
        return 0;
    default:
        return take_shared(w, c, opt, argv);
    }
}

static int find_named(struct header_words *w, const struct command *c)
{
    struct report rep;

    report_stderr_init(&rep, c->name, w->container);
    return cmd_named_container(&w->container, &w->header, &w->key, &rep);
}

static int take_arguments(struct header_words *w, const struct command *c, const char *file,
                          int argc, char **argv)
{
    bool moves = w->resize_from != 0 || w->resize_find;
    int n = argc - optind, wanted = file != NULL && !moves ? 2 : 1;

    if (n == 0)
        return cmd_usage(c, "which container?");
    if (n < wanted)
        return cmd_usage(c, "which file %s?", file);
    if (n > wanted)
        return cmd_usage(c, "only one container at a time, not also \"%s\"", argv[optind + wanted]);
    w->container = argv[optind];
    w->file = wanted == 2 ? argv[optind + 1] : NULL;
    snprintf(w->prompt, sizeof(w->prompt), "Passphrase for %s", w->container);
    w->key.prompt = w->prompt;
    return find_named(w, c);
}

int header_take_words(struct header_words *ret, const struct command *c,
                      const struct option *options, const char *file, int argc, char **argv)
{
    int opt, r;

    *ret = (struct header_words){0};
    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(ret, c, opt, argv);
        if (r < 0 || ret->help)
            return r;
    }
    return take_arguments(ret, c, file, argc, argv);
}

static int header(int argc, char **argv)
{
    if (argc < 2)
        return cmd_usage(&cmd_header, "backup, restore, dump, check or flags?");
    if (strcmp(argv[1], "--help") == 0)
        return cmd_help(&cmd_header);
    for (const struct command *const *c = members; *c != NULL; c++)
        if (strcmp(strchr((*c)->name, ' ') + 1, argv[1]) == 0)
            return (*c)->run(argc - 1, argv + 1);
    return cmd_usage(&cmd_header,
                     "no \"header %s\"; there are backup, restore, dump, check and flags", argv[1]);
}

const struct command cmd_header = {
    .name = "header",
    .summary = "the header: backup, restore, dump, check, flags",
    .usage = usage,
    .run = header,
};
