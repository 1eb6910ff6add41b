/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header dump. The format names the fields; here they become lines or JSON. Text from a
 * header is bytes that somebody else may have chosen: escaped for the terminal, and made UTF-8 for
 * JSON. */

#include "cli/json.h"
#include "cli/reach.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header dump CONTAINER [--json] [--header FILE]\n"
    "\n"
    "Prints every field of both copies of the header and of its key slots, as they stand there. Needs\n"
    "no key, and the container may be mounted. What a passphrase could be guessed with is left out,\n"
    "so a dump can be shown to others.\n"
    "\n"
    "  --json                   one object; salts and the like are hexadecimal\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol header dump photos.hv\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 4 not a container or damaged, 6 not possible in\n"
    "this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, HEADER_OPT_JSON},
    CMD_HEADER_OPTION,
    {0},
};

#define DEPTH 4
#define HEX_MAX 129

struct dump {
    struct key_dump to;
    struct json_object *group[DEPTH]; /* JSON: the one to add to is the last */
    unsigned depth;
};

static void hex(char out[HEX_MAX], const unsigned char *bytes, size_t len)
{
    out[0] = '\0';
    for (size_t i = 0; i < len && 2 * i + 2 < HEX_MAX; i++)
        snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* --- lines --- */

static void line(struct key_dump *to, const char *name, const char *value)
{
    unsigned depth = container_of(to, struct dump, to)->depth;

    printf("%*s%-*s %s\n", (int)(2 * depth), "", (int)(20 - 2 * depth), name, value);
}

static void line_text(struct key_dump *to, const char *name, const char *value)
{
    char text[REPORT_LINE];

    report_escape(text, sizeof(text), value);
    line(to, name, text);
}

static void line_number(struct key_dump *to, const char *name, uint64_t value)
{
    char text[32 + CMD_TIME_TEXT], when[CMD_TIME_TEXT];

    snprintf(text, sizeof(text), "%" PRIu64, value);
    if (strcmp(name, "created") == 0)
        snprintf(text, sizeof(text), "%" PRIu64 " (%s)", value, cmd_time_text(when, value));
    line(to, name, text);
}

static void line_flag(struct key_dump *to, const char *name, bool value)
{
    line(to, name, value ? "yes" : "no");
}

static void line_bytes(struct key_dump *to, const char *name, const unsigned char *bytes,
                       size_t len)
{
    char text[HEX_MAX];

    hex(text, bytes, len);
    line(to, name, text);
}

static void line_begin(struct key_dump *to, const char *name)
{
    line(to, name, "");
    container_of(to, struct dump, to)->depth++;
}

static void line_end(struct key_dump *to)
{
    container_of(to, struct dump, to)->depth--;
}

/* --- JSON --- */

static void json_add(struct key_dump *to, const char *name, struct json_object *value)
{
    struct dump *d = container_of(to, struct dump, to);

    json_object_object_add(d->group[d->depth], name, value);
}

static void json_text(struct key_dump *to, const char *name, const char *value)
{
    json_add(to, name, cmd_json_string(value));
}

static void json_number(struct key_dump *to, const char *name, uint64_t value)
{
    json_add(to, name, json_object_new_uint64(value));
}

static void json_flag(struct key_dump *to, const char *name, bool value)
{
    json_add(to, name, json_object_new_boolean(value));
}

static void json_bytes(struct key_dump *to, const char *name, const unsigned char *bytes,
                       size_t len)
{
    char text[HEX_MAX];

    hex(text, bytes, len);
    json_add(to, name, json_object_new_string(text));
}

static void json_begin(struct key_dump *to, const char *name)
{
    struct dump *d = container_of(to, struct dump, to);
    struct json_object *o = json_object_new_object();

    assert(d->depth + 1 < DEPTH);
    json_add(to, name, o);
    d->group[++d->depth] = o;
}

static void json_end(struct key_dump *to)
{
    container_of(to, struct dump, to)->depth--;
}

static const struct key_dump as_lines = {.text = line_text,
                                         .number = line_number,
                                         .flag = line_flag,
                                         .bytes = line_bytes,
                                         .begin = line_begin,
                                         .end = line_end};
static const struct key_dump as_json = {.text = json_text,
                                        .number = json_number,
                                        .flag = json_flag,
                                        .bytes = json_bytes,
                                        .begin = json_begin,
                                        .end = json_end};

static int print(const struct key_container *c, const struct header_words *w)
{
    struct dump d = {.to = w->json ? as_json : as_lines};

    if (w->json)
        d.group[0] = json_object_new_object();
    d.to.text(&d.to, "container", w->container);
    if (w->header != NULL)
        d.to.text(&d.to, "header", w->header);
    d.to.text(&d.to, "format", c->format->name);
    c->format->dump(c->store, &d.to);
    return w->json ? cmd_json_print(d.group[0]) : 0;
}

static int header_dump(int argc, char **argv)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    struct header_words w;
    struct report rep;
    int r = header_take_words(&w, &cmd_header_dump, options, NULL, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_header_dump);
    report_stderr_init(&rep, "header dump", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_look(&c, w.container, w.header, &rep);
    if (r < 0)
        return r;
    if (c.format->dump == NULL)
        return report_error(&rep, EOPNOTSUPP,
                            "a dump of the header is not possible in the %s format",
                            c.format->name);
    return print(&c, &w);
}

const struct command cmd_header_dump = {
    .name = "header dump",
    .summary = "every field of the header",
    .usage = usage,
    .run = header_dump,
};
