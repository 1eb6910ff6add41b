/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/holders.h"

/* What /proc tells, compared in two ways: by the device number, which also knows a bind mount or
 * another name of the folder, and by path, for file systems whose files have another device number
 * than their mount (btrfs). Nothing here may touch the mount itself: its daemon may be dead or
 * waiting, so attributes come from the kernel's cache (AT_STATX_DONT_SYNC). */

#include "base/auto.h"
#include "cli/loop.h"
#include "fuse/mounts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMED_MAX 6

struct search {
    const char *point;
    struct cmd_holders_except except;
    struct serve_mount_id mount;
    bool own; /* this process is one of them */
    unsigned n;
    char text[REPORT_LINE];
};

static bool is_below(const char *path, const char *point)
{
    size_t len = strlen(point);

    return strncmp(path, point, len) == 0 && (path[len] == '\0' || path[len] == '/');
}

/* link is /proc/PID/cwd and the like. */
static bool leads_into(const struct search *s, const char *link)
{
    char target[PATH_MAX];
    struct statx st;
    ssize_t n = readlink(link, target, sizeof(target) - 1);

    if (n <= 0 || target[0] != '/')
        return false;
    target[n] = '\0';
    if (is_below(target, s->point))
        return true;
    return statx(AT_FDCWD, link, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 &&
           st.stx_dev_major == s->mount.major && st.stx_dev_minor == s->mount.minor;
}

static bool has_open(const struct search *s, const char *pid)
{
    char path[64];
    DIR *dir;
    struct dirent *e;
    bool found = false;

    snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
    dir = opendir(path);
    while (!found && dir != NULL && (e = readdir(dir)) != NULL) {
        char link[128];

        snprintf(link, sizeof(link), "%s/%.32s", path, e->d_name);
        found = leads_into(s, link);
    }
    if (dir != NULL)
        closedir(dir);
    return found;
}

static bool has_mapped(const struct search *s, const char *pid)
{
    AUTO_FREE char *line = NULL;
    size_t size = 0;
    char path[64];
    bool found = false;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
    f = fopen(path, "re");
    while (!found && f != NULL && getline(&line, &size, f) > 0) {
        unsigned major, minor;

        found = sscanf(line, "%*s %*s %*s %x:%x", &major, &minor) == 2 && major == s->mount.major &&
                minor == s->mount.minor;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

static bool holds(const struct search *s, const char *pid)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/%.16s/cwd", pid);
    if (leads_into(s, link))
        return true;
    snprintf(link, sizeof(link), "/proc/%.16s/root", pid);
    return leads_into(s, link) || has_open(s, pid) || has_mapped(s, pid);
}

void cmd_process_name(char out[CMD_PROCESS_NAME], pid_t pid)
{
    char path[64];
    FILE *f;

    snprintf(out, CMD_PROCESS_NAME, "?");
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    f = fopen(path, "re");
    if (f == NULL)
        return;
    if (fgets(out, CMD_PROCESS_NAME, f) != NULL)
        out[strcspn(out, "\n")] = '\0';
    fclose(f);
}

/* pid as /proc names it. */
static void comm(char out[CMD_PROCESS_NAME], const char *pid)
{
    cmd_process_name(out, (pid_t)strtol(pid, NULL, 10));
}

static void name(struct search *s, const char *what, const char *which, const char *more)
{
    size_t used = strlen(s->text);

    if (s->n < NAMED_MAX)
        snprintf(s->text + used, sizeof(s->text) - used, "%s%s %s%s", s->n > 0 ? ", " : "", what,
                 which, more);
    s->n++;
}

/* Ourselves apart: with a folder or a file of a shell's, which is named already, and gone when
 * somebody reads it. */
static void search_processes(struct search *s)
{
    const long own = getpid();
    DIR *proc = opendir("/proc");
    struct dirent *e;

    while (proc != NULL && (e = readdir(proc)) != NULL) {
        char program[CMD_PROCESS_NAME], text[40];

        if (!isdigit((unsigned char)e->d_name[0]) || !holds(s, e->d_name))
            continue;
        if (strtol(e->d_name, NULL, 10) == own) {
            s->own = true;
            continue;
        }
        comm(program, e->d_name);
        if (s->except.program != NULL && strcmp(program, s->except.program) == 0)
            continue;
        snprintf(text, sizeof(text), " (%s)", program);
        name(s, "process", e->d_name, text);
    }
    if (proc != NULL)
        closedir(proc);
}

static int look_below(const struct serve_mounted *m, void *arg)
{
    struct search *s = arg;

    if (strcmp(m->point, s->point) != 0 && is_below(m->point, s->point))
        name(s, "a mount at", m->point, "");
    return 0;
}

struct loop_user {
    const char *device;
    char text[PATH_MAX + 32];
};

static int look_for_mount(const struct serve_mounted *m, void *arg)
{
    struct loop_user *u = arg;

    if (strcmp(m->source, u->device) != 0)
        return 0;
    snprintf(u->text, sizeof(u->text), " (mounted at %s)", m->point);
    return 1;
}

static void look_at_loop(const char *device, const char *backing, void *arg)
{
    struct search *s = arg;
    struct loop_user u = {.device = device};

    if (!is_below(backing, s->point) ||
        (s->except.device != NULL && strcmp(device, s->except.device) == 0) ||
        (s->mount.ours && !cmd_loop_on_mount(device, &s->mount)))
        return;
    serve_mounts_each(look_for_mount, &u);
    name(s, "loop device", device, u.text);
}

int cmd_holders_say(const char *point, const struct cmd_holders_except *except, struct report *rep)
{
    struct search s = {.point = point};

    if (except != NULL)
        s.except = *except;
    if (serve_mounts_at(&s.mount, point) < 0)
        return 0;
    search_processes(&s);
    serve_mounts_each(look_below, &s);
    cmd_loop_each(look_at_loop, &s);
    if (s.n == 0 && s.own)
        return report_error(rep, EBUSY,
                            "busy: this command itself was started in it, or with a file of it "
                            "open (start it from elsewhere)");
    if (s.n == 0)
        return 0;
    if (s.n > NAMED_MAX)
        return report_error(rep, EBUSY, "busy: %s and %u more", s.text, s.n - NAMED_MAX);
    return report_error(rep, EBUSY, "busy: %s", s.text);
}

bool cmd_holders_has(const char *point, const char *program)
{
    struct search s = {.point = point};
    DIR *proc = opendir("/proc");
    struct dirent *e;
    bool found = false;

    if (serve_mounts_at(&s.mount, point) == 0)
        while (!found && proc != NULL && (e = readdir(proc)) != NULL) {
            char text[CMD_PROCESS_NAME];

            if (!isdigit((unsigned char)e->d_name[0]))
                continue;
            comm(text, e->d_name);
            found = strcmp(text, program) == 0 && has_open(&s, e->d_name);
        }
    if (proc != NULL)
        closedir(proc);
    return found;
}

/* The mount namespace of a process; 0 where we may not look. */
static ino_t namespace_of(const char *pid)
{
    char path[64];
    struct stat st;

    snprintf(path, sizeof(path), "/proc/%.16s/ns/mnt", pid);
    return stat(path, &st) == 0 ? st.st_ino : 0;
}

static ino_t namespace_of_pid(pid_t pid)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", (int)pid);
    return namespace_of(text);
}

static int look_for_source(const struct serve_mounted *m, void *arg)
{
    return strcmp(m->source, arg) == 0;
}

static bool sees_mounted(const char *pid, const char *source)
{
    char path[64];
    bool found;
    FILE *f;

    snprintf(path, sizeof(path), "/proc/%.16s/mountinfo", pid);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    found = serve_mounts_read(f, look_for_source, (void *)source) == 1;
    fclose(f);
    return found;
}

int cmd_holders_elsewhere(const char *source, pid_t server, struct report *rep)
{
    ino_t own = namespace_of("self"), servers = namespace_of_pid(server);
    struct search s = {.n = 0};
    DIR *proc = opendir("/proc");
    struct dirent *e;

    while (proc != NULL && (e = readdir(proc)) != NULL) {
        char program[CMD_PROCESS_NAME], text[40];
        ino_t its = isdigit((unsigned char)e->d_name[0]) ? namespace_of(e->d_name) : 0;

        if (its == 0 || its == own || its == servers || !sees_mounted(e->d_name, source))
            continue;
        comm(program, e->d_name);
        snprintf(text, sizeof(text), " (%s)", program);
        name(&s, "process", e->d_name, text);
    }
    if (proc != NULL)
        closedir(proc);
    if (s.n == 0)
        return 0;
    return report_error(
        rep, EBUSY,
        "busy: still mounted in another mount namespace, of %s%s (--force ends that too)", s.text,
        s.n > NAMED_MAX ? " and more" : "");
}

bool cmd_holders_is_elsewhere(pid_t pid)
{
    ino_t its = namespace_of_pid(pid);

    return its != 0 && its != namespace_of("self");
}
