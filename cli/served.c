/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"

/* The mount that a command is to work on, with its process answering. */

#include "fuse/control.h"

#include <errno.h>
#include <json-c/json.h>

int cmd_find_served(struct serve_found *ret, const char *word, bool *suspended, struct report *rep)
{
    struct json_object *answer, *v = NULL;
    int r = serve_registry_find(ret, word);

    if (r == -ENOENT)
        return report_error(rep, ENOENT, "nothing of that name, folder or container is mounted");
    if (r < 0)
        return report_errno(rep, -r, "cannot read the runtime folders");
    if (!ret->alive)
        return report_error(rep, ESRCH, "its process died (\"hushvol umount %s\" cleans up)",
                            ret->record.name);
    r = serve_control_ask(&answer, ret, "status", NULL, rep);
    if (r < 0)
        return r;
    json_object_object_get_ex(answer, "suspended", &v);
    *suspended = json_object_get_boolean(v);
    json_object_put(answer);
    return 0;
}
