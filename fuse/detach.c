/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/detach.h"

/* The fork comes first and the daemon does all the work, so that keys, locks and threads never have
 * to pass from one process to another. It stays in the terminal's session until the mount works: it
 * may ask for a passphrase there.
 *
 * Inherited descriptors are closed late, since one may be the passphrase (--passphrase-file
 * /dev/fd/63), but listed early, before there are any of our own. */

#include "base/auto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static int remember(struct serve_detach *d, int fd)
{
    int *more = realloc(d->inherited, (d->n_inherited + 1) * sizeof(*more));

    if (more == NULL)
        return -ENOMEM;
    more[d->n_inherited++] = fd;
    d->inherited = more;
    return 0;
}

static int list_inherited(struct serve_detach *d)
{
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    int r = 0;

    if (dir == NULL)
        return -errno;
    while (r == 0 && (e = readdir(dir)) != NULL) {
        int fd = (int)strtol(e->d_name, NULL, 10);

        if (fd > STDERR_FILENO && fd != dirfd(dir))
            r = remember(d, fd);
    }
    closedir(dir);
    return r;
}

/* In the daemon: end with the command as long as it waits, even when it is killed. */
static int follow(pid_t command)
{
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0)
        return -errno;
    return getppid() == command ? 0 : -EINTR;
}

static int fork_daemon(struct serve_detach *d)
{
    pid_t command = getpid();
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    d->daemon = fork();
    if (d->daemon < 0) {
        int r = -errno;

        close(fds[0]);
        close(fds[1]);
        return r;
    }
    d->is_command = d->daemon > 0;
    d->pipe = d->is_command ? fds[0] : fds[1];
    close(d->is_command ? fds[1] : fds[0]);
    return d->is_command ? 0 : follow(command);
}

int serve_detach_start(struct serve_detach *d, bool background, struct report *rep)
{
    int r;

    *d = (struct serve_detach){.pipe = -1};
    r = list_inherited(d);
    if (r == 0 && background)
        r = fork_daemon(d);
    if (r < 0) {
        serve_detach_done(d);
        return report_errno(rep, -r, "cannot start the daemon");
    }
    return 0;
}

void serve_detach_done(struct serve_detach *d)
{
    if (d->pipe >= 0)
        close(d->pipe);
    d->pipe = -1;
    free(d->inherited);
    d->inherited = NULL;
}

static bool read_all(int fd, void *buf, size_t len)
{
    char *at = buf;

    while (len > 0) {
        ssize_t n = read(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* It ended without a word: killed, or by Ctrl-C at a moment when it asked nothing. */
static int explain(struct serve_detach *d, struct report *rep)
{
    int status = 0;

    while (waitpid(d->daemon, &status, 0) < 0 && errno == EINTR)
        ;
    if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM))
        return -EINTR;
    if (WIFSIGNALED(status))
        return report_error(rep, EIO, "the daemon was killed by signal %d (%s)", WTERMSIG(status),
                            strsignal(WTERMSIG(status)));
    return report_error(rep, EIO, "the daemon ended with status %d", WEXITSTATUS(status));
}

int serve_detach_wait(struct serve_detach *d, void *word, size_t len, struct report *rep)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    struct sigaction old_int, old_quit;
    int answer = 0, r;

    sigaction(SIGINT, &ignore, &old_int);
    sigaction(SIGQUIT, &ignore, &old_quit);
    if (!read_all(d->pipe, &answer, sizeof(answer)) ||
        (answer == 0 && !read_all(d->pipe, word, len))) {
        r = explain(d, rep);
    } else {
        r = answer;
        while (r < 0 && waitpid(d->daemon, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    sigaction(SIGINT, &old_int, NULL);
    sigaction(SIGQUIT, &old_quit, NULL);
    return r;
}

static bool write_all(int fd, const void *buf, size_t len)
{
    const char *at = buf;

    while (len > 0) {
        ssize_t n = write(fd, at, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

void serve_detach_tell(struct serve_detach *d, int r, const void *word, size_t len)
{
    if (d->pipe < 0)
        return;
    if (write_all(d->pipe, &r, sizeof(r)) && r == 0)
        write_all(d->pipe, word, len);
    close(d->pipe);
    d->pipe = -1;
}

static void stdio_to_null(void)
{
    AUTO_FD int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
}

void serve_detach_leave(struct serve_detach *d)
{
    for (unsigned i = 0; i < d->n_inherited; i++)
        close(d->inherited[i]);
    d->n_inherited = 0;
    umask(077);
    if (d->pipe < 0)
        return;
    prctl(PR_SET_PDEATHSIG, 0);
    setsid();
    if (chdir("/") < 0)
        return; /* it keeps a folder busy, nothing worse */
    stdio_to_null();
}
