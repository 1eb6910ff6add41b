/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/guard.h"

/* Daemon and guard share a pair of sockets. The end of the daemon, however it comes, closes its
 * side, and the guard reads the end of the stream: no signal, no polling, no pid that could be
 * reused.
 *
 * libfuse's auto_unmount works alike but fails on a mount point below a private folder; and a
 * process that waits for its parent's death misses a daemon that forks after it.
 *
 * The guard knows no key: it is made before the container is opened, and holds no descriptor but
 * its socket, so neither the container's lock nor a terminal stays open because of it. */

#include "base/auto.h"
#include "base/run.h"
#include "fuse/mounts.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <linux/limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define BUSY_TRIES 10
#define BUSY_MS 50 /* between them */

enum order_kind { ORDER_WATCH, ORDER_UNMOUNT };
struct order {
    enum order_kind kind;
    struct serve_mount_id id;
    char point[PATH_MAX];
};

struct serve_guard {
    pid_t pid;
    int socket;
};

static void keep_only(int fd)
{
    if (fd > 0)
        close_range(0, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
}

static bool still_there(const struct order *watched)
{
    struct serve_mount_id now;

    return watched->point[0] != '\0' && serve_mounts_at(&now, watched->point) == 0 &&
           serve_mounts_same(&now, &watched->id);
}

/* The kernel closes files a moment after their owners do, so busy may be over at once. */
static int unmount(const struct order *watched)
{
    int r = -EBUSY;

    for (int i = 0; i < BUSY_TRIES && r == -EBUSY && still_there(watched); i++) {
        if (i > 0)
            poll(NULL, 0, BUSY_MS);
        r = serve_unmount(watched->point, false, NULL);
    }
    if (!still_there(watched))
        return 0;
    r = serve_unmount(watched->point, true, NULL);
    return r < 0 ? r : 1;
}

static void guard_main(int fd)
{
    struct order watched = {.kind = ORDER_WATCH}, order;

    prctl(PR_SET_NAME, "hushvol-guard");
    for (;;) {
        ssize_t n = recv(fd, &order, sizeof(order), 0);
        int r;

        if (n < 0 && errno == EINTR)
            continue;
        if (n != (ssize_t)sizeof(order))
            break;
        if (order.kind == ORDER_WATCH) {
            watched = order;
            continue;
        }
        r = unmount(&watched);
        send(fd, &r, sizeof(r), MSG_NOSIGNAL);
    }
    if (still_there(&watched))
        serve_unmount(watched.point, true, NULL);
}

/* Whatever ends the daemon's session or group must leave the guard to its work. */
static void leave_daemon(int fd)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};

    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    setsid();
    keep_only(fd);
    if (run_open_stdio(NULL) < 0 || chdir("/") < 0)
        _exit(1);
}

int serve_guard_start(struct serve_guard **ret, struct report *rep)
{
    AUTO_FREE struct serve_guard *g = calloc(1, sizeof(*g));
    int fds[2];

    if (g == NULL || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return report_errno(rep, errno, "cannot start the guard process");
    g->pid = fork();
    if (g->pid == 0) {
        leave_daemon(fds[1]);
        guard_main(fds[1]);
        _exit(0); /* the exit handlers are the daemon's */
    }
    close(fds[1]);
    g->socket = fds[0];
    if (g->pid < 0) {
        close(fds[0]);
        return report_errno(rep, errno, "cannot start the guard process");
    }
    *ret = TAKE(g);
    return 0;
}

static int send_order(struct serve_guard *g, const struct order *order)
{
    if (send(g->socket, order, sizeof(*order), MSG_NOSIGNAL) != (ssize_t)sizeof(*order))
        return -errno;
    return 0;
}

int serve_guard_watch(struct serve_guard *g, const char *mountpoint, struct report *rep)
{
    struct order order = {.kind = ORDER_WATCH};
    int r;

    if (strlen(mountpoint) >= sizeof(order.point))
        return report_error(rep, ENAMETOOLONG, "the path of the mount point is too long");
    strcpy(order.point, mountpoint);
    r = serve_mounts_at(&order.id, mountpoint);
    if (r < 0)
        return report_errno(rep, -r, "cannot find %s in the mount table", mountpoint);
    r = send_order(g, &order);
    if (r < 0)
        return report_errno(rep, -r, "the guard process is gone");
    return 0;
}

int serve_guard_unmount(struct serve_guard *g)
{
    struct order order = {.kind = ORDER_UNMOUNT};
    int answer, r;

    r = send_order(g, &order);
    if (r < 0)
        return r;
    if (recv(g->socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer))
        return -EIO;
    return answer;
}

void serve_guard_done(struct serve_guard *g)
{
    if (g == NULL)
        return;
    close(g->socket);
    while (waitpid(g->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    free(g);
}
