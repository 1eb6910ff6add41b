/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/record.h"

/* One table row per member, for both directions, so that they cannot drift apart. */

#include <ctype.h>
#include <errno.h>
#include <json-c/json.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A flag that is missing is false, a word that is missing empty. */
enum member_kind {
    M_CHARS,
    M_WORD,
    M_STRING,
    M_OPTIONAL,
    M_U32,
    M_U64,
    M_I64,
    M_PID,
    M_BOOL,
    M_FLAG
};
static const struct member {
    const char *key;
    enum member_kind kind;
    size_t at, size;
} members[] = {
#define MEMBER(m, k)                                                                               \
    {                                                                                              \
#m, k, offsetof(struct serve_record, m), sizeof(((struct serve_record *)0)->m)             \
    }
    MEMBER(name, M_CHARS),
    MEMBER(container, M_STRING),
    MEMBER(mountpoint, M_STRING),
    MEMBER(pid, M_PID),
    MEMBER(format, M_CHARS),
    MEMBER(cipher, M_CHARS),
    MEMBER(integrity, M_WORD),
    MEMBER(sector_size, M_U32),
    MEMBER(size, M_U64),
    MEMBER(read_only, M_BOOL),
    MEMBER(suspended, M_BOOL),
    MEMBER(header, M_OPTIONAL),
    MEMBER(filesystem, M_OPTIONAL),
    MEMBER(device, M_OPTIONAL),
    MEMBER(link, M_OPTIONAL),
    MEMBER(made_mountpoint, M_BOOL),
    MEMBER(made_filesystem, M_BOOL),
    MEMBER(lost, M_FLAG),
    MEMBER(container_dev, M_U64),
    MEMBER(container_ino, M_U64),
    MEMBER(since, M_I64),
#undef MEMBER
};
#define N_MEMBERS (sizeof(members) / sizeof(members[0]))

void serve_record_done(struct serve_record *r)
{
    free(r->container);
    free(r->mountpoint);
    free(r->header);
    free(r->filesystem);
    free(r->device);
    free(r->link);
    *r = (struct serve_record){0};
}

static struct json_object *encode_member(const struct member *m, const void *at)
{
    switch (m->kind) {
    case M_CHARS:
    case M_WORD:
        return json_object_new_string(at);
    case M_STRING:
    case M_OPTIONAL:
        return json_object_new_string(*(char *const *)at);
    case M_U32:
        return json_object_new_int64(*(const uint32_t *)at);
    case M_U64:
        return json_object_new_uint64(*(const uint64_t *)at);
    case M_I64:
        return json_object_new_int64(*(const int64_t *)at);
    case M_PID:
        return json_object_new_int64(*(const pid_t *)at);
    case M_BOOL:
    case M_FLAG:
        return json_object_new_boolean(*(const bool *)at);
    }
    return NULL;
}

struct json_object *serve_record_encode(const struct serve_record *r)
{
    struct json_object *o = json_object_new_object();

    for (size_t i = 0; o != NULL && i < N_MEMBERS; i++) {
        const struct member *m = &members[i];
        const char *at = (const char *)r + m->at;

        if ((m->kind == M_OPTIONAL && *(char *const *)at == NULL) ||
            (m->kind == M_WORD && at[0] == '\0'))
            continue;
        json_object_object_add(o, m->key, encode_member(m, at));
    }
    return o;
}

static int decode_text(const struct member *m, char *at, struct json_object *v)
{
    const char *text = json_object_get_string(v);

    if (json_object_get_type(v) != json_type_string)
        return -EBADMSG;
    if (m->kind == M_CHARS || m->kind == M_WORD) {
        if (strlen(text) >= m->size)
            return -EBADMSG;
        strcpy(at, text);
        return 0;
    }
    if (text[0] != '/')
        return -EBADMSG;
    *(char **)at = strdup(text);
    return *(char **)at != NULL ? 0 : -ENOMEM;
}

static int decode_member(const struct member *m, char *at, struct json_object *v)
{
    if (m->kind <= M_OPTIONAL)
        return decode_text(m, at, v);
    if (m->kind == M_BOOL || m->kind == M_FLAG) {
        if (json_object_get_type(v) != json_type_boolean)
            return -EBADMSG;
        *(bool *)at = json_object_get_boolean(v);
        return 0;
    }
    if (json_object_get_type(v) != json_type_int)
        return -EBADMSG;
    if (m->kind == M_U32)
        *(uint32_t *)at = (uint32_t)json_object_get_int64(v);
    else if (m->kind == M_U64)
        *(uint64_t *)at = json_object_get_uint64(v);
    else if (m->kind == M_I64)
        *(int64_t *)at = json_object_get_int64(v);
    else
        *(pid_t *)at = json_object_get_int(v);
    return 0;
}

int serve_record_decode(struct serve_record *ret, struct json_object *o)
{
    AUTO_RECORD struct serve_record rec = {0};
    int r = 0;

    for (size_t i = 0; r == 0 && i < N_MEMBERS; i++) {
        const struct member *m = &members[i];
        struct json_object *v;

        if (json_object_object_get_ex(o, m->key, &v))
            r = decode_member(m, (char *)&rec + m->at, v);
        else if (m->kind != M_OPTIONAL && m->kind != M_FLAG && m->kind != M_WORD)
            r = -EBADMSG;
    }
    if (r == 0 && (!serve_name_valid(rec.name) || rec.pid <= 0))
        r = -EBADMSG;
    if (r < 0)
        return r;
    *ret = rec;
    rec = (struct serve_record){0};
    return 0;
}

static bool name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

bool serve_name_valid(const char *name)
{
    size_t len = 0;

    while (name_char(name[len]))
        len++;
    return name[len] == '\0' && len > 0 && len <= SERVE_NAME_MAX && name[0] != '.' &&
           name[0] != '-';
}

/* Length of the last part without ".suffix"; a dot at its start is no suffix. */
static size_t stem(const char *base)
{
    const char *dot = strrchr(base, '.');

    return dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base);
}

void serve_name_make(char out[SERVE_NAME_MAX + 1], const char *container, unsigned n)
{
    const char *slash = strrchr(container, '/');
    const char *base = slash != NULL ? slash + 1 : container;
    size_t len = stem(base), room = SERVE_NAME_MAX;
    char tail[16] = "";

    if (n > 1)
        room -= (size_t)snprintf(tail, sizeof(tail), "-%u", n);
    if (len == 0) {
        base = "volume";
        len = strlen(base);
    }
    if (len > room)
        len = room;
    for (size_t i = 0; i < len; i++) {
        char c = (char)tolower((unsigned char)base[i]);

        out[i] = name_char(c) ? c : '-';
    }
    if (out[0] == '.' || out[0] == '-')
        out[0] = '_';
    strcpy(out + len, tail);
}
