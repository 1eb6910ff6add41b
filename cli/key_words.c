/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* One reader of options for all members: what one of them does not know is not in its table, and
 * getopt_long() refuses it. */

#include "cli/named.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

int key_take_slot(const struct command *c, int *ret, const char *arg)
{
    char *end;
    unsigned long v = strtoul(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || v >= KEY_SLOTS_MAX)
        return cmd_usage(c, "--slot takes the number of a slot, not \"%s\"", arg);
    *ret = (int)v;
    return 0;
}

/* Options that several families of commands have. */
static int take_shared(struct key_words *w, const struct command *c, int opt, char **argv)
{
    int r = cmd_credential_option(c, opt, optarg, &w->key, &w->new_key);

    if (r == 0)
        r = cmd_kdf_option(c, opt, optarg, &w->kdf);
    if (r == 0)
        r = cmd_header_option(c, opt, optarg, &w->header);
    if (r == 0)
        return cmd_option_error(c, opt, argv);
    return r < 0 ? r : 0;
}

static int take_option(struct key_words *w, const struct command *c, int opt, char **argv)
{
    if (cmd_which_option(&w->which, opt, optarg) > 0)
        return 0;
    switch (opt) {
    case CMD_OPT_HELP:
        w->help = true;
        return 0;
    case 'v':
        w->verbose = true;
        return 0;
    case KEY_OPT_FORCE:
        w->force = true;
        return 0;
    case KEY_OPT_JSON:
        w->json = true;
        return 0;
    case KEY_OPT_LABEL:
        w->label = optarg;
        return 0;
    case KEY_OPT_RECOVERY:
        w->recovery = true;
        return 0;
    case KEY_OPT_SLOT:
        return key_take_slot(c, &w->slot, optarg);
    default:
        return take_shared(w, c, opt, argv);
    }
}

/* The key of a configured volume opens it to add another; what is tested, replaced or destroyed is
 * named by the words alone. */
static int find_named(struct key_words *w, const struct command *c)
{
    struct report rep;

    report_stderr_init(&rep, c->name, w->container);
    return cmd_named_container(&w->container, &w->header, c == &cmd_key_add ? &w->key : NULL, &rep);
}

static void set_prompts(struct key_words *w, const char *about)
{
    snprintf(w->prompt, sizeof(w->prompt), "Passphrase for %s", about);
    snprintf(w->new_prompt, sizeof(w->new_prompt), "New passphrase for %s", about);
    w->key.prompt = w->prompt;
    w->new_key.prompt = w->new_prompt;
    w->new_key.confirm = true;
    w->new_key.prefix = "new-";
}

/* What is said of one container can hardly be meant for all. */
static int take_which(struct key_words *w, const struct command *c, int n_others)
{
    int r = cmd_which_check(c, &w->which, n_others);

    if (r < 0)
        return r;
    if (w->header != NULL || w->label != NULL || w->slot != KEY_SLOT_ANY || w->key.n_keyfiles > 0 ||
        w->new_key.n_keyfiles > 0)
        return cmd_usage(c, "--login takes passphrases, the old and the new one, and nothing that "
                            "is for one volume");
    set_prompts(w, "the volumes for logins");
    return 0;
}

static int take_container(struct key_words *w, const struct command *c, int argc, char **argv)
{
    if (optind == argc)
        return cmd_usage(c, "which container?");
    if (optind + 1 < argc)
        return cmd_usage(c, "only one container at a time, not also \"%s\"", argv[optind + 1]);
    w->word = w->container = argv[optind];
    set_prompts(w, w->word);
    return find_named(w, c);
}

int key_take_words(struct key_words *ret, const struct command *c, const struct option *options,
                   int argc, char **argv)
{
    int opt, r;

    *ret = (struct key_words){.slot = KEY_SLOT_ANY};
    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(ret, c, opt, argv);
        if (r < 0 || ret->help)
            return r;
    }
    if (ret->which.login || ret->which.volumes != NULL)
        return take_which(ret, c, argc - optind);
    return take_container(ret, c, argc, argv);
}

bool key_is_given(const struct credential_source *s)
{
    return s->passphrase_file != NULL || s->passphrase_command != NULL || s->ask ||
           s->n_keyfiles > 0;
}
