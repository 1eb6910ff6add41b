/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* mount --all and --login. */

#include "base/auto.h"
#include "base/run.h"
#include "cli/command.h"
#include "cli/credential_options.h"
#include "cli/unit.h"
#include "fuse/registry.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATUS_BUSY 5

enum fate { OPEN, DONE, FAILED };

struct all {
    const struct cmd_mount_all *how;
    struct cmd_volumes volumes;
    enum fate *fate; /* of each volume, by its place */
    struct report *rep;
};

/* A volume's mount of ours, whatever it is called. */
static bool find(struct serve_found *ret, const struct cmd_volume *v)
{
    char path[PATH_MAX];

    return realpath(v->said->container, path) != NULL && serve_registry_find(ret, path) == 0 &&
           ret->alive && ret->folder.owner == geteuid();
}

static bool is_ready(const struct cmd_volume *v)
{
    AUTO_FOUND struct serve_found f = {0};

    return find(&f, v) && !f.record.suspended;
}

static int run(const struct cmd_argv *a, const struct secret *passphrase, struct report *rep)
{
    if (passphrase != NULL)
        return run_feed_in(CMD_ALL_FOLDER, a->words, passphrase, RUN_SHOW, rep);
    return run_wait_in(CMD_ALL_FOLDER, a->words, RUN_SHOW, rep);
}

/* With a passphrase in the words these have to name the whole key. Who has to be asked is asked by
 * a command of ours, which has a terminal. */
static int start(const struct cmd_volume *v, const struct secret *passphrase, bool verbose,
                 struct report *rep)
{
    const int r =
        v->needs_passphrase && passphrase == NULL ? 0 : cmd_unit_start(v->said, passphrase, rep);
    struct cmd_argv a = {.words = {RUN_SELF, "mount", v->said->name}, .n = 3};

    if (r != 0)
        return r < 0 ? r : 0;
    if (!verbose)
        cmd_argv_add(&a, "--quiet");
    if (passphrase != NULL) {
        cmd_argv_add_option(&a, "--passphrase-file", "-");
        cmd_argv_add_keyfiles(&a, "--keyfile", v);
    }
    return run(&a, passphrase, rep);
}

static void add_sources(struct cmd_argv *a, const struct cmd_volume *v)
{
    const struct credential_source *s = &v->conf.vol.credential;

    if (s->ask)
        cmd_argv_add(a, "--ask-passphrase");
    if (s->passphrase_file != NULL)
        cmd_argv_add_option(a, "--passphrase-file", s->passphrase_file);
    if (s->passphrase_command != NULL)
        cmd_argv_add_option(a, "--passphrase-command", s->passphrase_command);
}

/* It may have another name than the volume, so the words name the key. */
static int resume(const char *name, const struct cmd_volume *v, const struct secret *passphrase,
                  bool verbose, struct report *rep)
{
    struct cmd_argv a = {.words = {RUN_SELF, "resume", name}, .n = 3};

    if (!verbose)
        cmd_argv_add(&a, "--quiet");
    if (passphrase != NULL) {
        cmd_argv_add_option(&a, "--passphrase-file", "-");
    } else {
        add_sources(&a, v);
    }
    cmd_argv_add_keyfiles(&a, "--keyfile", v);
    return run(&a, passphrase, rep);
}

/* Start one volume, or resume it; in our turn, unless somebody is to be asked, who can take for
 * ever. One who was faster, by a command of his own, has done what we want. */
static enum fate mount_one(const struct all *all, const struct cmd_volume *v)
{
    const struct secret *passphrase = v->needs_passphrase ? all->how->passphrase : NULL;
    const bool asks = v->needs_passphrase && passphrase == NULL, verbose = all->how->verbose;
    AUTO_FD int turn = asks ? -1 : cmd_all_turn(all->rep);
    AUTO_FOUND struct serve_found f = {0};
    int r;

    if (turn < 0 && !asks)
        return FAILED;
    if (find(&f, v)) {
        if (!f.record.suspended)
            return DONE;
        r = resume(f.record.name, v, passphrase, verbose, all->rep);
    } else {
        r = start(v, passphrase, verbose, all->rep);
    }
    return r == 0 || (r == STATUS_BUSY && is_ready(v)) ? DONE : FAILED;
}

static enum fate print_one(const struct cmd_volume *v)
{
    if (!is_ready(v))
        printf("%s\t%s\n", v->said->name, v->needs_passphrase ? "passphrase" : "key");
    return DONE;
}

/* The chain of after has no circle (conf_settle). What it leads to is mounted too, even when that
 * alone would not be; but another's is his to mount. */
static enum fate mount_in_order(struct all *all, unsigned i)
{
    const struct cmd_volume *v = &all->volumes.list[i];
    const struct cmd_volume *before = cmd_volumes_before(&all->volumes, v);

    if (all->fate[i] != OPEN)
        return all->fate[i];
    if (before != NULL && before->ours &&
        mount_in_order(all, (unsigned)(before - all->volumes.list)) == FAILED) {
        report_error(all->rep, EIO, "%s was left out: it comes after %s, which failed",
                     v->said->name, v->said->after);
        all->fate[i] = FAILED;
    } else {
        all->fate[i] = all->how->dry_run ? print_one(v) : mount_one(all, v);
    }
    return all->fate[i];
}

int cmd_mount_all(const struct cmd_mount_all *how, struct report *rep)
{
    AUTO_VOLUMES struct cmd_volumes volumes = {0};
    AUTO_FREE enum fate *fate = NULL;
    struct all all = {.how = how, .rep = rep};
    int r = cmd_volumes_choose(&volumes, &how->which, rep);

    if (r < 0)
        return r;
    fate = calloc(volumes.n + 1, sizeof(*fate));
    if (fate == NULL)
        return report_errno(rep, ENOMEM, "cannot mount all volumes");
    all.volumes = volumes;
    all.fate = fate;
    for (unsigned i = 0; i < volumes.n; i++)
        if (volumes.list[i].chosen && mount_in_order(&all, i) == FAILED)
            r = -EIO;
    return r;
}

enum { OPT_DRY_RUN = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_WHICH_OPTIONS,
    {"passphrase-file", required_argument, NULL, CMD_OPT_PASSPHRASE_FILE},
    {"dry-run", no_argument, NULL, OPT_DRY_RUN},
    {"quiet", no_argument, NULL, 'q'},
    {0},
};

struct request {
    struct cmd_mount_all how;
    struct credential_source key;
    bool help;
};

static int take_option(struct request *q, int opt, char **argv)
{
    int r;

    if (cmd_which_option(&q->how.which, opt, optarg) > 0)
        return 0;
    if (opt == CMD_OPT_HELP)
        q->help = true;
    else if (opt == 'v')
        q->how.verbose = true;
    else if (opt == OPT_DRY_RUN)
        q->how.dry_run = true;
    else if (opt == 'q')
        q->how.verbose = false;
    else if (opt == CMD_OPT_PASSPHRASE_FILE) {
        r = cmd_credential_option(&cmd_mount, opt, optarg, &q->key, NULL);
        return r < 0 ? r : 0;
    } else
        return cmd_option_error(&cmd_mount, opt, argv);
    return 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r = 0;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":qv", options, NULL)) != -1)
        r = take_option(q, opt, argv);
    if (r < 0 || q->help)
        return r;
    if (!q->how.which.all && !q->how.which.login)
        return cmd_usage(&cmd_mount, "--volumes and --dry-run are for --all and --login");
    return cmd_which_check(&cmd_mount, &q->how.which, argc - optind);
}

static int read_passphrase(struct credential *ret, const struct credential_source *key,
                           struct report *rep)
{
    int r = credential_read(ret, key, rep);

    return r < 0 ? r : cmd_all_check_line(&ret->passphrase, rep);
}

int cmd_run_mount_all(int argc, char **argv)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    struct request q = {0};
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_mount);
    report_stderr_init(&rep, q.how.which.login ? "mount --login" : "mount --all", NULL);
    if (q.key.passphrase_file != NULL && !q.how.dry_run) {
        r = read_passphrase(&cred, &q.key, &rep);
        q.how.passphrase = &cred.passphrase;
    }
    return r < 0 ? r : cmd_mount_all(&q.how, &rep);
}
