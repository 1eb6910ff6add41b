/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/mounts.h"

/* 36 35 98:0 /root /point rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 * id parent dev root point options optional... - type source super */

#include "base/auto.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Blanks, newlines and backslashes stand as \ooo. In place. */
static void decode(char *text)
{
    char *out = text;

    for (const char *in = text; *in != '\0';) {
        if (in[0] == '\\' && in[1] >= '0' && in[1] <= '3' && in[2] >= '0' && in[2] <= '7' &&
            in[3] >= '0' && in[3] <= '7') {
            *out++ = (char)((in[1] - '0') << 6 | (in[2] - '0') << 3 | (in[3] - '0'));
            in += 4;
        } else {
            *out++ = *in++;
        }
    }
    *out = '\0';
}

static bool parse_line(struct serve_mounted *m, char *line)
{
    char *fields[6], *rest = line;

    line[strcspn(line, "\n")] = '\0';
    for (unsigned i = 0; i < 6; i++) {
        fields[i] = strsep(&rest, " ");
        if (rest == NULL)
            return false;
    }
    m->id = strtoull(fields[0], NULL, 10);
    if (sscanf(fields[2], "%u:%u", &m->major, &m->minor) != 2)
        return false;
    m->point = fields[4];
    m->options = fields[5];
    do {
        m->type = strsep(&rest, " ");
    } while (rest != NULL && strcmp(m->type, "-") != 0);
    m->type = strsep(&rest, " ");
    m->source = strsep(&rest, " ");
    m->super = strsep(&rest, " ");
    if (m->super == NULL)
        return false;
    decode(m->point);
    decode(m->source);
    return true;
}

int serve_mounts_read(FILE *f, int (*fn)(const struct serve_mounted *m, void *arg), void *arg)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    int r = 0;

    while (r == 0 && getline(&line, &size, f) > 0) {
        struct serve_mounted m;

        if (parse_line(&m, line))
            r = fn(&m, arg);
    }
    return r;
}

int serve_mounts_each(int (*fn)(const struct serve_mounted *m, void *arg), void *arg)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    int r;

    if (f == NULL)
        return -errno;
    r = serve_mounts_read(f, fn, arg);
    fclose(f);
    return r;
}

struct search {
    const char *point;
    bool found;
    struct serve_mount_id id;
};

static int look(const struct serve_mounted *m, void *arg)
{
    struct search *s = arg;
    const char *user = strstr(m->super, "user_id=");

    if (strcmp(m->point, s->point) != 0)
        return 0;
    s->found = true;
    s->id = (struct serve_mount_id){
        .id = m->id,
        .major = m->major,
        .minor = m->minor,
        .fuse = strncmp(m->type, "fuse", 4) == 0 && strcmp(m->type, "fusectl") != 0,
        .ours = strcmp(m->type, "fuse.hushvol") == 0,
        .user_id = user != NULL ? strtol(user + 8, NULL, 10) : -1,
    };
    return 0; /* a later one hides this one */
}

int serve_mounts_at(struct serve_mount_id *ret, const char *point)
{
    struct search s = {.point = point};
    int r = serve_mounts_each(look, &s);

    if (r < 0)
        return r;
    if (!s.found)
        return -ENOENT;
    *ret = s.id;
    return 0;
}

struct source_search {
    const char *point, *source;
};

static int look_for_source(const struct serve_mounted *m, void *arg)
{
    const struct source_search *s = arg;

    return strcmp(m->source, s->source) == 0 &&
           (s->point == NULL || strcmp(m->point, s->point) == 0);
}

bool serve_mounts_has(const char *point, const char *source)
{
    struct source_search s = {.point = point, .source = source};

    return serve_mounts_each(look_for_source, &s) == 1;
}

bool serve_mounts_same(const struct serve_mount_id *a, const struct serve_mount_id *b)
{
    return a->id == b->id && a->major == b->major && a->minor == b->minor;
}
