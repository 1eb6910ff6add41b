/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/work.h"

/* Of all that the user has, his configuration, home, containers and mount points, nothing is looked
 * at in this process: it is root. What his program prints is text of his. */

#include "base/auto.h"
#include "login/environment.h"
#include "login/remember.h"
#include "login/sessions.h"

#include <errno.h>
#include <security/pam_modules.h>
#include <stdio.h>
#include <string.h>

#define TEXT 8193 /* of what it prints, the rest is dropped */
#define WORDS 14
/* An unmount gives up by itself after the timeout; then what it has begun may still have to be
 * written to a slow disk. */
#define UMOUNT_MORE 30

struct words {
    const char *argv[WORDS];
    unsigned n;
};

static void add(struct words *w, const char *word)
{
    if (w->n < WORDS - 1)
        w->argv[w->n++] = word;
}

static struct words words(const struct login *l, const char *verb, const char *object,
                          const char *volumes)
{
    struct words w = {{NULL}, 0};

    add(&w, l->args.program);
    add(&w, verb);
    if (object != NULL)
        add(&w, object);
    add(&w, "--login");
    if (volumes != NULL) {
        add(&w, "--any-of"); /* one list for all users, who have not all the same */
        add(&w, volumes);
    }
    return w;
}

static int make_environment(struct login *l)
{
    char **given = l->env == NULL ? pam_getenvlist(l->talk.pamh) : NULL;
    int r = l->env == NULL ? login_environment(&l->env, &l->user, (const char *const *)given) : 0;

    login_environment_done(given); /* made of the same pieces */
    return r;
}

/* Run it and pass on what it says. 0, or its status; -errno as login_run_as(). */
static int run(struct login *l, const struct words *w, const struct secret *input, char *out,
               unsigned timeout)
{
    AUTO_FREE char *err = calloc(1, TEXT);
    struct login_run run = {.user = &l->user,
                            .argv = w->argv,
                            .input = input,
                            .timeout = timeout,
                            .out = out,
                            .out_size = TEXT,
                            .err = err,
                            .err_size = TEXT};
    int r;

    if (err == NULL || make_environment(l) < 0)
        return report_errno(&l->talk.rep, ENOMEM, "cannot run %s", w->argv[0]);
    run.env = (const char *const *)l->env;
    login_debug(&l->talk, "%s %s %s for %s", w->argv[0], w->argv[1], w->argv[2], l->user.name);
    r = login_run_as(&run, &l->talk.rep);
    if (r > 0 && err[0] == '\0')
        report_error(&l->talk.rep, EIO, "%s %s failed with status %d and without a word",
                     w->argv[0], w->argv[1], r);
    login_talk_lines(&l->talk, err, r != 0);
    return r;
}

/* While nobody else mounts or unmounts for this user. sessions -1: as it is. */
static int run_alone(struct login *l, int sessions, const struct words *w,
                     const struct secret *input, char *out)
{
    int r = sessions < 0 ? 0 : login_sessions_work(sessions, l->args.timeout, &l->talk.rep);

    if (r == 0)
        r = run(l, w, input, out, l->args.timeout);
    if (sessions >= 0)
        login_sessions_rest(sessions);
    return r;
}

/* Of the volumes that a mount would open now; each a list for --volumes, "" none. */
struct closed {
    char out[TEXT];
    char passphrase[TEXT], key[TEXT];
};

static bool is_name(const char *name)
{
    size_t len = strlen(name);

    return len > 0 && len <= 64 && name[0] != '-' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static void append(char *list, const char *name)
{
    size_t used = strlen(list);

    snprintf(list + used, TEXT - used, "%s%s", used > 0 ? "," : "", name);
}

/* Lines NAME, tab, what opens it. It is the user's text, and is to be shown and handed on: what is
 * no name is left out. */
static void sort_out(struct closed *c)
{
    char *rest = NULL;

    for (char *line = strtok_r(c->out, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *key = strchr(line, '\t');

        if (key == NULL)
            continue;
        *key++ = '\0';
        if (is_name(line))
            append(strcmp(key, "passphrase") == 0 ? c->passphrase : c->key, line);
    }
}

/* NULL: not known, said. The caller's to free. */
static struct closed *find_closed(struct login *l, int sessions)
{
    struct words w = words(l, "mount", NULL, l->args.volumes);
    struct closed *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        report_errno(&l->talk.rep, ENOMEM, "cannot look for login volumes");
        return NULL;
    }
    add(&w, "--dry-run");
    if (run_alone(l, sessions, &w, NULL, c->out) == 0) {
        sort_out(c);
        return c;
    }
    free(c);
    return NULL;
}

static void mount_with(struct login *l, const struct secret *password, int sessions)
{
    struct words w = words(l, "mount", NULL, l->args.volumes);
    AUTO_SECRET struct secret line = {0};
    int r = login_lines(&line, password, NULL);

    if (r < 0) {
        report_errno(&l->talk.rep, -r, "the password cannot be handed on");
        return;
    }
    add(&w, "--passphrase-file");
    add(&w, "-");
    run_alone(l, sessions, &w, &line, NULL);
}

static void mount_keys(struct login *l, const struct closed *c, int sessions)
{
    struct words w = words(l, "mount", NULL, c->key);

    if (c->key[0] != '\0')
        run_alone(l, sessions, &w, NULL, NULL);
}

/* Nobody works while somebody is asked: that may last, and other logins go on. */
void login_work_mount(struct login *l, const struct secret *password, int sessions)
{
    AUTO_SECRET struct secret typed = {0};
    AUTO_FREE struct closed *c = NULL;

    if (password != NULL) {
        mount_with(l, password, sessions);
        return;
    }
    c = find_closed(l, sessions);
    if (c == NULL)
        return;
    if (c->passphrase[0] != '\0' && login_ask(&l->talk, &typed, c->passphrase) == 0) {
        mount_with(l, &typed, sessions);
        return;
    }
    if (c->passphrase[0] != '\0')
        report_info(&l->talk.rep, "closed: %s (\"hushvol mount --login\" opens them)",
                    c->passphrase);
    mount_keys(l, c, sessions);
}

void login_work_umount(struct login *l, int sessions)
{
    struct words w = words(l, "umount", NULL, l->args.volumes);
    char seconds[16];

    snprintf(seconds, sizeof(seconds), "%u", l->args.timeout);
    add(&w, "--timeout");
    add(&w, seconds);
    if (login_sessions_work(sessions, l->args.timeout, &l->talk.rep) < 0)
        return;
    if (login_sessions_count(sessions, &l->talk.rep) == 0)
        run(l, &w, NULL, NULL, l->args.timeout + UMOUNT_MORE);
    login_sessions_rest(sessions);
}

int login_work_change(struct login *l, const struct secret *old, const struct secret *new)
{
    struct words w = words(l, "key", "change", l->args.volumes);
    AUTO_SECRET struct secret lines = {0};
    int r = login_lines(&lines, old, new);

    if (r < 0)
        report_errno(&l->talk.rep, -r, "the passwords cannot be handed on");
    add(&w, "--passphrase-file");
    add(&w, "-");
    add(&w, "--new-passphrase-file");
    add(&w, "-");
    if (r == 0)
        r = run(l, &w, &lines, NULL, l->args.timeout);
    if (r != 0)
        report_error(&l->talk.rep, EIO,
                     "volumes that are named above keep the old passphrase, which still opens them "
                     "(\"hushvol key change\" changes it)");
    return r;
}

void login_work_keep(struct login *l)
{
    AUTO_FREE struct closed *c = find_closed(l, -1);

    if (c != NULL && c->passphrase[0] != '\0')
        report_info(&l->talk.rep,
                    "the volumes of %s keep the passphrase that they have: %s (\"hushvol key "
                    "change --login\" as %s changes it)",
                    l->user.name, c->passphrase, l->user.name);
}
