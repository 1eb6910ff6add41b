/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/owner.h"

#include "cli/command.h"
#include "fuse/broker.h"
#include "keystore/interrupt.h"

#include <errno.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

static int broker; /* once for a process: afterwards we are not root any more */

static bool is_others(const struct conf_volume *v)
{
    const struct passwd *owner = v->owner != NULL ? getpwnam(v->owner) : NULL;

    return geteuid() == 0 && v->system && v->owner != NULL && (owner == NULL || owner->pw_uid != 0);
}

/* A signal that ended the owner's process has to end ours, so that a shell sees that it came. */
static int result_of(int status)
{
    if (WIFEXITED(status))
        return exit_elsewhere(WEXITSTATUS(status));
    if (WTERMSIG(status) != SIGINT && WTERMSIG(status) != SIGTERM && WTERMSIG(status) != SIGHUP)
        return exit_elsewhere(128 + WTERMSIG(status));
    key_interrupted(WTERMSIG(status));
    return -EINTR;
}

int cmd_owner_become(const struct conf_volume *v, const struct cmd_owner *how, struct report *rep)
{
    struct serve_broker_spec spec = {.user = v->owner};
    int status = 0, r;

    if (!is_others(v))
        return 0;
    if (how != NULL) {
        spec.point = how->point;
        spec.allow_other = how->allow_other;
        spec.foreground = how->foreground;
    }
    r = serve_broker_start(&spec, &broker, &status, rep);
    return r == 1 ? result_of(status) : r;
}

int cmd_owner_broker(void)
{
    return broker;
}
