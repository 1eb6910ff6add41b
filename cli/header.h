/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What the members of "hushvol header" share. */

#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "keystore/format.h"

/* name is "header backup" */
extern const struct command cmd_header_backup, cmd_header_check, cmd_header_dump, cmd_header_flags,
    cmd_header_restore;

enum { HEADER_OPT_FORCE = CMD_OPT_OWN, HEADER_OPT_JSON, HEADER_OPT_UNLOCK, HEADER_OPT_RESIZE_FROM };

/* Everything that a member may be told; its own option table says what it is. Words are borrowed
 * from argv. */
struct header_words {
    const char *container, *header;
    const char *file;     /* the second word, of those that take one */
    uint64_t resize_from; /* bytes; not 0: takes the place of the second word; and so does */
    bool resize_find;     /* the same, and it is to be found */
    struct credential_source key;
    bool force, json, unlock, yes, help, verbose;
    char prompt[REPORT_LINE]; /* of key, which points here */
};

/* Take a member's words by its option table; file is what it calls its second word, or NULL.
 * -EINVAL, said. When help is set the rest is not. */
int header_take_words(struct header_words *ret, const struct command *c,
                      const struct option *options, const char *file, int argc, char **argv);

/* Move the header of w->container from where it ended when it had w->resize_from bytes to its end.
 * resize_find: from where it is found, if the user agrees. -EBADMSG there is none, -EINVAL, -EEXIST
 * it has one at its end; all said. */
int header_move(const struct header_words *w, struct report *rep);
