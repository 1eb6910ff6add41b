/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/config.h"

/* Keys are in keys.c, their values in value.c. First every line is looked at by itself
 * (check_keys), so that one run shows all faults, then the volumes are made, each with what of
 * [defaults] holds for it. */

#include "base/auto.h"
#include "conf/expand.h"
#include "conf/ini.h"
#include "conf/keys.h"
#include "conf/value.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct file {
    char *name;
    bool system;
    struct conf_ini ini;
};

struct conf {
    struct file *files;
    unsigned n_files;
    struct conf_volume *volumes;
    unsigned n_volumes;
};

/* Where a value stands; also a report that puts this in front of what options.c says. */
struct where {
    struct report rep;
    struct report *to;
    const char *file;
    unsigned line;
};

static void say_where(struct report *rep, enum report_level level, const char *text)
{
    const struct where *w = container_of(rep, struct where, rep);

    if (level == REPORT_ERROR)
        report_error(w->to, EUCLEAN, "%s:%u: %s", w->file, w->line, text);
}

static struct where where(const char *file, unsigned line, struct report *rep)
{
    return (struct where){.rep = {.say = say_where}, .to = rep, .file = file, .line = line};
}

int conf_new(struct conf **ret)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret != NULL ? 0 : -ENOMEM;
}

static void volume_done(struct conf_volume *v)
{
    for (unsigned i = 0; i < v->n_said; i++)
        free(v->said[i].value);
    free(v->said);
}

void conf_free(struct conf *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < c->n_volumes; i++)
        volume_done(&c->volumes[i]);
    for (unsigned i = 0; i < c->n_files; i++) {
        free(c->files[i].name);
        conf_ini_done(&c->files[i].ini);
    }
    free(c->volumes);
    free(c->files);
    free(c);
}

int conf_add(struct conf *c, const char *file, bool system, const char *text, size_t len,
             struct report *rep)
{
    struct file *grown = realloc(c->files, (c->n_files + 1) * sizeof(*grown));
    struct file *f;
    int r;

    if (grown == NULL)
        return report_errno(rep, ENOMEM, "%s", file);
    c->files = grown;
    f = &grown[c->n_files];
    *f = (struct file){.name = strdup(file), .system = system};
    if (f->name == NULL)
        return report_errno(rep, ENOMEM, "%s", file);
    r = conf_ini_read(&f->ini, f->name, text, len, rep);
    c->n_files++; /* a faulty file has no settings, and a name that messages point to */
    return r;
}

static int unknown_key(struct where *w, const char *name)
{
    char allowed[REPORT_LINE] = "";
    struct conf_key k;
    size_t n = 0;

    for (unsigned i = 0; conf_key(&k, i) && n < sizeof(allowed); i++)
        n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s", i > 0 ? ", " : "", k.name);
    return report_error(&w->rep, EUCLEAN, "unknown key \"%.100s\" (there are: %s)", name, allowed);
}

/* Make what stands in a line one of the settings of v. */
static int take_setting(struct conf_volume *v, const struct file *f, const struct conf_setting *s,
                        const struct conf_user *u, struct report *rep)
{
    struct where w = where(f->name, s->line, rep);
    struct conf_said said = {
        .key = s->key, .file = f->name, .line = s->line, .by_default = s->volume[0] == '\0'};
    struct conf_said *grown = NULL;
    AUTO_FREE char *value = NULL;
    const char *why = "";
    int r = 0;

    if (conf_key_is_path(s->key))
        r = conf_expand(&value, s->value, u, &why);
    else if ((value = strdup(s->value)) == NULL)
        r = -ENOMEM;
    if (r == -EUCLEAN)
        return report_error(&w.rep, EUCLEAN, "%s: %s", s->key, why);
    said.value = value;
    if (r == 0)
        r = conf_value_check(&said, &w.rep);
    if (r == 0 && (grown = realloc(v->said, (v->n_said + 1) * sizeof(*grown))) == NULL)
        r = -ENOMEM;
    if (r < 0)
        return r;
    v->said = grown;
    said.value = TAKE(value);
    v->said[v->n_said++] = said;
    return 0;
}

static const struct conf_setting *find_setting(const struct file *f, const char *volume,
                                               const char *key)
{
    for (unsigned i = 0; i < f->ini.n; i++)
        if (strcmp(f->ini.settings[i].volume, volume) == 0 &&
            strcmp(f->ini.settings[i].key, key) == 0)
            return &f->ini.settings[i];
    return NULL;
}

/* Does a section of f say this key itself, or a word that excludes it? */
static bool overrules(const struct file *f, const char *section, const char *key)
{
    for (unsigned i = 0; i < f->ini.n; i++) {
        const struct conf_setting *s = &f->ini.settings[i];

        if (strcmp(s->volume, section) == 0 &&
            (strcmp(s->key, key) == 0 ||
             (conf_options_exclude(s->key, key) && conf_word_of(s->key, s->value) != NULL)))
            return true;
    }
    return false;
}

/* Is what file i says in [defaults] overruled by the user's file? */
static bool default_is_replaced(const struct conf *c, unsigned i, const char *key)
{
    for (unsigned j = i + 1; j < c->n_files; j++)
        if (!c->files[j].system && overrules(&c->files[j], "", key))
            return true;
    return false;
}

static int take_defaults(struct conf *c, struct conf_volume *v, const struct file *own,
                         const struct conf_user *u, struct report *rep)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < c->n_files; i++)
        for (unsigned j = 0; r == 0 && j < c->files[i].ini.n; j++) {
            const struct conf_setting *s = &c->files[i].ini.settings[j];

            if (s->volume[0] == '\0' && s->key[0] != '\0' && !overrules(own, v->name, s->key) &&
                !default_is_replaced(c, i, s->key))
                r = take_setting(v, &c->files[i], s, u, rep);
        }
    return r;
}

static const char *value_of(const struct conf_volume *v, const char *key)
{
    for (unsigned i = 0; i < v->n_said; i++)
        if (strcmp(v->said[i].key, key) == 0)
            return v->said[i].value;
    return NULL;
}

static bool says(const struct conf_volume *v, const char *key, const char *value)
{
    const char *said = value_of(v, key);

    return said != NULL && strcmp(said, value) == 0;
}

/* Words that exclude each other have been said by check_key(). */
static int check_together(const struct conf_volume *v, struct report *rep)
{
    struct where w = where(v->file, v->line, rep);
    struct conf_mount m;
    int r;

    conf_mount_init(&m);
    r = conf_volume_apply(&m, v, NULL);
    conf_mount_done(&m);
    if (r < 0)
        return r == -ENOMEM ? r : -EUCLEAN;
    if (v->container == NULL)
        return report_error(&w.rep, EUCLEAN, "volume %s has no container = PATH", v->name);
    if (v->filesystem && v->mountpoint == NULL)
        return report_error(&w.rep, EUCLEAN, "volume %s: filesystem = auto needs a mountpoint",
                            v->name);
    return 0;
}

static int take_user(struct conf_user *other, const struct conf_volume *v, const struct file *f,
                     struct report *rep)
{
    const struct conf_setting *s = find_setting(f, v->name, "owner");
    int r = s != NULL ? conf_user_named(other, s->value) : 0;

    if (r == -ENOENT)
        return report_error(rep, EUCLEAN, "%s:%u: owner takes the name of a user, not \"%s\"",
                            f->name, s->line, s->value);
    return r;
}

static int take_volume(struct conf *c, struct conf_volume *v, const struct file *f,
                       const struct conf_user *caller, struct report *rep)
{
    AUTO_CONF_USER struct conf_user other = {0};
    const struct conf_user *u;
    int status = take_user(&other, v, f, rep);

    if (status < 0)
        return status;
    u = other.name != NULL ? &other : caller;
    status = take_defaults(c, v, f, u, rep);
    for (unsigned i = 0; i < f->ini.n; i++) {
        const struct conf_setting *s = &f->ini.settings[i];
        int r = strcmp(s->volume, v->name) == 0 && s->key[0] != '\0' ? take_setting(v, f, s, u, rep)
                                                                     : 0;

        if (r < 0)
            status = r;
    }
    v->container = value_of(v, "container");
    v->mountpoint = value_of(v, "mountpoint");
    v->owner = value_of(v, "owner");
    v->after = value_of(v, "after");
    v->filesystem = says(v, "filesystem", "auto");
    v->login = says(v, "login", "yes");
    return status < 0 ? status : check_together(v, rep);
}

static const struct file *earlier_file(const struct conf *c, unsigned i,
                                       const struct conf_setting *s)
{
    for (unsigned j = 0; j < i; j++)
        if (c->files[j].system && find_setting(&c->files[j], s->volume, s->key) != NULL)
            return &c->files[j];
    return NULL;
}

/* A word that s excludes, said before it: in the same section, or in [defaults] of an earlier
 * system file (*where). A volume may say another than [defaults], and a user than the system. */
static const struct conf_setting *excluded_by(const struct conf *c, unsigned i,
                                              const struct conf_setting *s,
                                              const struct file **where)
{
    const char *word = conf_word_of(s->key, s->value);

    for (unsigned j = s->volume[0] == '\0' && c->files[i].system ? 0 : i; word != NULL && j <= i;
         j++)
        for (unsigned k = 0; k < c->files[j].ini.n; k++) {
            const struct conf_setting *t = &c->files[j].ini.settings[k];
            const char *other = conf_word_of(t->key, t->value);

            if (t == s)
                return NULL;
            if (strcmp(t->volume, s->volume) == 0 && other != NULL &&
                conf_options_exclude(word, other)) {
                *where = &c->files[j];
                return t;
            }
        }
    return NULL;
}

static int check_choice(const struct conf *c, unsigned i, const struct conf_setting *s,
                        struct where *w)
{
    const struct file *there;
    const struct conf_setting *other = excluded_by(c, i, s, &there);

    if (other == NULL)
        return 0;
    return report_error(&w->rep, EUCLEAN, "%s = %s and %s = %s in %s:%u exclude each other", s->key,
                        s->value, other->key, other->value, there->name, other->line);
}

/* What needs no value of its own: may this key stand here, and only once? */
static int check_key(const struct conf *c, unsigned i, const struct conf_setting *s,
                     struct report *rep)
{
    const struct file *f = &c->files[i], *twin = f->system ? earlier_file(c, i, s) : NULL;
    struct where w = where(f->name, s->line, rep);
    struct conf_key k;

    if (s->key[0] == '\0') {
        if (s->volume[0] != '\0' && twin != NULL)
            return report_error(&w.rep, EUCLEAN, "volume %s is in %s:%u already", s->volume,
                                twin->name, find_setting(twin, s->volume, "")->line);
        return 0;
    }
    if (!conf_key_find(&k, s->key))
        return unknown_key(&w, s->key);
    if (s->volume[0] != '\0')
        return k.system_only && !f->system
                   ? report_error(&w.rep, EUCLEAN, "owner is for the files in /etc only")
                   : check_choice(c, i, s, &w);
    if (!k.in_defaults)
        return report_error(&w.rep, EUCLEAN, "%s is for a [volume NAME], not for [defaults]",
                            s->key);
    if (twin != NULL)
        return report_error(&w.rep, EUCLEAN, "%s is in [defaults] of %s:%u already", s->key,
                            twin->name, find_setting(twin, "", s->key)->line);
    return check_choice(c, i, s, &w);
}

static int check_keys(const struct conf *c, struct report *rep)
{
    int status = 0;

    for (unsigned i = 0; i < c->n_files; i++)
        for (unsigned j = 0; j < c->files[i].ini.n; j++) {
            int r = check_key(c, i, &c->files[i].ini.settings[j], rep);

            if (r < 0)
                status = r;
        }
    return status;
}

/* A user's own volume of a name hides the system's. */
static bool is_hidden(const struct conf *c, unsigned i, const char *name)
{
    for (unsigned j = i + 1; j < c->n_files; j++)
        if (!c->files[j].system && find_setting(&c->files[j], name, "") != NULL)
            return true;
    return false;
}

static int take_volumes_of(struct conf *c, unsigned i, const struct conf_user *caller,
                           struct report *rep)
{
    const struct file *f = &c->files[i];
    int status = 0;

    for (unsigned j = 0; j < f->ini.n && status != -ENOMEM; j++) {
        const struct conf_setting *s = &f->ini.settings[j];
        struct conf_volume *grown;
        int r;

        if (s->key[0] != '\0' || s->volume[0] == '\0' || is_hidden(c, i, s->volume))
            continue;
        grown = realloc(c->volumes, (c->n_volumes + 1) * sizeof(*grown));
        if (grown == NULL)
            return report_errno(rep, ENOMEM, "%s", f->name);
        c->volumes = grown;
        grown[c->n_volumes] = (struct conf_volume){
            .name = s->volume, .file = f->name, .line = s->line, .system = f->system};
        r = take_volume(c, &grown[c->n_volumes++], f, caller, rep);
        if (r < 0)
            status = r;
    }
    return status;
}

/* Each volume waits for one other at most, so whoever follows the chain for longer than there are
 * volumes walks in a circle. */
static int check_order(const struct conf *c, const struct conf_volume *v, struct report *rep)
{
    const struct conf_volume *at = v;

    for (unsigned i = 0; i <= c->n_volumes; i++) {
        if (at == NULL || at->after == NULL)
            return 0;
        if (at == v && conf_find(c, v->after) == NULL)
            return report_error(rep, EUCLEAN, "%s:%u: volume %s: after names no volume: \"%s\"",
                                v->file, v->line, v->name, v->after);
        at = conf_find(c, at->after);
    }
    return report_error(rep, EUCLEAN, "%s:%u: volume %s waits for itself by after = %s", v->file,
                        v->line, v->name, v->after);
}

/* Faults in [defaults] are said here once, and not by each volume, of which there may be none. */
static int check_defaults(struct conf *c, const struct conf_user *caller, struct report *rep)
{
    const struct file none = {0};
    struct conf_volume v = {.name = ""};
    int r = take_defaults(c, &v, &none, caller, rep);

    volume_done(&v);
    return r;
}

int conf_settle(struct conf *c, struct report *rep)
{
    AUTO_CONF_USER struct conf_user caller = {0};
    int r = conf_user_caller(&caller, rep), status;

    if (r < 0)
        return r;
    status = check_keys(c, rep);
    r = check_defaults(c, &caller, rep);
    if (r < 0)
        return r; /* each volume would say the same again */
    for (unsigned i = 0; i < c->n_files; i++) {
        r = take_volumes_of(c, i, &caller, rep);
        if (r < 0)
            status = r;
    }
    for (unsigned i = 0; i < c->n_volumes; i++) {
        r = check_order(c, &c->volumes[i], rep);
        if (r < 0)
            status = r;
    }
    return status;
}

const struct conf_volume *conf_volume(const struct conf *c, unsigned i)
{
    return i < c->n_volumes ? &c->volumes[i] : NULL;
}

const struct conf_volume *conf_find(const struct conf *c, const char *name)
{
    for (unsigned i = 0; i < c->n_volumes; i++)
        if (strcmp(c->volumes[i].name, name) == 0)
            return &c->volumes[i];
    return NULL;
}

/* The words of [defaults], or of the volume itself, as one list. */
static char *option_list(const struct conf_volume *v, bool by_default)
{
    char *list = strdup("");

    for (unsigned i = 0; list != NULL && i < v->n_said; i++) {
        const struct conf_said *s = &v->said[i];
        AUTO_FREE char *word = NULL, *longer = NULL;

        if (s->by_default != by_default)
            continue;
        word = conf_word_text(s);
        if (word == NULL || asprintf(&longer, "%s%s,", list, word) < 0)
            longer = NULL;
        free(list);
        list = TAKE(longer);
    }
    return list;
}

int conf_volume_apply(struct conf_mount *m, const struct conf_volume *v, struct report *rep)
{
    AUTO_FREE char *defaults = option_list(v, true), *own = option_list(v, false);
    AUTO_FREE char *first = NULL;
    int r;

    if (defaults == NULL || own == NULL ||
        asprintf(&first, v->owner != NULL ? "name=%s,uid=%s" : "name=%s", v->name, v->owner) < 0)
        return report_errno(rep, ENOMEM, "volume %s", v->name);
    r = conf_options_apply(m, first, rep);
    if (r == 0)
        r = conf_options_apply(m, defaults, rep);
    return r == 0 ? conf_options_apply(m, own, rep) : r;
}
