/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What mount, attach and mount.hushvol share: the words that say what is mounted and how. */

#include "cli/command.h"
#include "cli/credential_options.h"
#include "conf/config.h"
#include "fuse/daemon.h"

#include <limits.h>
#include <stdbool.h>

enum { CMD_OPT_SLOT = CMD_OPT_OWN + 100, CMD_OPT_ONETIME };

/* clang-format off */
#define CMD_MOUNT_OPTIONS                                                                          \
    {"options", required_argument, NULL, 'o'}, {"slot", required_argument, NULL, CMD_OPT_SLOT},    \
    {"onetime", optional_argument, NULL, CMD_OPT_ONETIME}, CMD_HEADER_OPTION,                      \
    CMD_CREDENTIAL_OPTIONS
/* clang-format on */
#define CMD_MOUNT_USAGE                                                                            \
    "  -o WORD[=VALUE],...      ro, allow_root, allow_other, uid=, gid=, mode=, name=, cache,\n"   \
    "                           threads=N, readahead=SIZE|off, direct=auto|on|off, discard,\n"     \
    "                           nodiscard, enospc=wait|error, keyfile=, keyfile-timeout=,\n"       \
    "                           passphrase-file=, passphrase-command=, ask-passphrase, header=,\n" \
    "                           slot=, big-endian\n" CMD_HEADER_USAGE                              \
    "  --slot N                 try this key slot only\n"                                          \
    "  --onetime[=force]        a disk under a random key that nobody has, gone at umount: for\n"  \
    "                           scratch and swap; over zeros only, or over anything by "           \
    "force\n" CMD_CREDENTIAL_USAGE

struct cmd_mount_words {
    struct conf_mount conf;
    const char *container;           /* as the user wrote it */
    const char *folder;              /* DIR, or NULL */
    const struct conf_volume *named; /* container is the name of this one; NULL: it is a path */
    bool foreground, help, verbose, quiet;
    char path[PATH_MAX];   /* the container's, absolute */
    char header[PATH_MAX]; /* of a header in a file of its own, absolute */
};
void cmd_mount_words_init(struct cmd_mount_words *w);
void cmd_mount_words_done(struct cmd_mount_words *w);
#define AUTO_MOUNT_WORDS __attribute__((cleanup(cmd_mount_words_done)))

/* Take one option of CMD_MOUNT_OPTIONS or CMD_COMMON_OPTIONS; others are -EINVAL, said. */
int cmd_mount_option(const struct command *c, struct cmd_mount_words *w, int opt, char **argv);

/* After the words were taken: is container the NAME of a configured volume? Then conf begins anew
 * with what the volume says, without its key and header where the words have others. 1: take the
 * words once more, over that; 0: it is a path; else as cmd_named(). */
int cmd_mount_named(struct cmd_mount_words *w, struct report *rep);

/* When it is a volume that root mounts for its owner, go on as he. After all words are taken,
 * before anything is opened: as cmd_owner_become(). */
int cmd_mount_as_owner(const struct cmd_mount_words *w, struct report *rep);

/* Find the container, clean up after a dead mount of it, then serve_daemon(). */
int cmd_mount_serve(struct cmd_mount_words *w, serve_daemon_ready *ready, void *arg,
                    bool *in_daemon, struct report *rep);
