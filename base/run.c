/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/run.h"

/* posix_spawn and never a shell: no word of ours is parsed again by anybody. Our own descriptors
 * are all close-on-exec; what we were started with (a pipe with a passphrase) is closed too. */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* open() takes the lowest number that is free. */
int run_open_stdio(struct report *rep)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            return report_errno(rep, errno, "cannot open /dev/null as descriptor %d", fd);
    return 0;
}

static const char system_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static int find_in(char *out, size_t size, const char *path, const char *program)
{
    while (*path != '\0') {
        int len = (int)strcspn(path, ":");
        int n = snprintf(out, size, "%.*s/%s", len, path, program);

        if (path[0] == '/' && n > 0 && (size_t)n < size && access(out, X_OK) == 0)
            return 0;
        path += len;
        path += strspn(path, ":");
    }
    return -ENOENT;
}

int run_find(char *out, size_t size, const char *program)
{
    const char *path = geteuid() != 0 ? getenv("PATH") : NULL;

    if (path != NULL && find_in(out, size, path, program) == 0)
        return 0;
    return find_in(out, size, system_path, program);
}

static void set_signals(posix_spawnattr_t *attr)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

struct how {
    enum run_output output;
    int from;           /* its stdin; 0: ours */
    int to;             /* where output goes that is not shown */
    const char *folder; /* NULL: ours */
};

static int spawn(pid_t *pid, const char *path, const char *const argv[], const struct how *how)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    set_signals(&attr);
    if (how->from > 0)
        posix_spawn_file_actions_adddup2(&actions, how->from, STDIN_FILENO);
    if (how->output != RUN_SHOW)
        posix_spawn_file_actions_adddup2(&actions, how->to, STDOUT_FILENO);
    if (how->output == RUN_HIDE_ALL)
        posix_spawn_file_actions_adddup2(&actions, how->to, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
    if (how->folder != NULL)
        posix_spawn_file_actions_addchdir_np(&actions, how->folder);
    r = posix_spawn(pid, path, &actions, &attr, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

static int start(pid_t *pid, const char *const argv[], const struct how *how, struct report *rep)
{
    char path[4096];
    int r;

    if (strcmp(argv[0], RUN_SELF) == 0)
        strcpy(path, RUN_SELF);
    else if (run_find(path, sizeof(path), argv[0]) < 0)
        return report_error(rep, ENOENT, "the program %s is not installed", argv[0]);
    r = spawn(pid, path, argv, how);
    return r < 0 ? report_errno(rep, -r, "cannot run %s", path) : 0;
}

static int finish(pid_t pid, const char *program, struct report *rep)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return report_errno(rep, errno, "cannot wait for %s", program);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int run_wait(const char *const argv[], enum run_output output, struct report *rep)
{
    return run_wait_in(NULL, argv, output, rep);
}

int run_wait_in(const char *folder, const char *const argv[], enum run_output output,
                struct report *rep)
{
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    const struct how how = {.output = output, .to = null, .folder = folder};
    pid_t pid;
    int r;

    if (null < 0)
        return report_errno(rep, errno, "/dev/null");
    r = start(&pid, argv, &how, rep);
    return r < 0 ? r : finish(pid, argv[0], rep);
}

static int write_all(int fd, const void *buf, size_t len)
{
    const char *at = buf;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno != EINTR)
            return -errno;
        at += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* One who does not read is a failed write and not our end, whatever we do about SIGPIPE otherwise:
 * it is kept back, and taken away where the write raised it. Other threads do not notice. */
static int write_line(int fd, const struct secret *line)
{
    const struct timespec now = {0};
    sigset_t pipe, pending, old;
    bool was_pending;
    int r;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE);
    r = write_all(fd, line->bytes, line->len);
    if (r == 0)
        r = write_all(fd, "\n", 1);
    if (r == -EPIPE && !was_pending)
        sigtimedwait(&pipe, NULL, &now);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

/* Who ends without reading says by its status what that means. */
int run_feed_in(const char *folder, const char *const argv[], const struct secret *line,
                enum run_output output, struct report *rep)
{
    AUTO_FD int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    struct how how = {.output = output, .to = null, .folder = folder};
    int fds[2], r, fed = 0;
    pid_t pid;

    if (null < 0 || pipe2(fds, O_CLOEXEC) < 0)
        return report_errno(rep, errno, "cannot run %s", argv[0]);
    how.from = fds[0];
    r = start(&pid, argv, &how, rep);
    close(fds[0]);
    if (r == 0)
        fed = write_line(fds[1], line);
    close(fds[1]);
    if (r == 0)
        r = finish(pid, argv[0], rep);
    if (r >= 0 && fed < 0 && fed != -EPIPE)
        return report_errno(rep, -fed, "cannot write to %s", argv[0]);
    return r;
}

int run_feed(const char *const argv[], const struct secret *line, enum run_output output,
             struct report *rep)
{
    return run_feed_in(NULL, argv, line, output, rep);
}

int run_read(const char *const argv[], char *out, size_t size, struct report *rep)
{
    int fds[2];
    size_t used = 0;
    char rest[512];
    ssize_t n;
    pid_t pid;
    int r;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return report_errno(rep, errno, "cannot run %s", argv[0]);
    r = start(&pid, argv, &(struct how){.output = RUN_HIDE_ALL, .to = fds[1]}, rep);
    close(fds[1]);
    do { /* what does not fit is read all the same, or the program would wait for us */
        bool room = used < size - 1;

        n = r < 0 ? 0
                  : read(fds[0], room ? out + used : rest, room ? size - 1 - used : sizeof(rest));
        used += room && n > 0 ? (size_t)n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));
    out[used] = '\0';
    close(fds[0]);
    return r < 0 ? r : finish(pid, argv[0], rep);
}
