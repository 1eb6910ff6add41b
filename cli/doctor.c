/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* hushvol doctor: asks doctor_checks.c (the machine), doctor_config.c (configuration, volumes) and
 * doctor_login.c, and prints what they found, one line a finding. */

#include "cli/command.h"
#include "cli/json.h"
#include "conf/config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol doctor [--json]\n"
    "\n"
    "Says what stands in the way for the user who asks: on this machine, in the configuration files\n"
    "and what your volumes name there, and at login (PAM, sshd, systemd). One line each:\n"
    "\n"
    "  ok      all is well\n"
    "  warn    something will not work, or not well; mounting does\n"
    "  fail    nothing can be mounted before this is mended\n"
    "\n"
    "  --json                   one array with an object for each line\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol doctor\n"
    "\n"
    "Exit status: 0 nothing fails, 1 something does, 2 wrong words.\n";
/* clang-format on */

enum { OPT_JSON = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, OPT_JSON},
    {0},
};

static const char *const level_text[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_WARN] = "warn", [DOCTOR_FAIL] = "fail"};

static int print_json(const struct doctor *d)
{
    struct json_object *list = json_object_new_array();

    for (unsigned i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];
        struct json_object *o = json_object_new_object();

        json_object_object_add(o, "check", json_object_new_string(f->check));
        json_object_object_add(o, "level", json_object_new_string(level_text[f->level]));
        json_object_object_add(o, "text", cmd_json_string(f->text));
        json_object_object_add(o, "fix", f->fix != NULL ? json_object_new_string(f->fix) : NULL);
        json_object_array_add(list, o);
    }
    return cmd_json_print(list);
}

static void print_lines(const struct doctor *d)
{
    for (unsigned i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];

        printf("%-4s  %-15s  %s%s%s\n", level_text[f->level], f->check, f->text,
               f->fix != NULL ? "; fix: " : "", f->fix != NULL ? f->fix : "");
    }
}

static bool something_fails(const struct doctor *d)
{
    for (unsigned i = 0; i < d->n; i++)
        if (d->findings[i].level == DOCTOR_FAIL)
            return true;
    return false;
}

void doctor_examine(struct doctor *d)
{
    struct conf *c = NULL;

    d->n = 0;
    doctor_machine(d);
    doctor_config(d, &c);
    doctor_login(d, c);
    conf_free(c);
}

static int doctor(int argc, char **argv)
{
    struct doctor d = {0};
    bool json = false;
    int opt;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        if (opt == CMD_OPT_HELP)
            return cmd_help(&cmd_doctor);
        if (opt == OPT_JSON)
            json = true;
        else if (opt != 'v')
            return cmd_option_error(&cmd_doctor, opt, argv);
    }
    if (optind < argc)
        return cmd_usage(&cmd_doctor, "it takes no argument, not \"%s\"", argv[optind]);
    doctor_examine(&d);
    if (json)
        print_json(&d);
    else
        print_lines(&d);
    return something_fails(&d) ? -EPERM : 0;
}

const struct command cmd_doctor = {
    .name = "doctor",
    .summary = "what stands in the way on this machine, and the fix",
    .usage = usage,
    .run = doctor,
};
