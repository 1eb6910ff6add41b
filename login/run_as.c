/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/run_as.h"

/* 1. The host may have threads, so the child calls nothing but what may be called after a fork of
 *    such a process: groups are looked up before, and ids are set by system calls (the C library's
 *    functions would have every thread of the host take part, and there is none in the child).
 * 2. The host may ignore SIGCHLD, which makes waiting fail, or wait for any child, which takes ours
 *    away. So a keeper stands between: a process cloned without a signal at its end, which only who
 *    asks for it by number with __WALL gets. The program's own end is told by SIGCHLD whatever it
 *    was cloned with, since execve sets that: to the keeper, which passes the status on as its own.
 * 3. The input is in its pipe before there is a child: no write of ours can block, and no SIGPIPE
 *    can come of one. It is not in the environment, the arguments or a file.
 * 4. Memory is copied, not shared: what the child sets is not the host's. From the change of the
 * user to execve the kernel lets nobody look into it (a process that changed its user is not
 * dumpable).
 * 5. What it prints is read to the end of the process, not of the pipe: something that it leaves
 *    behind may hold the pipe for ever. */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define GRACE_MS 2000 /* from SIGTERM to SIGKILL, and from there until it is left alone */
#define KEEPER_STACK 32768
#define NOT_STARTED 125 /* exit status of a child that did not get as far as the program */

struct child {
    const struct login_run *run;
    gid_t *groups; /* owned */
    int n_groups;
    int in, out, err;       /* its ends: of pipes, or /dev/null; never 0, 1 or 2 */
    int from_out, from_err; /* ours */
    pid_t pid;              /* of the keeper, and of the group */
    int pidfd;
};

static void child_done(struct child *c)
{
    const int fds[] = {c->in, c->out, c->err, c->from_out, c->from_err, c->pidfd};

    for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        auto_fd(&fds[i]);
    free(c->groups);
}

/* The host may have closed some of the first three; they are no good here, since the child's own
 * are put there one after the other. */
static int keep_high(int fd)
{
    int high;

    if (fd < 0)
        return -errno;
    if (fd > STDERR_FILENO)
        return fd;
    high = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return high < 0 ? -errno : high;
}

static int make_pipe(int *reader, int *writer)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *reader = keep_high(fds[0]);
    *writer = keep_high(fds[1]);
    return *reader < 0 ? *reader : *writer < 0 ? *writer : 0;
}

/* Lookups of groups may ask a server: in the host, where that is as safe as anything. */
static int find_groups(struct child *c, const struct login_user *u)
{
    int n = 32;

    for (;;) {
        gid_t *more = realloc(c->groups, (size_t)n * sizeof(*more));
        int had = n;

        if (more == NULL)
            return -ENOMEM;
        c->groups = more;
        if (getgrouplist(u->name, u->gid, more, &n) >= 0) {
            c->n_groups = n;
            return 0;
        }
        n = n > had ? n : 2 * had;
    }
}

/* The writing end is closed before there is a child: its input ends after these bytes. */
static int fill_input(struct child *c, const struct secret *input)
{
    AUTO_FD int writer = -1;
    ssize_t n;
    int r;

    if (input == NULL)
        return (c->in = keep_high(open("/dev/null", O_RDONLY | O_CLOEXEC))) < 0 ? c->in : 0;
    if (input->len > LOGIN_INPUT_MAX)
        return -E2BIG;
    r = make_pipe(&c->in, &writer);
    if (r < 0)
        return r;
    n = write(writer, input->bytes, input->len);
    return n < 0 ? -errno : (size_t)n < input->len ? -E2BIG : 0;
}

static int prepare(struct child *c)
{
    const struct login_run *run = c->run;
    int r = find_groups(c, run->user);

    if (r == 0)
        r = fill_input(c, run->input);
    if (r == 0)
        r = make_pipe(&c->from_err, &c->err);
    if (r == 0 && run->out != NULL)
        r = make_pipe(&c->from_out, &c->out);
    else if (r == 0)
        r = (c->out = keep_high(open("/dev/null", O_WRONLY | O_CLOEXEC))) < 0 ? c->out : 0;
    return r;
}

/* Where uid_t has had 16 bits once, the first calls of these names still take that. */
#ifdef SYS_setresuid32
#define SET_GROUPS SYS_setgroups32
#define SET_GID SYS_setresgid32
#define SET_UID SYS_setresuid32
#else
#define SET_GROUPS SYS_setgroups
#define SET_GID SYS_setresgid
#define SET_UID SYS_setresuid
#endif

static bool become(const struct child *c)
{
    const struct login_user *u = c->run->user;

    return syscall(SET_GROUPS, c->n_groups, c->groups) == 0 &&
           syscall(SET_GID, u->gid, u->gid, u->gid) == 0 &&
           syscall(SET_UID, u->uid, u->uid, u->uid) == 0;
}

static void default_signals(void)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int sig = 1; sig <= SIGRTMAX; sig++)
        sigaction(sig, &plain, NULL); /* some can not be set, and are default */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static int program_main(const struct child *c)
{
    if (!become(c))
        return NOT_STARTED;
    umask(077);
    default_signals();
    execve(c->run->argv[0], (char *const *)c->run->argv, (char *const *)c->run->env);
    return NOT_STARTED;
}

/* Of the ends of pipes none stays with the keeper, or the other side would never see them closed.
 */
static int keep(pid_t program)
{
    int status;

    close_range(STDIN_FILENO, STDERR_FILENO, 0);
    while (waitpid(program, &status, 0) < 0)
        if (errno != EINTR)
            return NOT_STARTED;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* In the keeper, whose signals stay blocked but for SIGKILL. A session of its own with the program:
 * no terminal to ask on, and one number for both. */
static int keeper_main(void *arg)
{
    const struct sigaction plain = {.sa_handler = SIG_DFL};
    const struct child *c = arg;
    pid_t program;

    sigaction(SIGCHLD, &plain, NULL);
    if (setsid() < 0 || dup2(c->in, STDIN_FILENO) < 0 || dup2(c->out, STDOUT_FILENO) < 0 ||
        dup2(c->err, STDERR_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) < 0 ||
        chdir("/") < 0)
        return NOT_STARTED;
    program = _Fork();
    if (program < 0)
        return NOT_STARTED;
    return program == 0 ? program_main(c) : keep(program);
}

/* Signals wait meanwhile: in the keeper the host's handlers would run. */
static int start(struct child *c)
{
    _Alignas(16) char stack[KEEPER_STACK]; /* the keeper's copy of it; stacks grow down */
    sigset_t all, before;
    int r = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->pid = clone(keeper_main, stack + sizeof(stack), CLONE_PIDFD, c, &c->pidfd);
    if (c->pid < 0)
        r = -errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return r;
}

static long long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

struct text {
    char *bytes;
    size_t size, used;
};

/* Once from fd. What there is no room for is read all the same, or the program would wait for us.
 * False at the end. */
static bool take(int fd, struct text *t)
{
    char rest[512];
    bool room = t->size > 0 && t->used < t->size - 1;
    ssize_t n =
        read(fd, room ? t->bytes + t->used : rest, room ? t->size - 1 - t->used : sizeof(rest));

    t->used += room && n > 0 ? (size_t)n : 0;
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Read what is there until the process ends or the time is up; then what is still in the pipes, at
 * most as much as they hold, since somebody may go on writing. True when it has ended. */
static bool follow(struct child *c, struct text *out, struct text *err, long long until)
{
    struct pollfd f[3] = {{.fd = c->pidfd, .events = POLLIN},
                          {.fd = c->from_err, .events = POLLIN},
                          {.fd = c->from_out, .events = POLLIN}};

    while (f[0].revents == 0) {
        long long left = until - now_ms();

        if (left <= 0)
            return false;
        if (poll(f, 3, (int)left) <= 0) {
            f[0].revents = 0;
            continue;
        }
        if (f[1].revents != 0 && !take(f[1].fd, err))
            f[1].fd = -1;
        if (f[2].revents != 0 && !take(f[2].fd, out))
            f[2].fd = -1;
    }
    for (unsigned i = 0; i < 128 && poll(f + 1, 2, 0) > 0; i++) {
        if (f[1].revents != 0 && !take(f[1].fd, err))
            f[1].fd = -1;
        if (f[2].revents != 0 && !take(f[2].fd, out))
            f[2].fd = -1;
    }
    return true;
}

/* Its group has its number, which is nobody else's before we have waited for it. */
static void end_by(const struct child *c, int sig)
{
    if (kill(-c->pid, sig) < 0)
        kill(c->pid, sig); /* it has not come as far as a group of its own */
}

static int finish(struct child *c, struct text *out, struct text *err)
{
    const int signals[] = {SIGTERM, SIGKILL};
    bool ended = follow(c, out, err, now_ms() + c->run->timeout * 1000LL), late = !ended;
    int status = 0;

    for (unsigned i = 0; !ended && i < 2; i++) {
        end_by(c, signals[i]);
        ended = follow(c, out, err, now_ms() + GRACE_MS);
    }
    if (late && ended)
        end_by(c, SIGKILL); /* what it started, and what did not care */
    if (ended)
        while (waitpid(c->pid, &status, __WALL) < 0 && errno == EINTR)
            continue;
    if (late)
        return -ETIMEDOUT;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); /* the keeper's */
}

/* NUL would hide what comes after it. */
static void close_text(struct text *t)
{
    for (size_t i = 0; i < t->used; i++)
        if (t->bytes[i] == '\0')
            t->bytes[i] = '?';
    if (t->size > 0)
        t->bytes[t->used] = '\0';
}

static int run_child(struct child *c, struct report *rep)
{
    const struct login_run *run = c->run;
    struct text out = {run->out, run->out != NULL ? run->out_size : 0, 0};
    struct text err = {run->err, run->err_size, 0};
    int r = prepare(c);

    if (r == 0)
        r = start(c);
    if (r < 0)
        return report_errno(rep, -r, "cannot run %s", run->argv[0]);
    close(TAKE_FD(c->err));
    close(TAKE_FD(c->out));
    close(TAKE_FD(c->in)); /* the password goes with the last reader */
    r = finish(c, &out, &err);
    close_text(&out);
    close_text(&err);
    if (r == -ETIMEDOUT)
        return report_error(rep, ETIMEDOUT, "%s %s was stopped: not done within %u seconds",
                            run->argv[0], run->argv[1], run->timeout);
    if (r == NOT_STARTED)
        return report_error(rep, ENOEXEC, "%s cannot be run as %s (is it there?)", run->argv[0],
                            run->user->name);
    return r;
}

int login_run_as(const struct login_run *run, struct report *rep)
{
    struct child c = {
        .run = run, .in = -1, .out = -1, .err = -1, .from_out = -1, .from_err = -1, .pidfd = -1};
    int r = run_child(&c, rep);

    child_done(&c);
    return r;
}
