/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* The caller's configuration: the files themselves, then for each volume what it names. Only looks:
 * a container is opened for a moment to ask the kernel about locks, and nothing is read from it. */

#include "base/auto.h"
#include "base/size.h"
#include "cli/doctor_place.h"
#include "cli/named.h"
#include "conf/expand.h"
#include "conf/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#define FAULTS_MAX 8

static const char check_files[] = "config", check_volume[] = "volume";

/* Makes a finding of each of the first faults, and counts the others. */
struct faults {
    struct report rep;
    struct doctor *d;
    unsigned n;
};

static void found_fault(struct report *rep, enum report_level level, const char *text)
{
    struct faults *f = container_of(rep, struct faults, rep);

    if (level == REPORT_ERROR && f->n++ < FAULTS_MAX)
        doctor_found(f->d, DOCTOR_WARN, check_files,
                     "mend that file; until then no volume can be mounted by its name", "%s", text);
}

static void read_files(struct doctor *d, struct conf **ret)
{
    struct faults faults = {.rep.say = found_fault, .d = d};
    unsigned n = 0, ours = 0;

    if (conf_read(ret, &faults.rep) < 0) {
        if (faults.n > FAULTS_MAX)
            doctor_found(d, DOCTOR_WARN, check_files, "hushvol config check names all of them",
                         "and %u faults more in the configuration files", faults.n - FAULTS_MAX);
        return;
    }
    for (const struct conf_volume *v; (v = conf_volume(*ret, n)) != NULL; n++)
        ours += cmd_named_is_ours(v);
    if (n > 0)
        doctor_found(d, DOCTOR_OK, check_files, NULL, "in order: %u volume%s, %u of them yours", n,
                     n == 1 ? "" : "s", ours);
}

/* The value of a key that is a path, or of a switch. */
static const struct conf_said *said(const struct conf_volume *v, const char *key)
{
    const struct conf_said *hit = NULL;

    for (unsigned i = 0; i < v->n_said; i++)
        if (strcmp(v->said[i].key, key) == 0)
            hit = &v->said[i];
    return hit;
}

static bool says(const struct conf_volume *v, const char *key, const char *value)
{
    const struct conf_said *s = said(v, key);

    return s != NULL && strcmp(s->value, value) == 0;
}

/* A file that a volume names; key is the word for it, too. */
static bool is_there(struct doctor *d, const struct conf_volume *v, const struct conf_said *s,
                     int how)
{
    struct stat st;

    if (stat(s->value, &st) < 0)
        doctor_found(d, DOCTOR_WARN, check_volume,
                     errno == ENOENT || errno == ENOTDIR
                         ? "mount the disk that it is on, or correct that line"
                         : "give yourself the way to it",
                     "%s: its %s %s: %s (%s:%u)", v->name, s->key, s->value, strerror(errno),
                     s->file, s->line);
    else if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
        doctor_found(d, DOCTOR_WARN, check_volume, "correct that line",
                     "%s: its %s %s is neither a file nor a block device (%s:%u)", v->name, s->key,
                     s->value, s->file, s->line);
    else if (access(s->value, how) < 0)
        doctor_found(d, DOCTOR_WARN, check_volume,
                     how & W_OK ? "as its owner: chmod u+rw, or ro = yes to read only"
                                : "as its owner: chmod u+r",
                     "%s: its %s %s cannot be %s: %s", v->name, s->key, s->value,
                     how & W_OK ? "written" : "read", strerror(errno));
    else
        return true;
    return false;
}

static void check_key_files(struct doctor *d, const struct conf_volume *v)
{
    for (unsigned i = 0; i < v->n_said; i++) {
        const struct conf_said *s = &v->said[i];

        if (s->value[0] == '/' &&
            (strcmp(s->key, "keyfile") == 0 || strcmp(s->key, "passphrase-file") == 0))
            is_there(d, v, s, R_OK);
    }
}

static void check_place(struct doctor *d, const struct conf_volume *v, int fd)
{
    const struct doctor_place *place;
    struct statfs fs;

    if (fstatfs(fd, &fs) < 0)
        return;
    place = doctor_place((uint32_t)fs.f_type);
    if (place != NULL && place->container != NULL)
        doctor_found(d, DOCTOR_WARN, check_volume, place->container_fix,
                     "%s: its container is on %s, %s", v->name, place->name, place->container);
}

/* Asks who would stand in the way of a lock, which takes none. */
static void check_locks(struct doctor *d, const struct conf_volume *v, int fd)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};

    if (fcntl(fd, F_OFD_GETLK, &lock) < 0)
        doctor_found(d, DOCTOR_WARN, check_volume,
                     "put it on a file system with locks (NFS: without nolock, with lockd running)",
                     "%s: the file system of its container knows no locks: %s", v->name,
                     strerror(errno));
}

static void check_direct(struct doctor *d, const struct conf_volume *v)
{
    AUTO_FD int fd = says(v, "direct", "on")
                         ? open(v->container, O_RDONLY | O_DIRECT | O_NONBLOCK | O_CLOEXEC)
                         : -1;

    if (fd < 0 && errno == EINVAL && says(v, "direct", "on"))
        doctor_found(d, DOCTOR_WARN, check_volume, "direct = auto",
                     "%s says direct = on, and the file system of its container has no O_DIRECT",
                     v->name);
}

/* What a sparse file may still take. */
static void check_growth(struct doctor *d, const struct conf_volume *v, int fd)
{
    char need_text[SIZE_TEXT], free_text[SIZE_TEXT];
    uint64_t need, room;
    struct statfs fs;
    struct stat st;

    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0 || !S_ISREG(st.st_mode) ||
        st.st_blocks * 512 >= st.st_size)
        return;
    need = (uint64_t)(st.st_size - st.st_blocks * 512);
    room = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (room < need)
        doctor_found(d, DOCTOR_WARN, check_volume,
                     "make room there before its disk is filled; when there is none, writes wait",
                     "%s: its container is sparse and may grow by %s, where %s are free", v->name,
                     size_format(need_text, need), size_format(free_text, room));
}

static void check_container(struct doctor *d, const struct conf_volume *v)
{
    bool read_only = says(v, "ro", "yes");
    const struct conf_said *header = said(v, "header");
    AUTO_FD int fd = -1;

    if (header != NULL)
        is_there(d, v, header, read_only ? R_OK : R_OK | W_OK);
    if (!is_there(d, v, said(v, "container"), read_only ? R_OK : R_OK | W_OK))
        return;
    fd = open(v->container, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    check_place(d, v, fd);
    check_locks(d, v, fd);
    if (!read_only)
        check_growth(d, v, fd);
    check_direct(d, v);
}

static void check_home(struct doctor *d)
{
    AUTO_CONF_USER struct conf_user u = {0};
    const struct doctor_place *place;
    struct statfs fs;

    if (geteuid() == 0 || conf_user_caller(&u, NULL) < 0 || statfs(u.home, &fs) < 0)
        return;
    place = doctor_place((uint32_t)fs.f_type);
    if (place != NULL && place->home != NULL)
        doctor_found(d, DOCTOR_WARN, "home", place->home_fix, "your home %s is on %s, %s", u.home,
                     place->name, place->home);
}

/* Volumes leave room for what else is found. */
static void check_volumes(struct doctor *d, const struct conf *c)
{
    const struct conf_volume *v;
    unsigned fine = 0;

    for (unsigned i = 0; (v = conf_volume(c, i)) != NULL; i++) {
        unsigned before = d->n;

        if (!cmd_named_is_ours(v))
            continue;
        if (d->n > DOCTOR_FINDINGS / 2) {
            doctor_found(d, DOCTOR_WARN, check_volume, "mend what is named here, and ask again",
                         "%s and the volumes after it were not looked at", v->name);
            return;
        }
        check_container(d, v);
        check_key_files(d, v);
        doctor_mountpoint(d, v);
        doctor_apparmor(d, v);
        fine += d->n == before;
    }
    if (fine > 0)
        doctor_found(d, DOCTOR_OK, check_volume, NULL, "%u of your volumes: all that %s is there",
                     fine, fine == 1 ? "it names" : "they name");
}

void doctor_config(struct doctor *d, struct conf **ret)
{
    *ret = NULL;
    check_home(d);
    doctor_apparmor_here(d);
    read_files(d, ret);
    if (*ret != NULL)
        check_volumes(d, *ret);
}
