/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* What all of them share: which volumes are meant, and whose turn it is. What is done for a volume
 * is a command of its own, which gets the passphrase through its standard input: a mount ends in a
 * process that serves it, and must find nothing of the others in its memory. */

#include "base/auto.h"
#include "cli/command.h"
#include "cli/named.h"
#include "conf/files.h"
#include "fuse/folder.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>

/* Beside the records of the mounts, where no volume's name begins with a dot. */
#define TURN_FILE ".turn"

int cmd_which_option(struct cmd_which *w, int opt, const char *arg)
{
    if (opt == CMD_OPT_ALL)
        w->all = true;
    else if (opt == CMD_OPT_LOGIN)
        w->login = true;
    else if (opt != CMD_OPT_VOLUMES && opt != CMD_OPT_ANY_OF)
        return 0;
    if (opt == CMD_OPT_VOLUMES || opt == CMD_OPT_ANY_OF) {
        w->volumes = arg;
        w->any_of = opt == CMD_OPT_ANY_OF;
    }
    return 1;
}

int cmd_which_check(const struct command *c, const struct cmd_which *w, int n_others)
{
    if (w->all && w->login)
        return cmd_usage(c, "--all and --login exclude each other");
    if (!w->all && !w->login)
        return w->volumes != NULL
                   ? cmd_usage(c, "--%s is for --all and --login", w->any_of ? "any-of" : "volumes")
                   : 0;
    if (n_others > 0)
        return cmd_usage(c, "--%s takes no other words (--volumes names some of them)",
                         w->all ? "all" : "login");
    return 0;
}

static bool needs_passphrase(const struct credential_source *s)
{
    return s->passphrase_file == NULL && s->passphrase_command == NULL &&
           (s->n_keyfiles == 0 || s->ask);
}

bool cmd_which_names(const char *names, const char *name)
{
    size_t len = strlen(name);

    for (const char *at = names; at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, name, len) == 0 && (at[len] == ',' || at[len] == '\0'))
            return true;
    }
    return false;
}

static int take_volume(struct cmd_volume *v, const struct conf_volume *said,
                       const struct cmd_which *w, struct report *rep)
{
    int r;

    v->said = said;
    v->ours = cmd_named_is_ours(said);
    v->chosen = v->ours && (said->login || !w->login) &&
                (w->volumes == NULL || cmd_which_names(w->volumes, said->name));
    conf_mount_init(&v->conf);
    r = conf_volume_apply(&v->conf, said, rep);
    v->needs_passphrase = needs_passphrase(&v->conf.vol.credential);
    return r;
}

/* Before anything is done: is each of the names one of them? */
static int check_names(const struct cmd_volumes *all, const struct cmd_which *w, struct report *rep)
{
    const bool checked = w->volumes != NULL && !w->any_of;
    AUTO_FREE char *names = strdup(checked ? w->volumes : "");
    char *rest = names, *name;

    if (names == NULL)
        return report_errno(rep, ENOMEM, "--volumes");
    while (checked && (name = strsep(&rest, ",")) != NULL) {
        const struct conf_volume *v = conf_find(all->conf, name);

        if (v == NULL || !cmd_named_is_ours(v))
            return report_error(rep, ENOENT, "you have no volume named \"%s\"", name);
        if (w->login && !v->login)
            return report_error(rep, EINVAL, "volume %s is not for logins (login = yes says so)",
                                name);
    }
    return 0;
}

int cmd_volumes_choose(struct cmd_volumes *ret, const struct cmd_which *w, struct report *rep)
{
    AUTO_VOLUMES struct cmd_volumes all = {0};
    unsigned n = 0;
    int r = conf_read(&all.conf, rep);

    if (r == 0)
        r = check_names(&all, w, rep);
    if (r < 0)
        return r;
    while (conf_volume(all.conf, n) != NULL)
        n++;
    all.list = calloc(n + 1, sizeof(*all.list));
    if (all.list == NULL)
        return report_errno(rep, ENOMEM, "cannot read the configuration");
    while (r == 0 && all.n < n) {
        r = take_volume(&all.list[all.n], conf_volume(all.conf, all.n), w, rep);
        all.n++;
    }
    if (r < 0)
        return r;
    *ret = all;
    all = (struct cmd_volumes){0};
    return 0;
}

void cmd_volumes_done(struct cmd_volumes *v)
{
    for (unsigned i = 0; i < v->n; i++)
        conf_mount_done(&v->list[i].conf);
    free(v->list);
    conf_free(v->conf);
    *v = (struct cmd_volumes){0};
}

struct cmd_volume *cmd_volumes_before(const struct cmd_volumes *all, const struct cmd_volume *v)
{
    for (unsigned i = 0; v->said->after != NULL && i < all->n; i++)
        if (strcmp(all->list[i].said->name, v->said->after) == 0)
            return &all->list[i];
    return NULL;
}

int cmd_all_turn(struct report *rep)
{
    struct serve_folder where;
    int r = serve_folder_own(&where, rep);
    AUTO_FD int folder = r == 0 ? serve_folder_open(where.path, where.owner) : r;
    AUTO_FD int fd = -1;

    if (r < 0)
        return r;
    if (folder < 0)
        return report_errno(rep, -folder, "%s", where.path);
    fd = openat(folder, TURN_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return report_errno(rep, errno, "%s/%s", where.path, TURN_FILE);
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return report_errno(rep, errno, "%s/%s", where.path, TURN_FILE);
    return TAKE_FD(fd);
}

int cmd_all_check_line(const struct secret *passphrase, struct report *rep)
{
    if (memchr(passphrase->bytes, '\n', passphrase->len) == NULL)
        return 0;
    return report_error(rep, EINVAL, "a passphrase of several lines is for one volume only");
}

void cmd_argv_add(struct cmd_argv *a, const char *word)
{
    assert(a->n < CMD_ARGV);
    a->words[a->n++] = word;
}

void cmd_argv_add_option(struct cmd_argv *a, const char *option, const char *value)
{
    cmd_argv_add(a, option);
    cmd_argv_add(a, value);
}

void cmd_argv_add_keyfiles(struct cmd_argv *a, const char *option, const struct cmd_volume *v)
{
    for (unsigned i = 0; i < v->conf.vol.credential.n_keyfiles; i++)
        cmd_argv_add_option(a, option, v->conf.vol.credential.keyfiles[i]);
}
