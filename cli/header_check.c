/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header check. Takes no lock and writes nothing. A mounted container may be changing its
 * header just now: what seems wrong is looked at again before anybody hears of it. */

#include "cli/reach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define LOOKS 5
#define LOOK_AGAIN_MS 20

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header check CONTAINER [OPTION...]\n"
    "\n"
    "Looks at both copies of the header, at every field and key slot, and at the size of the\n"
    "container, and says what is wrong. Needs no key, writes nothing, and the container may be\n"
    "mounted. With a key it also checks that nobody changed the header who does not have one.\n"
    "\n"
    "  --unlock                 ask for a passphrase, and check the authentication too\n"
    CMD_CREDENTIAL_USAGE
    "                           (each of them does what --unlock does)\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol header check photos.hv\n"
    "  hushvol header check photos.hv --unlock\n"
    "\n"
    "Exit status: 0 all is well, 1 failed, 2 wrong words, 3 no slot opens (the container was erased),\n"
    "4 something is wrong, 6 something that this version does not know, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"unlock", no_argument, NULL, HEADER_OPT_UNLOCK},
    CMD_CREDENTIAL_OPTIONS,
    CMD_HEADER_OPTION,
    {0},
};

static int check_fields(const struct header_words *w, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    int r = cmd_reach_look_files(&c, w->container, w->header, rep);

    if (r == 0)
        r = key_recognise(&c.format, key_container_header(&c), rep);
    if (r < 0)
        return r;
    if (c.format->check == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "a check of the header is not possible in the %s format",
                            c.format->name);
    for (unsigned n = 1; n < LOOKS; n++) {
        if (c.format->check(key_container_header(&c), c.blk, NULL) == 0)
            return 0;
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return c.format->check(key_container_header(&c), c.blk, rep);
}

/* The MAC, with what the key gives. Returns the slot. */
static int check_mac(const struct header_words *w, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    int r = cmd_reach_look(&c, w->container, w->header, rep);

    if (r < 0)
        return r;
    secret_lock_memory(NULL);
    r = key_unlock_with(&c, &w->key, KEY_SLOT_ANY, &volume, rep);
    return r < 0 ? r : (int)volume.slot;
}

static int header_check(int argc, char **argv)
{
    struct header_words w;
    struct report rep;
    int r = header_take_words(&w, &cmd_header_check, options, NULL, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_header_check);
    report_stderr_init(&rep, "header check", w.container);
    rep.silent_infos = !w.verbose;
    r = check_fields(&w, &rep);
    if (r == 0 && w.unlock)
        r = check_mac(&w, &rep);
    if (r < 0)
        return r;
    printf("the header of %s is fine", CMD_SHOWN(w.container));
    if (w.unlock)
        printf(", and its authentication fits (key slot %d opened)", r);
    printf("\n");
    return 0;
}

const struct command cmd_header_check = {
    .name = "header check",
    .summary = "is everything in the header as it should be?",
    .usage = usage,
    .run = header_check,
};
