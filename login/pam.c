/* SPDX-License-Identifier: BSD-2-Clause */

/* pam_hushvol.so: what PAM calls. Nothing here decides a login: whatever fails is said, and the
 * result is that of a module that does not mind.
 *
 * We are a guest in a process of root's that is not ours (sshd, login, su, a display manager):
 * nothing of it is changed, not even its settings for core dumps, and nothing outlives a call but
 * what hangs on the PAM handle. */

#include "base/auto.h"
#include "login/login.h"
#include "login/remember.h"
#include "login/sessions.h"
#include "login/work.h"

#include <errno.h>
#include <security/pam_modules.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

static const char *token(pam_handle_t *pamh, int which)
{
    const void *value = NULL;

    return pam_get_item(pamh, which, &value) == PAM_SUCCESS ? value : NULL;
}

EXPORT int pam_sm_authenticate(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    struct login l;

    if (login_begin(&l, pamh, flags, argc, argv) &&
        login_remember(pamh, l.user.name, token(pamh, PAM_AUTHTOK)) != PAM_SUCCESS)
        report_errno(&l.talk.rep, ENOMEM, "the password cannot be kept for the volumes");
    login_end(&l);
    return PAM_IGNORE;
}

EXPORT int pam_sm_setcred(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    (void)pamh;
    (void)flags;
    (void)argc;
    (void)argv;
    return PAM_IGNORE;
}

/* The descriptor of the user's sessions with this one among them, or -1 (said): then it is opened
 * all the same, and only nobody closes its volumes. */
static int enter(struct login *l)
{
    AUTO_FD int fd = login_sessions_open(LOGIN_SESSIONS_FOLDER, l->user.uid, &l->talk.rep);
    struct login_process self;
    int r;

    if (fd < 0)
        return -1;
    r = login_process_self(&self);
    if (r < 0)
        report_errno(&l->talk.rep, -r, "this session cannot be counted");
    if (r == 0)
        r = login_sessions_add(fd, &self, &l->talk.rep);
    if (r < 0)
        return -1;
    login_debug(&l->talk, "session %d of %s", r, l->user.name);
    return TAKE_FD(fd);
}

static void open_for(struct login *l)
{
    pam_handle_t *pamh = l->talk.pamh;
    AUTO_FD int sessions = enter(l);

    login_work_mount(l, login_remembered(pamh, l->user.name), sessions);
    login_remember(pamh, l->user.name, NULL); /* a handle lives as long as the session */
}

EXPORT int pam_sm_open_session(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    struct login l;

    if (login_begin(&l, pamh, flags, argc, argv)) {
        if (login_counts(&l))
            open_for(&l);
        else
            login_debug(&l.talk, "%s does not open volumes", l.service);
    }
    login_end(&l);
    return PAM_SUCCESS;
}

static void close_for(struct login *l)
{
    AUTO_FD int fd = login_sessions_open(LOGIN_SESSIONS_FOLDER, l->user.uid, &l->talk.rep);
    struct login_process self = {0};
    int r;

    if (fd < 0)
        return;
    login_process_self(&self); /* if not, another line than its own goes: as many are left */
    r = login_sessions_remove(fd, &self, &l->talk.rep);
    if (r > 0)
        login_debug(&l->talk, "%s has %d more sessions", l->user.name, r);
    if (r == 0)
        login_work_umount(l, fd);
}

EXPORT int pam_sm_close_session(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    struct login l;

    if (login_begin(&l, pamh, flags, argc, argv) && login_counts(&l))
        close_for(&l);
    login_end(&l);
    return PAM_SUCCESS;
}

static const struct secret *old_of(struct login *l, struct secret *held)
{
    const char *old = token(l->talk.pamh, PAM_OLDAUTHTOK);

    if (old == NULL)
        return login_remembered(l->talk.pamh, l->user.name);
    return login_secret(held, old) < 0 ? NULL : held;
}

static void change_for(struct login *l, const char *password)
{
    AUTO_SECRET struct secret held = {0}, new = {0};
    const struct secret *old = old_of(l, &held);

    if (old == NULL) {
        login_work_keep(l);
        return;
    }
    if (login_secret(&new, password) < 0) {
        report_errno(&l->talk.rep, ENOMEM, "the volumes keep their passphrase");
        return;
    }
    if (old->len != new.len || !secret_equal(old->bytes, new.bytes, new.len))
        login_work_change(l, old, &new);
}

EXPORT int pam_sm_chauthtok(pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    const char *password;
    struct login l;

    if (flags & PAM_PRELIM_CHECK)
        return PAM_IGNORE;
    password = token(pamh, PAM_AUTHTOK);
    if (login_begin(&l, pamh, flags, argc, argv) && password != NULL) {
        change_for(&l, password);
        login_remember(pamh, l.user.name, password);
    }
    login_end(&l);
    return PAM_IGNORE;
}
