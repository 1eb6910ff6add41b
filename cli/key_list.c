/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/key.h"

/* hushvol key list. Takes no lock and no key: it works on a mounted container, and what it prints
 * is what the header claims. */

#include "base/size.h"
#include "cli/json.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol key list CONTAINER [OPTION...]\n"
    "\n"
    "Lists the key slots in use: what opens each, what a guess costs, when it was made (UTC), and\n"
    "its label. Needs no key, and the container may be mounted.\n"
    "\n"
    "  --json                   one array with an object for each slot\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol key list photos.hv\n"
    "\n"
    "Exit status: 0 done (also when no slot is in use), 1 failed, 2 wrong words, 4 not a container\n"
    "or damaged, 6 not possible in this format, 7 no such container.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"json", no_argument, NULL, KEY_OPT_JSON},
    CMD_HEADER_OPTION,
    {0},
};

static int print_json(const struct key_slot_info *slots, int n)
{
    struct json_object *list = json_object_new_array();

    for (int i = 0; i < n; i++) {
        const struct key_slot_info *s = &slots[i];
        struct json_object *o = json_object_new_object(), *kdf = json_object_new_object();

        json_object_object_add(kdf, "name",
                               json_object_new_string(s->kdf != NULL ? s->kdf : "argon2id"));
        json_object_object_add(kdf, "memory",
                               json_object_new_uint64((uint64_t)s->cost.m_kib << 10));
        json_object_object_add(kdf, "iterations", json_object_new_uint64(s->cost.t));
        json_object_object_add(kdf, "lanes", json_object_new_uint64(s->cost.p));
        json_object_object_add(o, "slot", json_object_new_uint64(s->index));
        json_object_object_add(o, "kind", json_object_new_string(key_kind_text(s->kind)));
        json_object_object_add(o, "kdf", kdf);
        json_object_object_add(o, "created", s->created != 0 ? cmd_json_time(s->created) : NULL);
        json_object_object_add(o, "label", cmd_json_string(s->label));
        json_object_array_add(list, o);
    }
    return cmd_json_print(list);
}

static int print_table(const struct key_slot_info *slots, int n, const char *container)
{
    if (n == 0)
        printf("no key slot is in use: %s was erased\n", CMD_SHOWN(container));
    else
        printf("%-4s  %-18s  %-8s  %-6s  %-20s  %s\n", "slot", "opens with", "memory", "passes",
               "created", "label");
    for (int i = 0; i < n; i++) {
        const struct key_slot_info *s = &slots[i];
        char size[SIZE_TEXT] = "-", created[CMD_TIME_TEXT] = "-", label[4 * sizeof(s->label)];

        report_escape(label, sizeof(label), s->label);
        if (s->cost.m_kib != 0)
            size_format(size, (uint64_t)s->cost.m_kib << 10);
        if (s->created != 0)
            cmd_time_text(created, s->created);
        printf("%-4u  %-18s  %-8s  %-6u  %-20s  %s\n", s->index, key_kind_text(s->kind), size,
               s->cost.t, created, label);
    }
    return 0;
}

static int key_list(int argc, char **argv)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    struct key_slot_info slots[KEY_SLOTS_MAX];
    struct key_words w;
    struct report rep;
    int r = key_take_words(&w, &cmd_key_list, options, argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_key_list);
    report_stderr_init(&rep, "key list", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_look(&c, w.container, w.header, &rep);
    if (r < 0)
        return r;
    if (c.format->slots == NULL)
        return report_error(&rep, EOPNOTSUPP, "listing keys is not possible in the %s format",
                            c.format->name);
    r = c.format->slots(c.store, slots, KEY_SLOTS_MAX, &rep);
    if (r < 0)
        return r;
    return w.json ? print_json(slots, r) : print_table(slots, r, w.container);
}

const struct command cmd_key_list = {
    .name = "key list",
    .summary = "what is in the key slots",
    .usage = usage,
    .run = key_list,
};
