/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_pam_stack.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LINE_MAX_LEN 1024
#define DEPTH_MAX 8
#define READ_MAX 100

/* Where reading is. */
struct reader {
    struct pam_stack *stack;
    const char *type;
    const struct doctor_pam_file *files;
    unsigned n_files;
    bool *included;
    unsigned n_read; /* files that include each other come to an end here */
};

/* The next line with those that it goes on in by a backslash, without its comment. Returns the rest
 * of the text, or NULL at its end; *line counts. */
static const char *next_line(const char *text, char out[LINE_MAX_LEN], unsigned *line)
{
    size_t n = 0;
    bool more = true;

    if (*text == '\0')
        return NULL;
    while (more && *text != '\0') {
        size_t len = strcspn(text, "\n"), shown = strcspn(text, "#\n");

        more = shown == len && len > 0 && text[len - 1] == '\\';
        for (size_t i = 0; i < shown - (more ? 1 : 0) && n < LINE_MAX_LEN - 2; i++)
            out[n++] = text[i];
        out[n++] = ' ';
        n -= n == LINE_MAX_LEN - 1;
        text += len + (text[len] == '\n');
        ++*line;
    }
    out[n] = '\0';
    return text;
}

/* The next word, or what stands in [ ]. Returns what follows. */
static char *take_word(char *at, char **word)
{
    bool bracket;

    at += strspn(at, " \t");
    bracket = *at == '[';
    *word = at;
    at += bracket ? strcspn(at, "]") : strcspn(at, " \t");
    at += bracket && *at == ']';
    if (*at != '\0')
        *at++ = '\0';
    return at;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static void read_file(struct reader *r, const struct doctor_pam_file *f, unsigned depth,
                      unsigned nested);

static void read_included(struct reader *r, const char *name, unsigned depth, unsigned nested)
{
    for (unsigned i = 0; i < r->n_files && nested < DEPTH_MAX; i++)
        if (strcmp(r->files[i].name, last_part(name)) == 0 && r->n_read++ < READ_MAX) {
            r->included[i] = true;
            read_file(r, &r->files[i], depth, nested + 1);
            return;
        }
}

static struct pam_line *add_line(struct reader *r, const struct doctor_pam_file *f, unsigned line,
                                 unsigned depth)
{
    struct pam_line *l = &r->stack->lines[r->stack->n];

    if (r->stack->n == PAM_STACK_MAX)
        return NULL;
    r->stack->n++;
    *l = (struct pam_line){.file = f, .line = line, .depth = depth};
    return l;
}

static void read_line(struct reader *r, const struct doctor_pam_file *f, char *text, unsigned line,
                      unsigned depth, unsigned nested)
{
    char *type, *control, *module;
    struct pam_line *l;

    text = take_word(text, &type);
    text = take_word(text, &control);
    if (strcasecmp(type, "@include") == 0) {
        read_included(r, control, depth, nested);
        return;
    }
    take_word(text, &module);
    type += *type == '-';
    if (strcasecmp(type, r->type) != 0 || *module == '\0')
        return;
    if (strcasecmp(control, "include") == 0) {
        read_included(r, module, depth, nested);
        return;
    }
    l = add_line(r, f, line, depth);
    if (l == NULL)
        return;
    if (strcasecmp(control, "substack") == 0) {
        l->substack = true;
        read_included(r, module, depth + 1, nested);
        return;
    }
    snprintf(l->control, sizeof(l->control), "%s", control);
    snprintf(l->path, sizeof(l->path), "%s", module);
    snprintf(l->module, sizeof(l->module), "%s", last_part(module));
}

static void read_file(struct reader *r, const struct doctor_pam_file *f, unsigned depth,
                      unsigned nested)
{
    const char *text = f->text;
    char line[LINE_MAX_LEN];
    unsigned n = 0, first = 1;

    while ((text = next_line(text, line, &n)) != NULL) {
        read_line(r, f, line, first, depth, nested);
        first = n + 1;
    }
}

void pam_stack_read(struct pam_stack *s, const char *type, const struct doctor_pam_file *service,
                    const struct doctor_pam_file *files, unsigned n, bool *included)
{
    struct reader r = {s, type, files, n, included, 0};

    s->n = 0;
    read_file(&r, service, 0, 0);
}

int pam_stack_find(const struct pam_stack *s, const char *module, unsigned from)
{
    for (unsigned i = from; i < s->n; i++)
        if (strcmp(s->lines[i].module, module) == 0)
            return (int)i;
    return -1;
}

static struct pam_action action_of(const char *word)
{
    static const struct {
        const char *word;
        enum pam_what what;
    } words[] = {{"ignore", PAM_IGNORED}, {"bad", PAM_BAD},   {"die", PAM_DIE},
                 {"ok", PAM_OK},          {"done", PAM_DONE}, {"reset", PAM_IGNORED}};

    if (isdigit((unsigned char)*word))
        return (struct pam_action){PAM_JUMP, (unsigned)strtoul(word, NULL, 10)};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strncmp(word, words[i].word, strlen(words[i].word)) == 0)
            return (struct pam_action){words[i].what, 0};
    return (struct pam_action){PAM_BAD, 0};
}

/* The value of result in [result=value ...]; else of default, else it is bad. */
static struct pam_action bracket_action(const char *control, const char *result)
{
    const char *named[] = {result, "default"};

    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(named[i]);

        for (const char *at = control; (at = strstr(at, named[i])) != NULL; at += len)
            if (strchr("[ \t", at[-1]) != NULL && at[len] == '=')
                return action_of(at + len + 1);
    }
    return (struct pam_action){PAM_BAD, 0};
}

struct pam_action pam_action(const char *control, const char *result)
{
    static const struct {
        const char *word;
        enum pam_what success, failure;
    } words[] = {{"required", PAM_OK, PAM_BAD},
                 {"requisite", PAM_OK, PAM_DIE},
                 {"sufficient", PAM_DONE, PAM_IGNORED},
                 {"optional", PAM_OK, PAM_IGNORED}};

    if (control[0] == '[')
        return bracket_action(control, result);
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(control, words[i].word) == 0)
            return (struct pam_action){
                strcmp(result, "success") == 0 ? words[i].success : words[i].failure, 0};
    return (struct pam_action){PAM_BAD, 0};
}

bool pam_asks_password(const struct pam_line *l)
{
    static const char *const modules[] = {
        "pam_unix.so",    "pam_unix2.so", "pam_sss.so", "pam_ldap.so", "pam_krb5.so",
        "pam_winbind.so", "pam_lsass.so", "pam_tcb.so", "pam_pwdb.so", "pam_systemd_home.so"};

    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]); i++)
        if (strcmp(l->module, modules[i]) == 0)
            return true;
    return false;
}

static bool is_refusal(struct pam_action a)
{
    return a.what == PAM_BAD || a.what == PAM_DIE;
}

static bool leads_on(struct pam_action a)
{
    return a.what == PAM_IGNORED || a.what == PAM_OK;
}

/* What line i does on this way. */
static struct pam_action act(const struct pam_stack *s, unsigned i, int winner)
{
    const struct pam_line *l = &s->lines[i];
    struct pam_action good = pam_action(l->control, "success");
    struct pam_action bad = pam_action(l->control, "auth_err");

    if (strcmp(l->module, "pam_deny.so") == 0)
        return bad;
    if (strcmp(l->module, "pam_permit.so") == 0 || (int)i == winner)
        return good;
    if (pam_asks_password(l))
        return winner < 0 ? good : bad;
    return leads_on(good) || is_refusal(bad) ? good : bad;
}

/* The line after i that n modules of its stack have been passed over for; a substack is one. */
static unsigned jump(const struct pam_stack *s, unsigned i, unsigned n)
{
    unsigned depth = s->lines[i].depth, at = i + 1;

    for (; n > 0 && at < s->n && s->lines[at].depth >= depth; n--) {
        at++;
        while (at < s->n && s->lines[at].depth > depth)
            at++;
    }
    return at;
}

/* The end of the stack or substack that line i is in. */
static unsigned end_of(const struct pam_stack *s, unsigned i)
{
    unsigned depth = s->lines[i].depth, at = i + 1;

    while (at < s->n && s->lines[at].depth >= depth)
        at++;
    return depth == 0 ? s->n : at;
}

void pam_stack_walk(const struct pam_stack *s, int winner, struct pam_walk *w)
{
    unsigned i = 0;

    *w = (struct pam_walk){0};
    for (unsigned k = 0; k < s->n; k++)
        w->left_by[k] = -1;
    while (i < s->n) {
        const struct pam_line *l = &s->lines[i];
        struct pam_action a = l->substack ? (struct pam_action){PAM_OK, 0} : act(s, i, winner);
        unsigned next = a.what == PAM_DONE   ? end_of(s, i)
                        : a.what == PAM_DIE  ? end_of(s, i)
                        : a.what == PAM_JUMP ? jump(s, i, a.n)
                                             : i + 1;

        w->seen[i] = true;
        w->refused = w->refused || is_refusal(a);
        for (unsigned k = i + 1; k < next; k++)
            w->left_by[k] = (int)i;
        i = next;
    }
}
