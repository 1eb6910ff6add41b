/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"

/* The mount that a command is to work on, with its process answering. */

#include "cli/find.h"
#include "fuse/control.h"

#include <errno.h>
#include <json-c/json.h>

static int64_t number(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;

    return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : 0;
}

int cmd_ask_served(struct cmd_served *now, const struct serve_found *f, struct report *rep)
{
    struct json_object *answer;
    int r;

    if (!f->alive)
        return report_error(rep, ESRCH, "its process died (\"hushvol umount %s\" cleans up)",
                            f->record.name);
    r = serve_control_ask(&answer, f, "status", NULL, rep);
    if (r < 0)
        return r;
    *now = (struct cmd_served){.suspended = number(answer, "suspended") != 0,
                               .cache = number(answer, "cache") != 0,
                               .waits_for_room = number(answer, "waiting_for_space") > 0};
    json_object_put(answer);
    return 0;
}

int cmd_find_served(struct serve_found *ret, struct cmd_served *now, const char *word,
                    struct report *rep)
{
    int r = cmd_find_mounted(ret, word, rep);

    return r < 0 ? r : cmd_ask_served(now, ret, rep);
}
