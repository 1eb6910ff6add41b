/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/options.h"

/* One row per word: its help, the function that understands its value and fills a member. A new
 * word is a row. Words that exclude each other share a choice: within one list a second one of a
 * choice is a contradiction, while a later list (the command line after a file) may decide
 * differently. */

#include "base/auto.h"
#include "base/size.h"
#include "fuse/record.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 256
#define SLOT_MAX 255
#define READAHEAD_MIN (512 * 1024)
#define READAHEAD_MAX (64 * 1024 * 1024)

struct conf_text {
    struct conf_text *next;
    char text[];
};

/* Words of one of these exclude each other. */
enum choice { ALONE, WHO, DISCARD, PASSPHRASE, CHOICES };

struct setting {
    struct conf_mount *m;
    const struct conf_word_help *word;
    const char *value; /* NULL when the word takes none; lives as long as m */
    struct report *rep;
};

struct word {
    struct conf_word_help help;
    int (*set)(const struct setting *s);
    enum choice choice;
};

static int refuse(const struct setting *s, const char *takes)
{
    return report_error(s->rep, EINVAL, "option %s takes %s, not \"%s\"", s->word->name, takes,
                        s->value);
}

/* Digits only: strtoul alone takes blanks and signs. */
static int parse_number(unsigned long *ret, const char *text, int base, unsigned long max)
{
    unsigned long v;
    char *end;

    if (text[0] < '0' || text[0] > '9')
        return -EINVAL;
    errno = 0;
    v = strtoul(text, &end, base);
    if (*end != '\0' || errno != 0 || v > max)
        return -EINVAL;
    *ret = v;
    return 0;
}

static int set_ro(const struct setting *s)
{
    s->m->vol.read_only = true;
    return 0;
}

static int set_allow_root(const struct setting *s)
{
    s->m->serve.allow_root = true;
    s->m->serve.allow_other = false;
    return 0;
}

static int set_allow_other(const struct setting *s)
{
    s->m->serve.allow_other = true;
    s->m->serve.allow_root = false;
    return 0;
}

static int set_uid(const struct setting *s)
{
    const struct passwd *user;
    unsigned long v;

    if (parse_number(&v, s->value, 10, UINT_MAX - 1) < 0) {
        user = getpwnam(s->value);
        if (user == NULL)
            return refuse(s, "the number or name of a user");
        v = user->pw_uid;
    }
    s->m->serve.uid = (uid_t)v;
    return 0;
}

static int set_gid(const struct setting *s)
{
    const struct group *group;
    unsigned long v;

    if (parse_number(&v, s->value, 10, UINT_MAX - 1) < 0) {
        group = getgrnam(s->value);
        if (group == NULL)
            return refuse(s, "the number or name of a group");
        v = group->gr_gid;
    }
    s->m->serve.gid = (gid_t)v;
    return 0;
}

static int set_mode(const struct setting *s)
{
    unsigned long v;

    if (parse_number(&v, s->value, 8, 0777) < 0)
        return refuse(s, "octal permissions like 0640");
    s->m->serve.mode = (mode_t)v;
    return 0;
}

static int add_keyfile(const struct setting *s)
{
    struct credential_source *c = &s->m->vol.credential;

    if (c->n_keyfiles == CREDENTIAL_KEYFILES)
        return report_error(s->rep, EINVAL, "option keyfile: more than %u key files",
                            CREDENTIAL_KEYFILES);
    c->keyfiles[c->n_keyfiles++] = s->value;
    return 0;
}

static int set_keyfile_timeout(const struct setting *s)
{
    unsigned long v;

    if (parse_number(&v, s->value, 10, CREDENTIAL_TIMEOUT_MAX) < 0)
        return refuse(s, "seconds, up to 86400");
    s->m->vol.credential.keyfile_timeout = (unsigned)v;
    return 0;
}

static int set_passphrase_file(const struct setting *s)
{
    s->m->vol.credential.passphrase_file = s->value;
    s->m->vol.credential.passphrase_command = NULL;
    s->m->vol.credential.ask = false;
    return 0;
}

static int set_passphrase_command(const struct setting *s)
{
    s->m->vol.credential.passphrase_command = s->value;
    s->m->vol.credential.passphrase_file = NULL;
    s->m->vol.credential.ask = false;
    return 0;
}

static int set_ask_passphrase(const struct setting *s)
{
    s->m->vol.credential.passphrase_command = NULL;
    s->m->vol.credential.passphrase_file = NULL;
    s->m->vol.credential.ask = true;
    return 0;
}

static int set_header(const struct setting *s)
{
    s->m->vol.header = s->value;
    return 0;
}

static int set_threads(const struct setting *s)
{
    unsigned long v;

    if (parse_number(&v, s->value, 10, THREADS_MAX) < 0 || v == 0)
        return refuse(s, "a number from 1 to 256");
    s->m->vol.threads = (unsigned)v;
    return 0;
}

static int set_readahead(const struct setting *s)
{
    uint64_t v = 0;

    s->m->vol.no_readahead = strcmp(s->value, "off") == 0;
    if (!s->m->vol.no_readahead &&
        (size_parse(&v, s->value) < 0 || v < READAHEAD_MIN || v > READAHEAD_MAX))
        return refuse(s, "off or a size from 512K to 64M");
    s->m->vol.readahead = v;
    return 0;
}

static int set_slot(const struct setting *s)
{
    unsigned long v;

    if (parse_number(&v, s->value, 10, SLOT_MAX) < 0)
        return refuse(s, "the number of a key slot");
    s->m->vol.slot = (int)v;
    return 0;
}

static int set_big_endian(const struct setting *s)
{
    s->m->vol.big_endian = true;
    return 0;
}

static int set_cache(const struct setting *s)
{
    s->m->serve.cache = true;
    return 0;
}

static int set_direct(const struct setting *s)
{
    static const char *const values[] = {
        [BLK_DIRECT_AUTO] = "auto", [BLK_DIRECT_ON] = "on", [BLK_DIRECT_OFF] = "off"};

    for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++)
        if (strcmp(s->value, values[i]) == 0) {
            s->m->vol.direct = (enum blk_direct)i;
            return 0;
        }
    return refuse(s, "auto, on or off");
}

static int set_discard(const struct setting *s)
{
    s->m->vol.discard = VOL_YES;
    return 0;
}

static int set_nodiscard(const struct setting *s)
{
    s->m->vol.discard = VOL_NO;
    return 0;
}

static int set_enospc(const struct setting *s)
{
    bool wait = strcmp(s->value, "wait") == 0;

    if (!wait && strcmp(s->value, "error") != 0)
        return refuse(s, "wait or error");
    s->m->vol.enospc_wait = wait ? VOL_YES : VOL_NO;
    return 0;
}

static int set_name(const struct setting *s)
{
    if (!serve_name_valid(s->value))
        return refuse(s, "up to 64 of a-z 0-9 . _ - and begins with a letter, digit or _");
    s->m->serve.name = s->value;
    return 0;
}

/* clang-format off */
static const struct word words[] = {
    {{"ro", NULL, "read only"}, set_ro, ALONE},
    {{"allow_root", NULL, "root may use the image too (a loop device needs it)"},
     set_allow_root, WHO},
    {{"allow_other", NULL, "all users may, as far as uid, gid and mode let them"},
     set_allow_other, WHO},
    {{"uid", "USER", "owner of the image (the caller)"}, set_uid, ALONE},
    {{"gid", "GROUP", "group of the image (the caller's)"}, set_gid, ALONE},
    {{"mode", "OCTAL", "permissions of the image (0600, read only 0400)"}, set_mode, ALONE},
    {{"keyfile", "FILE", "a key file; may be repeated"}, add_keyfile, ALONE},
    {{"keyfile-timeout", "SECONDS", "wait so long for key files that are not there yet (0)"},
     set_keyfile_timeout, ALONE},
    {{"passphrase-file", "FILE", "read the passphrase from FILE; - is standard input"},
     set_passphrase_file, PASSPHRASE},
    {{"passphrase-command", "CMD", "read the passphrase from what CMD prints"},
     set_passphrase_command, PASSPHRASE},
    {{"ask-passphrase", NULL, "ask for a passphrase although there are key files"},
     set_ask_passphrase, PASSPHRASE},
    {{"header", "FILE", "the header is in FILE, and only the data in the container"},
     set_header, ALONE},
    {{"slot", "N", "try this key slot only"}, set_slot, ALONE},
    {{"threads", "N", "at most N threads cipher at once, the caller included (all CPUs)"},
     set_threads, ALONE},
    {{"readahead", "SIZE|off", "what is prepared for sequential readers at most (4M)"},
     set_readahead, ALONE},
    {{"cache", NULL, "let the kernel cache pages, for readers that mmap the image"},
     set_cache, ALONE},
    {{"direct", "auto|on|off", "bypass the page cache to the container (auto: on devices)"},
     set_direct, ALONE},
    {{"discard", NULL, "discards give space back to the host (on for sparse containers)"},
     set_discard, DISCARD},
    {{"nodiscard", NULL, "they do not"}, set_nodiscard, DISCARD},
    {{"enospc", "wait|error", "what a write does when the host is full (wait when sparse)"},
     set_enospc, ALONE},
    {{"big-endian", NULL, "a GELI container from a big-endian machine (sparc64, powerpc)"},
     set_big_endian, ALONE},
    {{"name", "NAME", "of the volume, for list and umount (from the container's name)"},
     set_name, ALONE},
};
/* clang-format on */
#define N_WORDS (sizeof(words) / sizeof(words[0]))

/* nosuid and nodev are always on; noexec comes with "user", and a disk image is not a program. */
static const char *const ignored[] = {"defaults", "auto",   "noauto", "nofail", "_netdev",
                                      "user",     "nouser", "users",  "owner",  "group",
                                      "rw",       "nosuid", "nodev",  "noexec"};

const struct conf_word_help *conf_options_help(unsigned i)
{
    return i < N_WORDS ? &words[i].help : NULL;
}

static bool is_ignored(const char *name)
{
    if (strncmp(name, "x-", 2) == 0)
        return true;
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        if (strcmp(name, ignored[i]) == 0)
            return true;
    return false;
}

static const struct word *find_word(const char *name)
{
    for (size_t i = 0; i < N_WORDS; i++)
        if (strcmp(name, words[i].help.name) == 0)
            return &words[i];
    return NULL;
}

bool conf_options_knows(const char *word)
{
    AUTO_FREE char *name = strndup(word, strcspn(word, "="));

    return name != NULL && (is_ignored(name) || find_word(name) != NULL);
}

bool conf_options_exclude(const char *a, const char *b)
{
    const struct word *one = find_word(a), *other = find_word(b);

    return one != NULL && other != NULL && one != other && one->choice != ALONE &&
           one->choice == other->choice;
}

static int unknown_word(const char *name, struct report *rep)
{
    char allowed[REPORT_LINE] = "";
    size_t n = 0;

    for (size_t i = 0; i < N_WORDS && n < sizeof(allowed); i++)
        n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s%s", i > 0 ? ", " : "",
                              words[i].help.name, words[i].help.value != NULL ? "=" : "");
    return report_error(rep, EINVAL, "unknown option \"%.100s\" (there are: %s)", name, allowed);
}

/* seen: the word of each choice that this list has made. */
static int apply_word(struct conf_mount *m, char *text, const struct word *seen[CHOICES],
                      struct report *rep)
{
    char *value = strchr(text, '=');
    const struct word *w;

    if (value != NULL)
        *value++ = '\0';
    if (is_ignored(text))
        return 0;
    w = find_word(text);
    if (w == NULL)
        return unknown_word(text, rep);
    if (w->help.value == NULL && value != NULL)
        return report_error(rep, EINVAL, "option %s takes no value", text);
    if (w->help.value != NULL && (value == NULL || value[0] == '\0'))
        return report_error(rep, EINVAL, "option %s needs a value: %s=%s", text, text,
                            w->help.value);
    if (w->choice != ALONE) {
        if (seen[w->choice] != NULL && seen[w->choice] != w)
            return report_error(rep, EINVAL, "options %s and %s exclude each other",
                                seen[w->choice]->help.name, text);
        seen[w->choice] = w;
    }
    return w->set(&(struct setting){.m = m, .word = &w->help, .value = value, .rep = rep});
}

/* Cut the next word off *list in place: "\," becomes a comma, a lone one ends the word. */
static char *next_word(char **list)
{
    char *word = *list, *out = word, *in = word;

    while (*in != '\0' && *in != ',') {
        if (in[0] == '\\' && in[1] == ',')
            in++;
        *out++ = *in++;
    }
    *list = *in == ',' ? in + 1 : in;
    *out = '\0';
    return word;
}

int conf_options_apply(struct conf_mount *m, const char *list, struct report *rep)
{
    const struct word *seen[CHOICES] = {NULL};
    size_t size = strlen(list) + 1;
    struct conf_text *copy = malloc(sizeof(*copy) + size);
    char *rest;

    if (copy == NULL)
        return report_errno(rep, ENOMEM, "cannot read the options");
    rest = memcpy(copy->text, list, size);
    copy->next = m->texts;
    m->texts = copy;
    while (*rest != '\0') {
        char *word = next_word(&rest);
        int r = word[0] != '\0' ? apply_word(m, word, seen, rep) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

void conf_mount_init(struct conf_mount *m)
{
    *m = (struct conf_mount){
        .vol.slot = KEY_SLOT_ANY,
        .serve = {.uid = (uid_t)-1, .gid = (gid_t)-1, .mode = (mode_t)-1},
    };
}

void conf_mount_done(struct conf_mount *m)
{
    while (m->texts != NULL) {
        struct conf_text *t = m->texts;

        m->texts = t->next;
        free(t);
    }
    conf_mount_init(m);
}
