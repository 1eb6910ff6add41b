/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/login.h"

/* Who is left out. Cron and at run jobs while nobody is there to type a passphrase, and would close
 * the volumes in the middle of the day with the end of a job. systemd --user opens a session of its
 * own beside each login. Root who becomes a user is not that user: he gets what is open already. */

#include "login/environment.h"

#include <security/pam_ext.h>
#include <security/pam_modutil.h>
#include <string.h>
#include <unistd.h>

static const char left_out[] = "systemd-user,cron,crond,atd,runuser,runuser-l";
static const char of_root[] = "su,su-l,sudo,sudo-i"; /* when root is who calls them */

static const char *item(pam_handle_t *pamh, int which)
{
    const void *value = NULL;

    return pam_get_item(pamh, which, &value) == PAM_SUCCESS ? value : NULL;
}

/* Who calls says PAM_RUSER; what sets it not, is called by its real user. */
static bool called_by_root(pam_handle_t *pamh)
{
    const char *name = item(pamh, PAM_RUSER);
    const struct passwd *caller;

    if (name == NULL || name[0] == '\0')
        return getuid() == 0;
    caller = pam_modutil_getpwnam(pamh, name);
    return caller != NULL && caller->pw_uid == 0;
}

bool login_counts(const struct login *l)
{
    if (login_args_lists(l->args.also, l->service))
        return true;
    return !login_args_lists(left_out, l->service) &&
           !(login_args_lists(of_root, l->service) && called_by_root(l->talk.pamh));
}

bool login_begin(struct login *l, pam_handle_t *pamh, int flags, int argc, const char **argv)
{
    const char *name = item(pamh, PAM_USER), *service = item(pamh, PAM_SERVICE);
    const struct passwd *pw;

    memset(l, 0, sizeof(*l));
    login_talk_init(&l->talk, pamh, true); /* a mistake of root's is for the log alone */
    login_args_parse(&l->args, argc, argv, &l->talk.rep);
    l->talk.silent = flags & PAM_SILENT;
    l->talk.debug = l->args.debug;
    l->service = service != NULL ? service : "";
    pw = name != NULL && geteuid() == 0 ? pam_modutil_getpwnam(pamh, name) : NULL;
    if (pw == NULL || pw->pw_uid < l->args.min_uid || pw->pw_uid == 0)
        return false;
    l->user = (struct login_user){.name = pw->pw_name,
                                  .home = pw->pw_dir,
                                  .shell = pw->pw_shell,
                                  .uid = pw->pw_uid,
                                  .gid = pw->pw_gid};
    return true;
}

void login_end(struct login *l)
{
    login_environment_done(l->env);
}
