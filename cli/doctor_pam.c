/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_pam.h"

/* A line of pam_hushvol.so that does nothing makes no noise: the login works, the volume stays
 * closed. So each service that has one is walked as a right password would, once for every module
 * that may be the one to take it, and a line that is not on the way is a finding. */

#include "base/auto.h"
#include "cli/doctor_pam_stack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MODULE "pam_hushvol.so"
#define AT "%s:%u"

static const char check[] = "pam";
enum { AUTH, SESSION, PASSWORD };
static const char *const type_names[] = {"auth", "session", "password"};

struct service {
    const struct doctor_pam_file *file;
    struct pam_stack stacks[3];
    int at[3]; /* the line of our module; -1 */
};

/* A module that never refuses and never ends a stack is to be told so, since the library refuses a
 * login by a line whose module is missing. */
static void check_control(struct doctor *d, const struct pam_line *l)
{
    struct pam_action good = pam_action(l->control, "success");
    struct pam_action bad = pam_action(l->control, "auth_err");

    if (bad.what == PAM_BAD || bad.what == PAM_DIE)
        doctor_found(d, DOCTOR_WARN, check, "write optional there",
                     AT ": " MODULE " is %s: without its file nobody could log in", l->file->path,
                     l->line, l->control);
    else if ((good.what != PAM_OK && good.what != PAM_IGNORED) || bad.what != PAM_IGNORED)
        doctor_found(d, DOCTOR_WARN, check, "write optional there",
                     AT ": " MODULE " is %s, which leaves out the lines after it", l->file->path,
                     l->line, l->control);
}

static void found_left(struct doctor *d, const char *type, const struct pam_line *ours,
                       const struct pam_line *by)
{
    struct pam_action a = pam_action(by->control, "success");

    if (a.what == PAM_JUMP)
        doctor_found(d, DOCTOR_WARN, check,
                     "move it to where that jump leads: success=N passes over N lines",
                     AT ": " MODULE " (%s) is never reached: %s in " AT
                        " jumps past it when the password is right",
                     ours->file->path, ours->line, type, by->module, by->file->path, by->line);
    else
        doctor_found(d, DOCTOR_WARN, check,
                     "make that line [success=N default=ignore], N the lines up to ours, or put it "
                     "into a substack",
                     AT ": " MODULE " (%s) is never reached: %s in " AT
                        " ends the stack when the password is right",
                     ours->file->path, ours->line, type, by->module, by->file->path, by->line);
}

/* auth and password: behind whatever takes the password, and on its way. */
static bool check_behind(struct doctor *d, const struct pam_stack *s, int at, const char *type,
                         struct pam_walk *w)
{
    const struct pam_line *ours = &s->lines[at];

    for (unsigned i = 0; i < s->n; i++) {
        if (!pam_asks_password(&s->lines[i]))
            continue;
        pam_stack_walk(s, (int)i, w);
        if (w->refused)
            continue;
        if (w->seen[at] && at < (int)i)
            doctor_found(d, DOCTOR_WARN, check, "move it behind that line",
                         AT ": " MODULE " (%s) stands before %s in " AT
                            ", which asks for the password",
                         ours->file->path, ours->line, type, s->lines[i].module,
                         s->lines[i].file->path, s->lines[i].line);
        else if (!w->seen[at] && w->left_by[at] >= 0)
            found_left(d, type, ours, &s->lines[w->left_by[at]]);
        else
            continue;
        return false;
    }
    return true;
}

/* session: on the way, and behind what makes the places that a mount needs. */
static void check_session(struct doctor *d, const struct pam_stack *s, int at, struct pam_walk *w)
{
    static const struct {
        const char *module, *makes;
    } makers[] = {{"pam_systemd.so", "makes $XDG_RUNTIME_DIR"},
                  {"pam_elogind.so", "makes $XDG_RUNTIME_DIR"},
                  {"pam_mkhomedir.so", "makes the home folder"},
                  {"pam_oddjob_mkhomedir.so", "makes the home folder"}};
    const struct pam_line *ours = &s->lines[at];

    pam_stack_walk(s, -1, w);
    if (!w->seen[at] && w->left_by[at] >= 0 && !w->refused) {
        const struct pam_line *by = &s->lines[w->left_by[at]];

        doctor_found(d, DOCTOR_WARN, check, "move it to where that line leads, or before it",
                     AT ": " MODULE " (session) is never reached: %s in " AT " leaves it out",
                     ours->file->path, ours->line, by->module, by->file->path, by->line);
    }
    for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
        int maker = pam_stack_find(s, makers[i].module, (unsigned)at + 1);

        if (maker >= 0)
            doctor_found(d, DOCTOR_WARN, check, "move it behind that line",
                         AT ": " MODULE " (session) stands before %s in " AT ", which %s",
                         ours->file->path, ours->line, s->lines[maker].module,
                         s->lines[maker].file->path, s->lines[maker].line, makers[i].makes);
    }
}

static void check_twice(struct doctor *d, const struct service *v, unsigned type)
{
    const struct pam_stack *s = &v->stacks[type];
    int again = pam_stack_find(s, MODULE, (unsigned)v->at[type] + 1);

    if (again >= 0)
        doctor_found(d, DOCTOR_WARN, check, "take one of them away",
                     AT ": " MODULE " (%s) is in " AT " already, so %s calls it twice",
                     s->lines[again].file->path, s->lines[again].line, type_names[type],
                     s->lines[v->at[type]].file->path, s->lines[v->at[type]].line, v->file->name);
}

static bool asks(const struct pam_stack *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (pam_asks_password(&s->lines[i]))
            return true;
    return false;
}

/* These open a session of their own; others, like sudo, may well have auth alone. */
static bool is_login(const char *name)
{
    static const char *const names[] = {"login", "sshd",   "gdm-password", "lightdm",
                                        "sddm",  "greetd", "lxdm",         "xdm",
                                        "kde",   "remote", "cockpit"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void check_pairs(struct doctor *d, const struct service *v)
{
    if (v->at[AUTH] >= 0 && v->at[SESSION] < 0 && is_login(v->file->name))
        doctor_found(d, DOCTOR_WARN, check, "add the line: session optional " MODULE,
                     "%s: " MODULE " is in auth and not in session, so nothing is mounted",
                     v->file->path);
    if (v->at[SESSION] >= 0 && v->at[AUTH] < 0 && asks(&v->stacks[AUTH]))
        doctor_found(d, DOCTOR_WARN, check,
                     "add the line: auth optional " MODULE ", behind the one that asks",
                     "%s: " MODULE " is in session and not in auth, so it asks for the password "
                     "once more",
                     v->file->path);
}

static void check_service(struct doctor *d, const struct service *v, struct pam_walk *w)
{
    for (unsigned t = 0; t < 3; t++) {
        if (v->at[t] < 0)
            continue;
        check_control(d, &v->stacks[t].lines[v->at[t]]);
        check_twice(d, v, t);
        if (t == SESSION)
            check_session(d, &v->stacks[t], v->at[t], w);
        else
            check_behind(d, &v->stacks[t], v->at[t], type_names[t], w);
    }
    check_pairs(d, v);
}

static void read_service(struct service *v, const struct doctor_pam_file *f,
                         const struct doctor_pam_file *files, unsigned n, bool *included)
{
    v->file = f;
    for (unsigned t = 0; t < 3; t++) {
        pam_stack_read(&v->stacks[t], type_names[t], f, files, n, included);
        v->at[t] = pam_stack_find(&v->stacks[t], MODULE, 0);
    }
}

/* What is known when all services have been seen. */
struct sum {
    unsigned n_sessions; /* services that mount */
    bool passwd, passwd_told;
};

static void add_up(struct sum *sum, const struct service *v)
{
    sum->n_sessions += v->at[SESSION] >= 0;
    if (strcmp(v->file->name, "passwd") == 0) {
        sum->passwd = true;
        sum->passwd_told = v->at[PASSWORD] >= 0;
    }
}

static void conclude(struct doctor *d, const struct sum *sum, unsigned n_before)
{
    if (sum->n_sessions > 0 && sum->passwd && !sum->passwd_told)
        doctor_found(d, DOCTOR_WARN, check,
                     "add the line: password optional " MODULE ", behind pam_unix.so",
                     "passwd does not call " MODULE ", so volumes keep the old passphrase");
    if (sum->n_sessions > 0 && d->n == n_before)
        doctor_found(d, DOCTOR_OK, check, NULL, MODULE " stands right in %u service%s",
                     sum->n_sessions, sum->n_sessions == 1 ? "" : "s");
}

static void keep_module(const struct service *v, char *module, size_t size)
{
    for (unsigned t = 0; t < 3 && module[0] == '\0'; t++)
        if (v->at[t] >= 0)
            snprintf(module, size, "%s", v->stacks[t].lines[v->at[t]].path);
}

/* A file that others include is walked within them; which those are is known when all have been
 * read. */
int doctor_pam(struct doctor *d, const struct doctor_pam_file *files, unsigned n, char *module,
               size_t size)
{
    AUTO_FREE struct service *v = calloc(1, sizeof(*v));
    AUTO_FREE struct pam_walk *w = calloc(1, sizeof(*w));
    AUTO_FREE bool *included = calloc(n + 1, sizeof(*included));
    unsigned n_before = d->n;
    struct sum sum = {0};

    module[0] = '\0';
    if (v == NULL || w == NULL || included == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < n; i++)
        read_service(v, &files[i], files, n, included);
    for (unsigned i = 0; i < n; i++) {
        if (included[i])
            continue;
        read_service(v, &files[i], files, n, included);
        keep_module(v, module, size);
        add_up(&sum, v);
        check_service(d, v, w);
    }
    conclude(d, &sum, n_before);
    return 0;
}
