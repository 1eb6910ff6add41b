/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol config check, show, keys: what the configuration files say, and where; what they may say.
 */

#include "cli/command.h"
#include "cli/json.h"
#include "conf/files.h"
#include "conf/ini.h"
#include "conf/keys.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol config check [OPTION...]\n"
    "       hushvol config show NAME [OPTION...]\n"
    "       hushvol config keys [OPTION...]\n"
    "\n"
    "Volumes can have names: /etc/hushvol/hushvol.conf, /etc/hushvol/conf.d/*.conf and your own\n"
    "~/.config/hushvol/hushvol.conf say which container a name means and how it is mounted. Then\n"
    "\"hushvol mount NAME\", \"hushvol key add NAME\" and so on work without more words; what stands on\n"
    "the command line wins. A path with a / in it, or of a file that is there, is never a name.\n"
    "\n"
    "  check    are the files in order? Names file, line and key of every fault\n"
    "  show     what a volume's section results in, and from which line of which file\n"
    "  keys     every key: what it takes, what it does, and in () what holds without it\n"
    "\n"
    "  --json                   one object (show), or an array of objects (keys)\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  [defaults]\n"
    "  threads = 4\n"
    "  [volume photos]\n"
    "  container = ~/photos.hv\n"
    "  mountpoint = ~/photos\n"
    "  filesystem = auto        ; what is on the disk; none (the default) is the image alone\n"
    "  keyfile = /media/stick/photos.key\n"
    "\n"
    "Keys are container, mountpoint, filesystem, login, after, owner (in /etc only) and every word\n"
    "of -o (\"hushvol mount --help\"); those without a value take yes or no. In paths, ~ and %h are\n"
    "your home, %u your name, and ${XDG_DATA_HOME} and its like the folder of that name. All of it is\n"
    "in hushvol.conf(5).\n"
    "\n"
    "Exit status: 0 in order, 1 not, 2 wrong words, 7 no volume of that name.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {0},
};

enum what { CHECK, SHOW, KEYS };

struct request {
    enum what what;
    const char *name; /* of what to show */
    bool json, verbose, help;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* The quote that a value has to stand in so that it is read as this one; '\0': none. */
static char quote_for(const char *value)
{
    if (strpbrk(value, ";#'\"") == NULL && !is_blank(value[0]) &&
        !is_blank(value[strlen(value) - 1]))
        return '\0';
    return strchr(value, '"') == NULL ? '"' : strchr(value, '\'') == NULL ? '\'' : '\0';
}

/* As it would have to be written: in quotes, and % twice in what is expanded. Where it stands is a
 * comment behind it, or before it when a line has no room for both. */
static void print_setting(const struct conf_said *s)
{
    const bool path = conf_key_is_path(s->key);
    const char quote[2] = {quote_for(s->value), '\0'};
    const bool is_long = strlen(s->file) + 2 * strlen(s->value) + 64 > CONF_LINE_MAX;

    if (is_long)
        printf("; %s:%u\n", CMD_SHOWN(s->file), s->line);
    printf("%s = %s", s->key, quote);
    for (const char *c = s->value; *c != '\0'; c++)
        fputs(path && *c == '%' ? "%%" : (char[2]){*c, '\0'}, stdout);
    fputs(quote, stdout);
    if (!is_long)
        printf("  ; %s:%u", CMD_SHOWN(s->file), s->line);
    putchar('\n');
}

static int show_json(const struct conf_volume *v)
{
    struct json_object *o = json_object_new_object(), *list = json_object_new_array();

    json_object_object_add(o, "name", cmd_json_string(v->name));
    json_object_object_add(o, "file", cmd_json_string(v->file));
    json_object_object_add(o, "line", json_object_new_uint64(v->line));
    for (unsigned i = 0; i < v->n_said; i++) {
        const struct conf_said *s = &v->said[i];
        struct json_object *one = json_object_new_object();

        json_object_object_add(one, "key", cmd_json_string(s->key));
        json_object_object_add(one, "value", cmd_json_string(s->value));
        json_object_object_add(one, "file", cmd_json_string(s->file));
        json_object_object_add(one, "line", json_object_new_uint64(s->line));
        json_object_array_add(list, one);
    }
    json_object_object_add(o, "settings", list);
    return cmd_json_print(o);
}

static int show(const struct conf *c, const struct request *q, struct report *rep)
{
    const struct conf_volume *v = conf_find(c, q->name);

    if (v == NULL)
        return report_error(rep, ENOENT, "no configuration file has a [volume %s]", q->name);
    if (q->json)
        return show_json(v);
    printf("; %s:%u\n[volume %s]\n", CMD_SHOWN(v->file), v->line, v->name);
    for (unsigned i = 0; i < v->n_said; i++)
        print_setting(&v->said[i]);
    return 0;
}

static int check(const struct conf *c)
{
    unsigned n = 0;

    while (conf_volume(c, n) != NULL)
        n++;
    printf("in order: %u volume%s\n", n, n == 1 ? "" : "s");
    return 0;
}

static int keys_json(void)
{
    struct json_object *list = json_object_new_array();
    struct conf_key k;

    for (unsigned i = 0; conf_key(&k, i); i++) {
        struct json_object *one = json_object_new_object();

        json_object_object_add(one, "key", cmd_json_string(k.name));
        json_object_object_add(one, "value", cmd_json_string(k.value));
        json_object_object_add(one, "help", cmd_json_string(k.help));
        json_object_object_add(one, "in_defaults", json_object_new_boolean(k.in_defaults));
        json_object_object_add(one, "system_only", json_object_new_boolean(k.system_only));
        json_object_array_add(list, one);
    }
    return cmd_json_print(list);
}

static int keys(const struct request *q)
{
    struct conf_key k;

    if (q->json)
        return keys_json();
    for (unsigned i = 0; conf_key(&k, i); i++) {
        char form[64];

        snprintf(form, sizeof(form), "%s = %s", k.name, k.value);
        printf("%-26s %s%s\n", form, k.help,
               k.system_only    ? "; in a [volume NAME] in /etc only"
               : !k.in_defaults ? "; in a [volume NAME] only"
                                : "");
    }
    return 0;
}

/* Which of check, show and keys the words begin with; leaves *ret when it is none. */
static bool take_what(enum what *ret, const char *word)
{
    static const char *const names[] = {[CHECK] = "check", [SHOW] = "show", [KEYS] = "keys"};

    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(word, names[i]) == 0) {
            *ret = (enum what)i;
            return true;
        }
    return false;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            q->help = true;
        else if (opt == OPT_JSON)
            q->json = true;
        else if (opt == 'v')
            q->verbose = true;
        else
            return cmd_option_error(&cmd_config, opt, argv);
    }
    if (q->help)
        return 0;
    if (optind == argc)
        return cmd_usage(&cmd_config, "check, show or keys?");
    if (!take_what(&q->what, argv[optind]))
        return cmd_usage(&cmd_config, "no \"config %s\"; there are check, show and keys",
                         argv[optind]);
    if (argc - optind != (q->what == SHOW ? 2 : 1))
        return cmd_usage(&cmd_config, q->what == SHOW ? "show takes one NAME"
                                                      : "check and keys take no argument");
    if (q->json && q->what == CHECK)
        return cmd_usage(&cmd_config, "--json is for show and keys");
    q->name = q->what == SHOW ? argv[optind + 1] : NULL;
    return 0;
}

static int config(int argc, char **argv)
{
    struct request q = {0};
    struct conf *c = NULL;
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_config);
    if (q.what == KEYS)
        return keys(&q);
    report_stderr_init(&rep, q.name != NULL ? "config show" : "config check", q.name);
    r = conf_read(&c, &rep);
    if (r == 0)
        r = q.name != NULL ? show(c, &q, &rep) : check(c);
    conf_free(c);
    return r;
}

const struct command cmd_config = {
    .name = "config",
    .summary = "the configuration files: check, show, keys",
    .usage = usage,
    .run = config,
};
