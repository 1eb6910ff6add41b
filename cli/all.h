/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Every volume at once: what "--all" and "--login" of mount, umount, key change and suspend do. */

#include "base/report.h"
#include "base/secret.h"
#include "conf/config.h"
#include "conf/options.h"

#include <getopt.h>
#include <stdbool.h>

/* Which of the caller's volumes: all, or those with login = yes; of these the ones named. */
struct cmd_which {
    bool all, login;     /* as the words say */
    const char *volumes; /* of --volumes or --any-of, "a,b"; NULL: no limit */
    bool any_of;         /* who are not there are passed over */
};

enum { CMD_OPT_ALL = 600, CMD_OPT_LOGIN, CMD_OPT_VOLUMES, CMD_OPT_ANY_OF };
/* Rows for a long option table. */
/* clang-format off */
#define CMD_WHICH_OPTIONS                                                                          \
    {"all", no_argument, NULL, CMD_OPT_ALL}, {"login", no_argument, NULL, CMD_OPT_LOGIN},          \
    {"volumes", required_argument, NULL, CMD_OPT_VOLUMES},                                         \
    {"any-of", required_argument, NULL, CMD_OPT_ANY_OF}
/* clang-format on */

struct command;
/* Take opt if it is one of these. 1 it was, 0 it was not. */
int cmd_which_option(struct cmd_which *w, int opt, const char *arg);
/* After the last option: does one word too many or too few, or two that contradict each other, say
 * it? n_others is how many words there are that are no options. -EINVAL, said. */
int cmd_which_check(const struct command *c, const struct cmd_which *w, int n_others);
/* Is the name among names, as --volumes has them? */
bool cmd_which_names(const char *names, const char *name);

struct cmd_volume {
    const struct conf_volume *said;
    struct conf_mount conf; /* what that comes to */
    bool ours, chosen;
    bool needs_passphrase; /* which the configuration does not tell where to find */
};

/* The volumes of the configuration files, in their order. */
struct cmd_volumes {
    struct conf *conf;
    struct cmd_volume *list;
    unsigned n;
};

/* Read them and choose. -ENOENT a name that is none of ours, -EINVAL one that is not for logins
 * although that is asked for; else as conf_read(); all said. */
int cmd_volumes_choose(struct cmd_volumes *ret, const struct cmd_which *w, struct report *rep);
/* Fine on a zeroed struct. */
void cmd_volumes_done(struct cmd_volumes *v);
#define AUTO_VOLUMES __attribute__((cleanup(cmd_volumes_done)))
/* The one that v comes after; NULL: none. */
struct cmd_volume *cmd_volumes_before(const struct cmd_volumes *all, const struct cmd_volume *v);

/* Only one command of a user at a time starts or ends volumes, so that two logins at once do not
 * meet in the middle: wait for our turn. It ends when the descriptor is closed. -errno, said. */
int cmd_all_turn(struct report *rep);

/* A command of ours that is started for a volume runs here, where no file has the name of one. */
#define CMD_ALL_FOLDER "/"
/* It gets a passphrase as a line. -EINVAL it has several, said. */
int cmd_all_check_line(const struct secret *passphrase, struct report *rep);

/* Words of one of our own commands that is started for a volume, and what it is to say. */
#define CMD_ARGV 48
struct cmd_argv {
    const char *words[CMD_ARGV + 1];
    unsigned n;
};
void cmd_argv_add(struct cmd_argv *a, const char *word);
void cmd_argv_add_option(struct cmd_argv *a, const char *option, const char *value);
/* The volume's key files, by this option ("--keyfile"). */
void cmd_argv_add_keyfiles(struct cmd_argv *a, const char *option, const struct cmd_volume *v);

/* cmd_mount_all(): how. */
struct cmd_mount_all {
    struct cmd_which which;
    const struct secret *passphrase; /* for those that need one; NULL: each asks */
    bool dry_run;                    /* print what would be mounted or resumed, and do nothing */
    bool verbose;
};
/* Mount the chosen volumes, each after the one that it names by after, which is mounted too. What
 * is mounted already is left as it is, or resumed when it is suspended. What fails is said and
 * stops only those after it. -EIO some failed; else as cmd_volumes_choose(). */
int cmd_mount_all(const struct cmd_mount_all *how, struct report *rep);

/* "hushvol mount" with --all or --login among its words. */
int cmd_run_mount_all(int argc, char **argv);

/* cmd_umount_all(): how. */
struct cmd_umount_all {
    struct cmd_which which;
    unsigned timeout_s; /* so long those that are busy are tried again */
    bool force;         /* and then they go, whoever uses them */
};
/* Take down the mounts of the chosen volumes, whatever they are called, those that keep others busy
 * first; with all and no names every mount of the caller, configured or not. What the chosen come
 * after goes along when nothing else does. 0 also when nothing is mounted, or what the last failed
 * with; else as cmd_volumes_choose(); all said. With login and a configuration that cannot be read
 * all go, or those mounted by one of the names, and then the fault is returned. */
int cmd_umount_all(const struct cmd_umount_all *how, struct report *rep);

struct key_words;
/* Change the key slot of each chosen volume that needs a passphrase: the slot that the old one
 * opens gets the new one. -EIO some failed, said, and the others are changed; else as
 * cmd_volumes_choose() and credential_read(). */
int cmd_key_change_all(const struct key_words *w, struct report *rep);

/* Suspend every mounted volume of the caller; for root, of everybody. Those that are suspended stay
 * so. 0, or what the last failed with; all said. */
int cmd_suspend_all(struct report *rep);
