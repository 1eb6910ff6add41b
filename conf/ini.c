/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/ini.h"

/* iniparser reads the values. It folds case, merges what stands there twice, cuts what it does not
 * understand and knows no lines, all in silence; so a pass over the same text comes first, which
 * finds sections, keys and their lines, and refuses whatever iniparser would take in another way
 * than it looks. Only a text without faults is given to iniparser. */

#include "base/auto.h"
#include "fuse/record.h"

#include <errno.h>
#include <iniparser/iniparser.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define VOLUME "volume "

struct reader {
    struct conf_ini *ini;
    const char *file;
    const char *volume; /* of the section that we are in; NULL before the first */
    unsigned line;
    bool skip; /* in a section whose own line was wrong */
    bool full; /* of settings: what follows is not looked at */
    struct report *rep;
};

void conf_ini_done(struct conf_ini *ini)
{
    for (unsigned i = 0; i < ini->n; i++) {
        free(ini->settings[i].volume);
        free(ini->settings[i].key);
        free(ini->settings[i].value);
    }
    free(ini->settings);
    *ini = (struct conf_ini){0};
}

static int wrong(const struct reader *r, const char *words)
{
    return report_error(r->rep, EUCLEAN, "%s:%u: %s", r->file, r->line, words);
}

static const struct conf_setting *find(const struct conf_ini *ini, const char *volume,
                                       const char *key)
{
    for (unsigned i = 0; i < ini->n; i++)
        if (strcmp(ini->settings[i].volume, volume) == 0 && strcmp(ini->settings[i].key, key) == 0)
            return &ini->settings[i];
    return NULL;
}

static int add(struct reader *r, const char *volume, const char *key)
{
    struct conf_ini *ini = r->ini;
    const struct conf_setting *twin = find(ini, volume, key);
    struct conf_setting *s, *grown;

    if (twin != NULL)
        return report_error(r->rep, EUCLEAN, "%s:%u: %s is in line %u already", r->file, r->line,
                            key[0] != '\0' ? key : "this section", twin->line);
    if (ini->n == CONF_SETTINGS_MAX) {
        r->full = true;
        return wrong(r, "more than 1024 settings in one file");
    }
    grown = realloc(ini->settings, (ini->n + 1) * sizeof(*grown));
    if (grown == NULL)
        return report_errno(r->rep, ENOMEM, "%s", r->file);
    ini->settings = grown;
    s = &grown[ini->n++];
    *s = (struct conf_setting){.volume = strdup(volume), .key = strdup(key), .line = r->line};
    return s->volume != NULL && s->key != NULL ? 0 : report_errno(r->rep, ENOMEM, "%s", r->file);
}

static char *trim(char *text)
{
    size_t n;

    text += strspn(text, " \t\r");
    n = strlen(text);
    while (n > 0 && strchr(" \t\r", text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    return text;
}

static int take_section(struct reader *r, char *line)
{
    size_t len = strlen(line);
    const char *volume = "";
    int status;

    r->volume = "";
    r->skip = true;
    if (line[len - 1] != ']')
        return wrong(r, "a section ends in ] and has a line for itself");
    line[len - 1] = '\0';
    line++;
    if (strncmp(line, VOLUME, strlen(VOLUME)) == 0) {
        volume = line + strlen(VOLUME);
        if (!serve_name_valid(volume))
            return wrong(r, "the name of a volume is up to 64 of a-z 0-9 . _ - and begins with a "
                            "letter, digit or _");
    } else if (strcmp(line, "defaults") != 0) {
        return wrong(r, "there are the sections [defaults] and [volume NAME]");
    }
    status = add(r, volume, "");
    if (status == 0) {
        r->volume = r->ini->settings[r->ini->n - 1].volume;
        r->skip = false;
    }
    return status;
}

/* A quote that is opened is closed, and only a comment follows. */
static bool is_quoted_well(const char *value)
{
    const char *end;

    if (value[0] != '"' && value[0] != '\'')
        return true;
    end = strchr(value + 1, value[0]);
    if (end == NULL || end == value + 1)
        return false;
    end += 1 + strspn(end + 1, " \t\r");
    return *end == '\0' || *end == '#' || *end == ';';
}

/* "/srv/disk#2" would become "/srv/disk", another container, in silence. */
static bool is_cut_off(const char *value)
{
    const char *mark = strpbrk(value, ";#");

    return value[0] != '"' && value[0] != '\'' && mark != NULL && mark > value &&
           strchr(" \t", mark[-1]) == NULL;
}

static int take_setting(struct reader *r, char *line)
{
    char *value = strchr(line, '=');
    const char *key;

    if (value == NULL)
        return wrong(r, "a line is KEY = VALUE, a [section] or a # comment");
    *value++ = '\0';
    key = trim(line);
    value = trim(value);
    if (key[0] == '\0' || key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_-")] != '\0')
        return wrong(r, "a key is of a-z 0-9 _ -");
    if (r->volume == NULL)
        return wrong(r, "a setting before the first [section]");
    if (r->skip)
        return 0;
    if (value[0] == '\0' || value[0] == '#' || value[0] == ';')
        return report_error(r->rep, EUCLEAN, "%s:%u: %s has no value", r->file, r->line, key);
    if (is_cut_off(value))
        return report_error(r->rep, EUCLEAN,
                            "%s:%u: %s: a value with %c in it needs quotes, a comment a blank "
                            "before it",
                            r->file, r->line, key, *strpbrk(value, ";#"));
    if (!is_quoted_well(value))
        return report_error(r->rep, EUCLEAN,
                            "%s:%u: %s: something between quotes, and behind them only a comment",
                            r->file, r->line, key);
    return add(r, r->volume, key);
}

static int take_line(struct reader *r, const char *text, size_t len)
{
    char copy[CONF_LINE_MAX + 1];
    char *line;

    if (len > CONF_LINE_MAX)
        return wrong(r, "a line has up to 1000 bytes");
    if (len > 0 && text[len - 1] == '\r')
        len--;
    for (size_t i = 0; i < len; i++)
        if (((unsigned char)text[i] < ' ' && text[i] != '\t') || text[i] == 0x7f)
            return wrong(r, "a control character");
    memcpy(copy, text, len);
    copy[len] = '\0';
    line = trim(copy);
    if (line[0] != '\0' && line[strlen(line) - 1] == '\\')
        return wrong(r, "a line does not go on in the next: no \\ at its end");
    if (line[0] == '\0' || line[0] == '#' || line[0] == ';')
        return 0;
    return line[0] == '[' ? take_section(r, line) : take_setting(r, line);
}

/* Goes on after a fault, so that one run shows all of them. */
static int take_lines(struct reader *r, const char *text, size_t len)
{
    const char *end = text + len;
    int status = 0;

    while (text < end && status != -ENOMEM && !r->full) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *stop = newline != NULL ? newline : end;
        int one;

        r->line++;
        one = take_line(r, text, (size_t)(stop - text));
        if (one < 0)
            status = one;
        text = stop + 1;
    }
    return status;
}

static int be_silent(const char *format, ...)
{
    (void)format;
    return 0;
}

/* This version of iniparser reads named files only. */
static dictionary *load(const char *text, size_t len)
{
    AUTO_FD int fd = memfd_create("config", MFD_CLOEXEC);
    char path[64];

    if (fd < 0)
        return NULL;
    for (size_t done = 0; done < len;) {
        ssize_t n = write(fd, text + done, len - done);

        if (n <= 0)
            return NULL;
        done += (size_t)n;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    iniparser_set_error_callback(be_silent);
    return iniparser_load(path);
}

static int take_values(const struct reader *r, const dictionary *d)
{
    for (unsigned i = 0; i < r->ini->n; i++) {
        struct conf_setting *s = &r->ini->settings[i];
        const char *value = "";
        char name[CONF_LINE_MAX * 2];

        snprintf(name, sizeof(name), "%s%s:%s", s->volume[0] != '\0' ? VOLUME : "defaults",
                 s->volume, s->key);
        if (s->key[0] != '\0')
            value = iniparser_getstring(d, name, NULL);
        if (value == NULL || (s->key[0] != '\0' && value[0] == '\0'))
            return report_error(r->rep, EUCLEAN, "%s:%u: %s has no value", r->file, s->line,
                                s->key);
        s->value = strdup(value);
        if (s->value == NULL)
            return report_errno(r->rep, ENOMEM, "%s", r->file);
    }
    return 0;
}

int conf_ini_read(struct conf_ini *ret, const char *file, const char *text, size_t len,
                  struct report *rep)
{
    AUTO_INI struct conf_ini ini = {0};
    struct reader r = {.ini = &ini, .file = file, .rep = rep};
    dictionary *d;
    int status;

    if (len > CONF_TEXT_MAX)
        return report_error(rep, EUCLEAN, "%s: more than 1 MiB", file);
    status = take_lines(&r, text, len);
    if (status < 0)
        return status;
    if (ini.n > 0) {
        d = load(text, len);
        if (d == NULL)
            return report_error(rep, EIO, "%s: cannot be read as an INI file (is /proc there?)",
                                file);
        status = take_values(&r, d);
        iniparser_freedict(d);
    }
    if (status < 0)
        return status;
    *ret = ini;
    ini = (struct conf_ini){0};
    return 0;
}
