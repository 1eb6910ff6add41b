/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* What has to be right for volumes that open with the session and close with it: the lines of PAM,
 * the module's file, sshd, and a session manager that does not kill what serves them. */

#include "base/auto.h"
#include "base/size.h"
#include "cli/doctor_pam.h"
#include "cli/doctor_sshd.h"
#include "cli/doctor_systemd.h"
#include "cli/named.h"

#include <dirent.h>
#include <glob.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PAM_FILES_MAX 256

/* Texts of the files, owned. */
struct pam_files {
    unsigned n;
    struct doctor_pam_file files[PAM_FILES_MAX];
};

static void pam_files_free(struct pam_files *p)
{
    for (unsigned i = 0; i < p->n; i++) {
        free((char *)p->files[i].name);
        free((char *)p->files[i].path);
        free((char *)p->files[i].text);
    }
    free(p);
}

static bool have_file(const struct pam_files *p, const char *name)
{
    for (unsigned i = 0; i < p->n; i++)
        if (strcmp(p->files[i].name, name) == 0)
            return true;
    return false;
}

static void add_file(struct pam_files *p, const char *folder, const char *name)
{
    AUTO_FREE char *path = NULL, *own_name = strdup(name), *text = NULL;

    if (p->n == PAM_FILES_MAX || have_file(p, name) || own_name == NULL)
        return;
    if (asprintf(&path, "%s/%s", folder, name) < 0) {
        path = NULL;
        return;
    }
    text = doctor_text(path);
    if (text == NULL)
        return;
    p->files[p->n++] =
        (struct doctor_pam_file){.name = TAKE(own_name), .path = TAKE(path), .text = TAKE(text)};
}

static void add_folder(struct pam_files *p, const char *folder)
{
    struct dirent **list = NULL;
    int n = scandir(folder, &list, NULL, alphasort);

    for (int i = 0; i < n; i++) {
        if (list[i]->d_name[0] != '.')
            add_file(p, folder, list[i]->d_name);
        free(list[i]);
    }
    free(list);
}

static bool module_is_there(const char *module)
{
    static const char *const folders[] = {
        "/lib/security",   "/lib64/security",     "/usr/lib/security",      "/usr/lib64/security",
        "/lib/*/security", "/usr/lib/*/security", "/usr/local/lib/security"};
    char pattern[PATH_MAX];
    bool found = false;

    if (module[0] == '/')
        return access(module, F_OK) == 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && !found; i++) {
        glob_t g = {0};

        snprintf(pattern, sizeof(pattern), "%s/%s", folders[i], module);
        found = glob(pattern, 0, NULL, &g) == 0;
        globfree(&g);
    }
    return found;
}

/* Does any service call the module? */
static bool check_pam(struct doctor *d, unsigned n_login)
{
    struct pam_files *p = calloc(1, sizeof(*p));
    char module[256] = "";

    if (p == NULL)
        return false;
    add_folder(p, "/etc/pam.d");
    add_folder(p, "/usr/lib/pam.d");
    doctor_pam(d, p->files, p->n, module, sizeof(module));
    if (module[0] == '\0' && n_login > 0 && p->n > 0)
        doctor_found(d, DOCTOR_WARN, "pam",
                     "as root: pam-auth-update --enable hushvol; until then: hushvol mount --login",
                     "%u of your volumes say%s login = yes, and no file in /etc/pam.d has "
                     "pam_hushvol.so",
                     n_login, n_login == 1 ? "s" : "");
    else if (module[0] != '\0' && !module_is_there(module))
        doctor_found(d, DOCTOR_WARN, "pam", "install it, or take its lines out of /etc/pam.d",
                     "there is no file of the module %s, which /etc/pam.d names", module);
    pam_files_free(p);
    return module[0] != '\0';
}

/* sshd asks PAM only when told to; a file of sshd_config.d, which is included first, may do so. */
static void check_sshd(struct doctor *d)
{
    static const char main_file[] = "/etc/ssh/sshd_config";
    AUTO_FREE char *text = doctor_text(main_file);
    char value[16] = "", include[PATH_MAX] = "";
    glob_t g = {0};

    if (text == NULL)
        return;
    if (doctor_sshd_value(text, "Include", include, sizeof(include)) && include[0] == '/')
        glob(include, 0, NULL, &g);
    for (size_t i = 0; i < g.gl_pathc && value[0] == '\0'; i++) {
        AUTO_FREE char *part = doctor_text(g.gl_pathv[i]);

        if (part != NULL)
            doctor_sshd_value(part, "UsePAM", value, sizeof(value));
    }
    globfree(&g);
    if (value[0] == '\0')
        doctor_sshd_value(text, "UsePAM", value, sizeof(value));
    if (strcasecmp(value, "yes") != 0)
        doctor_found(d, DOCTOR_WARN, "sshd", "UsePAM yes in /etc/ssh/sshd_config",
                     "sshd does not use PAM (%s: UsePAM %s), so logins through it open no volume",
                     main_file, value[0] != '\0' ? value : "is not there, which is no");
}

static bool systemd_runs(void)
{
    return access("/run/systemd/system", F_OK) == 0;
}

static bool has_word(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = list; (at = strstr(at, word)) != NULL; at += len)
        if ((at == list || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

/* KillExcludeUsers and KillOnlyUsers say whom it is for; root is left out unless they say more. */
static bool is_killed(const char *user)
{
    char value[1024] = "", only[1024] = "", except[1024] = "root";

    doctor_systemd_value("", "logind.conf", "Login:KillUserProcesses", value, sizeof(value));
    doctor_systemd_value("", "logind.conf", "Login:KillOnlyUsers", only, sizeof(only));
    doctor_systemd_value("", "logind.conf", "Login:KillExcludeUsers", except, sizeof(except));
    return doctor_systemd_yes(value) && !has_word(except, user) &&
           (only[0] == '\0' || has_word(only, user));
}

static bool have_user_unit(void)
{
    static const char *const folders[] = {"/etc/systemd/user", "/usr/local/lib/systemd/user",
                                          "/usr/lib/systemd/user", "/lib/systemd/user"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s/hushvol@.service", folders[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

static void check_killing(struct doctor *d)
{
    const struct passwd *p = getpwuid(geteuid());

    if (p == NULL || !is_killed(p->pw_name))
        return;
    if (have_user_unit())
        doctor_found(d, DOCTOR_OK, "logind", NULL,
                     "KillUserProcesses = yes: login volumes live on in hushvol@.service; what is "
                     "mounted by hand is killed with its session");
    else
        doctor_found(d, DOCTOR_WARN, "logind",
                     "install hushvol@.service in /usr/lib/systemd/user, or as root: "
                     "KillUserProcesses=no in /etc/systemd/logind.conf",
                     "KillUserProcesses = yes: the end of a session kills the mounts that began in "
                     "it, before they are unmounted");
}

/* A daemon in a unit has the limit of the user's manager, not that of a session. */
static void check_manager_memlock(struct doctor *d)
{
    char path[PATH_MAX], pid[32] = "", limits[128] = "", line[8];
    unsigned long long soft;

    snprintf(path, sizeof(path),
             "/sys/fs/cgroup/user.slice/user-%u.slice/user@%u.service/init.scope/cgroup.procs",
             geteuid(), geteuid());
    if (!doctor_field("/proc/swaps", "/", line, sizeof(line)) ||
        !doctor_field(path, "", pid, sizeof(pid)))
        return;
    snprintf(path, sizeof(path), "/proc/%lu/limits", strtoul(pid, NULL, 10));
    if (!doctor_field(path, "Max locked memory", limits, sizeof(limits)) ||
        sscanf(limits, "%llu", &soft) != 1)
        return; /* unlimited is no number */
    doctor_found(
        d, DOCTOR_WARN, "memlock-unit",
        "as root: LimitMEMLOCK=infinity for user@.service, or DefaultLimitMEMLOCK=infinity "
        "in /etc/systemd/system.conf",
        "keys of volumes in units may be swapped to disk: your systemd manager may lock "
        "%llu KiB",
        soft / 1024);
}

/* Where there is no manager to ask, what systemd's own file says for everything that it starts. */
static void check_default_memlock(struct doctor *d)
{
    char value[64], line[8];
    uint64_t bytes;

    if (!doctor_field("/proc/swaps", "/", line, sizeof(line)) ||
        !doctor_systemd_value("", "system.conf", "Manager:DefaultLimitMEMLOCK", value,
                              sizeof(value)))
        return;
    value[strcspn(value, ":")] = '\0';
    if (size_parse(&bytes, value) == 0)
        doctor_found(d, DOCTOR_WARN, "memlock-unit",
                     "as root: DefaultLimitMEMLOCK=infinity there, or LimitMEMLOCK=infinity in the "
                     "unit",
                     "keys of volumes in units may be swapped to disk: DefaultLimitMEMLOCK is %s "
                     "in systemd's system.conf",
                     value);
}

void doctor_login(struct doctor *d, const struct conf *c)
{
    const struct conf_volume *v;
    unsigned n_login = 0, n_ours = 0;

    for (unsigned i = 0; c != NULL && (v = conf_volume(c, i)) != NULL; i++) {
        n_ours += cmd_named_is_ours(v);
        n_login += cmd_named_is_ours(v) && v->login;
    }
    if (check_pam(d, n_login))
        check_sshd(d);
    if (!systemd_runs())
        return;
    check_killing(d);
    if (n_ours > 0) {
        check_manager_memlock(d);
        check_default_memlock(d);
    }
}
