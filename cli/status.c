/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol status: everything that the process which serves a volume tells about it. */

#include "base/size.h"
#include "cli/command.h"
#include "cli/find.h"
#include "cli/json.h"
#include "cli/mounts_json.h"
#include "fuse/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol status DIR|NAME|CONTAINER [--json]\n"
    "\n"
    "Everything about one mounted volume: what it is, how it is served, and counters.\n"
    "\n"
    "  --json                   one object\n"
    "\n"
    "Example:\n"
    "  hushvol status photos\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 7 no such mount.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {0},
};

/* A label is bytes, as paths are. */
static struct json_object *as_utf8(struct json_object *value)
{
    if (json_object_get_type(value) == json_type_string)
        return cmd_json_string(json_object_get_string(value));
    return json_object_get(value);
}

/* What the daemon answered is added to what the record says. */
static int ask(struct json_object *o, const struct serve_found *f, struct report *rep)
{
    struct json_object *answer;
    int r = serve_control_ask(&answer, f, "status", NULL, rep);

    if (r < 0)
        return r;
    json_object_object_foreach(answer, key, value)
    {
        if (strcmp(key, "ok") != 0 && !json_object_object_get_ex(o, key, NULL))
            json_object_object_add(o, key, as_utf8(value));
    }
    json_object_object_get_ex(answer, "suspended", &value);
    json_object_object_add(o, "suspended", json_object_get(value));
    json_object_put(answer);
    return 0;
}

/* For those members whose number tells a person nothing, the same in words. */
static void explain(char *out, size_t size, const char *name, struct json_object *value)
{
    char words[SIZE_TEXT > CMD_TIME_TEXT ? SIZE_TEXT : CMD_TIME_TEXT];
    int64_t n = json_object_get_int64(value);

    if (strcmp(name, "size") == 0)
        snprintf(out, size, " (%s)", size_format(words, (uint64_t)n));
    else if (strcmp(name, "since") == 0)
        snprintf(out, size, " (%s)", cmd_time_text(words, (uint64_t)n));
}

/* Members of members as "stats.read.bytes". */
static void print_text(const char *prefix, struct json_object *o)
{
    json_object_object_foreach(o, key, value)
    {
        char name[128], shown[REPORT_LINE], text[REPORT_LINE], more[64] = "";

        snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] != '\0' ? "." : "", key);
        if (json_object_get_type(value) == json_type_object) {
            print_text(name, value);
            continue;
        }
        report_escape(shown, sizeof(shown), name);
        report_escape(text, sizeof(text), value != NULL ? json_object_get_string(value) : "");
        explain(more, sizeof(more), name, value);
        printf("%-28s %s%s\n", shown, text, more);
    }
}

static int show(const char *word, bool json)
{
    AUTO_FOUND struct serve_found f = {0};
    struct json_object *o;
    struct report rep;
    int r;

    report_stderr_init(&rep, "status", word);
    r = cmd_find_mounted(&f, word, &rep);
    if (r < 0)
        return r;
    o = cmd_mount_json(&f);
    r = f.alive ? ask(o, &f, &rep) : 0;
    if (r < 0) {
        json_object_put(o);
        return r;
    }
    if (json)
        return cmd_json_print(o);
    print_text("", o);
    json_object_put(o);
    return 0;
}

static int run(int argc, char **argv)
{
    bool json = false;
    int opt;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            return cmd_help(&cmd_status);
        if (opt == OPT_JSON)
            json = true;
        else if (opt != 'v')
            return cmd_option_error(&cmd_status, opt, argv);
    }
    if (argc - optind != 1)
        return cmd_usage(&cmd_status, "takes one DIR, NAME or CONTAINER");
    return show(argv[optind], json);
}

const struct command cmd_status = {
    .name = "status",
    .summary = "everything about one mounted volume",
    .usage = usage,
    .run = run,
};
