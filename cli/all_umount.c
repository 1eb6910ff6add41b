/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* umount --all. */

#include "base/auto.h"
#include "cli/teardown.h"

#include <errno.h>

static int take_down(const struct serve_found *f, bool force, struct report *rep)
{
    return f->alive ? cmd_teardown(f, force, rep) : cmd_teardown_dead(f, rep);
}

/* A container can be in the file system of another volume, which is busy until it is gone. So it is
 * tried in silence as long as some go; what is left then is tried once more, and says why not. */
int cmd_umount_all(bool force, struct report *rep)
{
    struct serve_found *list;
    unsigned n, gone = 1;
    int r = serve_registry_list(&list, &n), status = 0;
    AUTO_FREE bool *done = r == 0 ? calloc(n + 1, sizeof(*done)) : NULL;

    if (r < 0 || done == NULL)
        return report_errno(rep, r < 0 ? -r : ENOMEM, "cannot read the runtime folders");
    for (unsigned i = 0; i < n; i++)
        done[i] = list[i].folder.owner != geteuid();
    while (gone > 0) {
        gone = 0;
        for (unsigned i = 0; i < n; i++)
            if (!done[i] && take_down(&list[i], false, NULL) == 0) {
                done[i] = true;
                gone++;
            }
    }
    for (unsigned i = 0; i < n; i++) {
        struct report about = *rep;

        about.which = list[i].record.name;
        r = done[i] ? 0 : take_down(&list[i], force, &about);
        if (r < 0)
            status = r;
    }
    serve_registry_list_done(list, n);
    return status;
}
