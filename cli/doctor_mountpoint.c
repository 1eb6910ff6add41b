/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* The place where a volume is to be mounted: may the caller, and does AppArmor let fusermount3? */

#include "base/auto.h"
#include "cli/doctor_apparmor.h"
#include "conf/config.h"
#include "fuse/folder.h"
#include "fuse/registry.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define PROFILE "/etc/apparmor.d/fusermount3"

static const char check[] = "volume";

static bool is_empty(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;
    bool empty = true;

    if (dir == NULL)
        return true; /* not ours to look into; said by others */
    while (empty && (e = readdir(dir)) != NULL)
        empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
    closedir(dir);
    return empty;
}

static bool is_mount_point(const char *folder)
{
    struct statx sx;

    return statx(AT_FDCWD, folder, AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &sx) == 0 &&
           sx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static bool is_mounted(const struct conf_volume *v)
{
    AUTO_FOUND struct serve_found f = {0};
    char path[PATH_MAX];

    return realpath(v->container, path) != NULL && serve_registry_find(&f, path) == 0 && f.alive;
}

/* fusermount3 lets a user mount over a folder that he may write, with the sticky bit only over his
 * own. */
static bool may_mount_over(const char *folder, const struct stat *st)
{
    return geteuid() == 0 ||
           (access(folder, W_OK) == 0 && (!(st->st_mode & S_ISVTX) || st->st_uid == geteuid()));
}

void doctor_mountpoint(struct doctor *d, const struct conf_volume *v)
{
    const char *folder = v->mountpoint;
    struct stat st;

    if (folder == NULL || is_mounted(v))
        return;
    if (stat(folder, &st) < 0 && errno == ENOTCONN)
        doctor_found(d, DOCTOR_WARN, check, "hushvol umount with its name",
                     "%s: at its mount point %s is a mount whose program is gone", v->name, folder);
    else if (stat(folder, &st) < 0 && errno == ENOENT && v->filesystem)
        return; /* is made */
    else if (stat(folder, &st) < 0)
        doctor_found(d, DOCTOR_WARN, check,
                     errno == ENOENT ? "make the folder: mkdir -p" : "correct the mountpoint",
                     "%s: its mount point %s: %s", v->name, folder, strerror(errno));
    else if (!S_ISDIR(st.st_mode))
        doctor_found(d, DOCTOR_WARN, check, "correct the mountpoint",
                     "%s: its mount point %s is not a folder", v->name, folder);
    else if (is_mount_point(folder))
        doctor_found(d, DOCTOR_WARN, check, "unmount that, or take another folder",
                     "%s: something else is mounted at its mount point %s", v->name, folder);
    else if (!may_mount_over(folder, &st))
        doctor_found(d, DOCTOR_WARN, check, "give it to yourself (as root: chown)",
                     "%s: its mount point %s is not yours to mount over", v->name, folder);
    else if (!is_empty(folder))
        doctor_found(d, DOCTOR_WARN, check,
                     "move them away, or take another folder; while it is mounted nobody sees them",
                     "%s: there are files in its mount point %s", v->name, folder);
}

/* The texts of all files of these patterns, one after another; the caller's to free. */
static char *texts(const char *const patterns[], size_t n)
{
    char *all = strdup("");
    glob_t found = {0};

    for (size_t i = 0; i < n; i++)
        glob(patterns[i], i > 0 ? GLOB_APPEND : 0, NULL, &found);
    for (size_t i = 0; i < found.gl_pathc && all != NULL; i++) {
        AUTO_FREE char *one = doctor_text(found.gl_pathv[i]), *before = all;

        if (asprintf(&all, "%s%s\n", before, one != NULL ? one : "") < 0)
            all = NULL;
    }
    globfree(&found);
    return all;
}

static bool apparmor_confines(void)
{
    char enabled[8];

    return geteuid() != 0 && access("/etc/apparmor.d/disable/fusermount3", F_OK) < 0 &&
           access("/etc/apparmor.d/force-complain/fusermount3", F_OK) < 0 &&
           doctor_field("/sys/module/apparmor/parameters/enabled", "Y", enabled, sizeof(enabled));
}

/* Where v is mounted when nothing else is said on the command line, as the kernel will see it. */
static void place_of(const struct conf_volume *v, char out[PATH_MAX])
{
    struct serve_folder folder;

    if (v->mountpoint != NULL) {
        if (realpath(v->mountpoint, out) == NULL)
            snprintf(out, PATH_MAX, "%s", v->mountpoint);
    } else if (serve_folder_own(&folder, NULL) < 0 ||
               snprintf(out, PATH_MAX, "%s/mnt/%s", folder.path, v->name) >= PATH_MAX) {
        out[0] = '\0';
    }
}

static bool is_refused(const char *place)
{
    static const char *const profiles[] = {PROFILE, "/etc/apparmor.d/local/fusermount3"};
    static const char *const homes[] = {"/etc/apparmor.d/tunables/home",
                                        "/etc/apparmor.d/tunables/home.d/*"};
    AUTO_FREE char *profile = NULL, *tunables = NULL;

    if (!apparmor_confines() || access(PROFILE, R_OK) < 0)
        return false;
    profile = texts(profiles, 2);
    tunables = texts(homes, 2);
    return profile != NULL && tunables != NULL && place[0] == '/' &&
           doctor_apparmor_mount(profile, tunables, place) == DOCTOR_REFUSED;
}

#define RULE_FIX                                                                                   \
    "mount below your home, or as root add a mount and an umount rule to "                         \
    "/etc/apparmor.d/local/fusermount3 and run apparmor_parser -r " PROFILE

void doctor_apparmor(struct doctor *d, const struct conf_volume *v)
{
    char place[PATH_MAX];

    place_of(v, place);
    if (is_refused(place))
        doctor_found(d, DOCTOR_WARN, "apparmor", RULE_FIX,
                     "%s: AppArmor does not let fusermount3 mount at %s", v->name, place);
}

void doctor_apparmor_here(struct doctor *d)
{
    AUTO_FREE char *here = getcwd(NULL, 0), *place = NULL;

    if (here == NULL || asprintf(&place, "%s/x", here) < 0) {
        place = NULL;
        return;
    }
    if (is_refused(place))
        doctor_found(d, DOCTOR_WARN, "apparmor", RULE_FIX,
                     "AppArmor does not let fusermount3 mount in the current folder %s", here);
}
