/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/expand.h"

/* By hand and not by wordexp(3), which would run commands and split at blanks. */

#include "base/auto.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *below_home; /* NULL: /run/user/UID */
} xdg[CONF_XDGS] = {
    [CONF_XDG_CONFIG] = {"XDG_CONFIG_HOME", ".config"},
    [CONF_XDG_DATA] = {"XDG_DATA_HOME", ".local/share"},
    [CONF_XDG_STATE] = {"XDG_STATE_HOME", ".local/state"},
    [CONF_XDG_CACHE] = {"XDG_CACHE_HOME", ".cache"},
    [CONF_XDG_RUNTIME] = {"XDG_RUNTIME_DIR", NULL},
};

void conf_user_done(struct conf_user *u)
{
    free(u->name);
    free(u->home);
    for (unsigned i = 0; i < CONF_XDGS; i++)
        free(u->xdg[i]);
    *u = (struct conf_user){0};
}

/* A variable that holds an absolute path; others count as not set. */
static const char *place(const char *variable)
{
    const char *value = getenv(variable);

    return value != NULL && value[0] == '/' ? value : NULL;
}

static int fill(struct conf_user *ret, uid_t uid, const char *name, const char *home,
                bool environment)
{
    AUTO_CONF_USER struct conf_user u = {.uid = uid, .name = strdup(name), .home = strdup(home)};

    if (u.name == NULL || u.home == NULL)
        return -ENOMEM;
    for (unsigned i = 0; i < CONF_XDGS; i++) {
        const char *set = environment ? place(xdg[i].name) : NULL;
        int n;

        if (set != NULL)
            n = asprintf(&u.xdg[i], "%s", set);
        else if (xdg[i].below_home != NULL)
            n = asprintf(&u.xdg[i], "%s/%s", home, xdg[i].below_home);
        else
            n = asprintf(&u.xdg[i], "/run/user/%u", (unsigned)uid);
        if (n < 0) {
            u.xdg[i] = NULL;
            return -ENOMEM;
        }
    }
    *ret = u;
    u = (struct conf_user){0};
    return 0;
}

int conf_user_caller(struct conf_user *ret, struct report *rep)
{
    const uid_t uid = geteuid();
    const struct passwd *p = getpwuid(uid);
    const char *home = uid != 0 ? place("HOME") : NULL;
    char number[16];
    int r;

    if (home == NULL && p != NULL)
        home = p->pw_dir;
    if (home == NULL)
        return report_error(rep, ENOENT, "user %u has no home folder (set HOME)", (unsigned)uid);
    snprintf(number, sizeof(number), "%u", (unsigned)uid);
    r = fill(ret, uid, p != NULL ? p->pw_name : number, home, uid != 0);
    return r < 0 ? report_errno(rep, -r, "cannot look for your folders") : 0;
}

int conf_user_named(struct conf_user *ret, const char *name)
{
    const struct passwd *p = getpwnam(name);

    return p != NULL ? fill(ret, p->pw_uid, p->pw_name, p->pw_dir, false) : -ENOENT;
}

/* What the two characters or more at *at stand for; moves *at behind them. NULL: nothing. */
static const char *meaning(const char **at, const struct conf_user *u, const char **why)
{
    const char *text = *at;

    *at += 2;
    if (text[0] == '%') {
        *why = "% is followed by u (your name), h (your home) or another %";
        return text[1] == 'u' ? u->name : text[1] == 'h' ? u->home : text[1] == '%' ? "%" : NULL;
    }
    *why = "${} takes XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME, XDG_CACHE_HOME or "
           "XDG_RUNTIME_DIR";
    for (unsigned i = 0; i < CONF_XDGS; i++) {
        size_t len = strlen(xdg[i].name);

        if (strncmp(text + 2, xdg[i].name, len) == 0 && text[2 + len] == '}') {
            *at = text + len + 3;
            return u->xdg[i];
        }
    }
    return NULL;
}

int conf_expand(char **ret, const char *text, const struct conf_user *u, const char **why)
{
    char out[PATH_MAX];
    size_t n = 0;

    if (text[0] == '~' && (text[1] == '/' || text[1] == '\0')) {
        n = (size_t)snprintf(out, sizeof(out), "%s", u->home);
        text++;
    }
    while (*text != '\0' && n < sizeof(out)) {
        const char *piece;

        if (*text != '%' && !(text[0] == '$' && text[1] == '{')) {
            out[n++] = *text++;
            continue;
        }
        piece = meaning(&text, u, why);
        if (piece == NULL)
            return -EUCLEAN;
        n += (size_t)snprintf(out + n, sizeof(out) - n, "%s", piece);
    }
    *why = "the path is too long";
    if (n >= sizeof(out))
        return -EUCLEAN;
    out[n] = '\0';
    *ret = strdup(out);
    return *ret != NULL ? 0 : -ENOMEM;
}
