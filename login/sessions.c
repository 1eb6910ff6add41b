/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/sessions.h"

/* Lines have one length, and a change writes only from the first line that differs; so whatever a
 * crash leaves is still lines, at worst one too many, of a process that is gone and goes with the
 * next close. A file in memory is not worth a second one and a rename.
 *
 * The lock of the lines is flock, that of the work an open file description lock: they do not know
 * of each other, and both belong to the descriptor, not to the process, which is not ours. */

#include "base/auto.h"
#include "fuse/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LINE 32
#define LINE_FORM "%10d %20llu\n" /* LINE bytes */

struct lines {
    unsigned n;
    struct login_process of[LOGIN_SESSIONS_MAX];
};

/* The state and the start of a process. The name between them may hold anything, a ")" too. */
static int read_stat(pid_t pid, char *state, unsigned long long *start)
{
    char path[32], text[1024], *at;
    AUTO_FD int fd = -1;
    ssize_t n;

    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    n = read(fd, text, sizeof(text) - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    at = strrchr(text, ')');
    if (at == NULL || sscanf(at + 1,
                             " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                             "%*d %*d %llu",
                             state, start) != 2)
        return -EUCLEAN;
    return 0;
}

int login_process_self(struct login_process *ret)
{
    char state;

    ret->pid = getpid();
    return read_stat(ret->pid, &state, &ret->start);
}

static bool is_same(const struct login_process *a, const struct login_process *b)
{
    return a->pid == b->pid && a->start == b->start;
}

/* Only what is known for certain: when /proc can not be read, nobody is gone. */
static bool is_gone(const struct login_process *p)
{
    unsigned long long start;
    char state;
    int r = read_stat(p->pid, &state, &start);

    return r == -ENOENT || r == -ESRCH ||
           (r == 0 && (start != p->start || state == 'Z' || state == 'X'));
}

int login_sessions_open(const char *folder, uid_t uid, struct report *rep)
{
    char path[PATH_MAX];
    AUTO_FD int top = serve_folder_make(folder), below = -1, fd = -1;
    struct stat st;

    if (top < 0)
        return report_errno(rep, -top, "%s (a folder of root with mode 0700)", folder);
    snprintf(path, sizeof(path), "%s/login", folder);
    below = serve_folder_make(path);
    if (below < 0)
        return report_errno(rep, -below, "%s (a folder of root with mode 0700)", path);
    snprintf(path, sizeof(path), "%" PRIu32, (uint32_t)uid);
    fd = openat(below, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                0600);
    if (fd < 0 || fstat(fd, &st) < 0)
        return report_errno(rep, errno, "%s/login/%s", folder, path);
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0 ||
        st.st_nlink != 1)
        return report_error(rep, EPERM, "%s/login/%s is not a file of root's alone (remove it)",
                            folder, path);
    return TAKE_FD(fd);
}

static bool parse_line(struct login_process *ret, const char *line)
{
    char text[LINE + 1], again[64];

    memcpy(text, line, LINE);
    text[LINE] = '\0';
    if (sscanf(text, "%d %llu", &ret->pid, &ret->start) != 2)
        return false;
    snprintf(again, sizeof(again), LINE_FORM, ret->pid, ret->start);
    return ret->pid > 0 && strcmp(again, text) == 0;
}

static int load(int fd, struct lines *l, struct report *rep)
{
    AUTO_FREE char *text = malloc(LOGIN_SESSIONS_MAX * LINE + 1);
    ssize_t n = text != NULL ? pread(fd, text, LOGIN_SESSIONS_MAX * LINE + 1, 0) : -1;

    l->n = 0;
    if (n < 0)
        return report_errno(rep, text != NULL ? errno : ENOMEM, "cannot count the sessions");
    if (n % LINE == 0 && n <= LOGIN_SESSIONS_MAX * LINE)
        for (; l->n < (size_t)n / LINE; l->n++)
            if (!parse_line(&l->of[l->n], text + (size_t)l->n * LINE))
                break;
    if (l->n * (ssize_t)LINE != n) {
        l->n = 0;
        report_warn(rep, "the file that counts the sessions is damaged and begun anew: volumes may "
                         "be closed while a session is open");
    }
    return 0;
}

/* The lines from one on, and the end behind the last. */
static int store(int fd, const struct lines *l, unsigned from, struct report *rep)
{
    for (unsigned i = from; i < l->n; i++) {
        char line[64];

        snprintf(line, sizeof(line), LINE_FORM, l->of[i].pid, l->of[i].start);
        if (pwrite(fd, line, LINE, (off_t)i * LINE) != LINE)
            return report_errno(rep, errno, "cannot count the sessions");
    }
    if (ftruncate(fd, (off_t)l->n * LINE) < 0)
        return report_errno(rep, errno, "cannot count the sessions");
    return (int)l->n;
}

static void drop(struct lines *l, unsigned i)
{
    l->n--;
    memmove(&l->of[i], &l->of[i + 1], (l->n - i) * sizeof(l->of[0]));
}

/* The first line from which on something differs. */
static unsigned drop_gone(struct lines *l, unsigned from)
{
    for (unsigned i = l->n; i-- > 0;)
        if (is_gone(&l->of[i])) {
            drop(l, i);
            from = i < from ? i : from;
        }
    return from;
}

static int lock_and_load(int fd, struct lines *l, struct report *rep)
{
    while (flock(fd, LOCK_EX) < 0)
        if (errno != EINTR)
            return report_errno(rep, errno, "cannot count the sessions");
    return load(fd, l, rep);
}

static int add(int fd, struct lines *l, const struct login_process *p, struct report *rep)
{
    int r = lock_and_load(fd, l, rep);
    unsigned from = l->n;

    if (r < 0)
        return r;
    if (l->n == LOGIN_SESSIONS_MAX)
        from = drop_gone(l, from);
    if (l->n == LOGIN_SESSIONS_MAX)
        return report_error(rep, ENOSPC, "%d sessions are open: this one is not counted",
                            LOGIN_SESSIONS_MAX);
    l->of[l->n++] = *p;
    return store(fd, l, from, rep);
}

/* Which line goes when p closes a session; there is one. */
static unsigned choose(const struct lines *l, const struct login_process *p, bool *own)
{
    unsigned oldest = 0;

    *own = false;
    for (unsigned i = l->n; i-- > 0;) {
        if (is_same(&l->of[i], p)) {
            *own = true;
            return i;
        }
        if (is_gone(&l->of[i]))
            oldest = i;
    }
    return oldest;
}

static int take_out(int fd, struct lines *l, const struct login_process *p, struct report *rep)
{
    int r = lock_and_load(fd, l, rep);
    unsigned from;
    bool own;

    if (r < 0 || l->n == 0)
        return r;
    from = choose(l, p, &own);
    drop(l, from);
    if (own)
        from = drop_gone(l, from);
    return store(fd, l, from, rep);
}

/* Some kilobytes too many for the stack of a host's thread; and the lock ends here, with all. */
static int with_lines(int fd, const struct login_process *p, struct report *rep,
                      int (*fn)(int, struct lines *, const struct login_process *, struct report *))
{
    AUTO_FREE struct lines *l = malloc(sizeof(*l));
    int r = l == NULL ? report_errno(rep, ENOMEM, "cannot count the sessions") : fn(fd, l, p, rep);

    flock(fd, LOCK_UN);
    return r;
}

static int count(int fd, struct lines *l, const struct login_process *p, struct report *rep)
{
    int r = lock_and_load(fd, l, rep);

    (void)p;
    return r < 0 ? r : (int)l->n;
}

int login_sessions_add(int fd, const struct login_process *p, struct report *rep)
{
    return with_lines(fd, p, rep, add);
}

int login_sessions_remove(int fd, const struct login_process *p, struct report *rep)
{
    return with_lines(fd, p, rep, take_out);
}

int login_sessions_count(int fd, struct report *rep)
{
    return with_lines(fd, NULL, rep, count);
}

/* Asked again and again, since a lock with an end of its patience there is not, but for alarms,
 * which are the host's. */
int login_sessions_work(int fd, unsigned timeout, struct report *rep)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const struct timespec moment = {.tv_nsec = 50 * 1000 * 1000};

    for (unsigned i = 0; fcntl(fd, F_OFD_SETLK, &lock) < 0; i++) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return report_errno(rep, errno, "cannot lock the sessions of this user");
        if (i / 20 >= timeout)
            return report_error(rep, EBUSY,
                                "another login or logout of this user is still at work after %u "
                                "seconds",
                                timeout);
        nanosleep(&moment, NULL);
    }
    return 0;
}

void login_sessions_rest(int fd)
{
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

    fcntl(fd, F_OFD_SETLK, &lock);
}
