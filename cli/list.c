/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol list: what the runtime folders say is mounted. */

#include "base/size.h"
#include "cli/command.h"
#include "cli/mounts_json.h"
#include "fuse/registry.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol list [--json]\n"
    "\n"
    "Lists your mounted volumes; for root, everybody's. A line is the name, the size of the disk,\n"
    "what can be used, where, and the container. What can be used:\n"
    "\n"
    "  disk       the file system (\"hushvol attach\")\n"
    "  image      the disk as one file (\"hushvol mount\")\n"
    "  suspended  nothing until \"hushvol resume NAME\"\n"
    "  dead       nothing, its process died: \"hushvol umount NAME\" cleans up what it left\n"
    "\n"
    "  --json                   an array of objects\n"
    "\n"
    "Example:\n"
    "  hushvol list\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {0},
};

static void print_text(const struct serve_found *f)
{
    const struct serve_record *rec = &f->record;
    const char *point = rec->filesystem != NULL ? rec->filesystem : rec->mountpoint;
    char size[SIZE_TEXT], where[REPORT_LINE], container[REPORT_LINE], header[REPORT_LINE] = "";

    report_escape(where, sizeof(where), point);
    report_escape(container, sizeof(container), rec->container);
    if (rec->header != NULL)
        report_escape(header, sizeof(header), rec->header);
    printf("%-16s %10s  %-9s %s  %s%s%s\n", rec->name, size_format(size, rec->size),
           !f->alive                 ? "dead"
           : rec->suspended          ? "suspended"
           : rec->filesystem != NULL ? "disk"
                                     : "image",
           where, container, rec->header != NULL ? "  header " : "", header);
}

static int print_all(bool json)
{
    struct json_object *array = json ? json_object_new_array() : NULL;
    struct serve_found *list;
    struct report rep;
    unsigned n;
    int r = serve_registry_list(&list, &n);

    report_stderr_init(&rep, "list", NULL);
    if (r < 0) {
        json_object_put(array);
        return report_errno(&rep, -r, "cannot read the runtime folders");
    }
    for (unsigned i = 0; i < n; i++) {
        if (json)
            json_object_array_add(array, cmd_mount_json(&list[i]));
        else
            print_text(&list[i]);
    }
    serve_registry_list_done(list, n);
    return json ? cmd_json_print(array) : 0;
}

static int run(int argc, char **argv)
{
    bool json = false;
    int opt;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            return cmd_help(&cmd_list);
        if (opt == OPT_JSON)
            json = true;
        else if (opt != 'v')
            return cmd_option_error(&cmd_list, opt, argv);
    }
    if (optind < argc)
        return cmd_usage(&cmd_list, "takes no \"%s\"", argv[optind]);
    return print_all(json);
}

const struct command cmd_list = {
    .name = "list",
    .summary = "mounted volumes",
    .usage = usage,
    .run = run,
};
