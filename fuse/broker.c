/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/broker.h"

/* Root's process holds no key, opens nothing of the user's but the mount point (fuse/point.h), and
 * reads nothing from the user's process but one order of fixed size. Whatever that process becomes,
 * it gains no more by it than a mount at a folder of the user's.
 *
 * libfuse's own way for a program without rights is the setuid fusermount3, which needs to be
 * there, to be allowed /dev/fuse, and root's word in /etc/fuse.conf for allow_other; here root says
 * itself what is allowed. The new mount system calls would do the same as mount(2) on the
 * descriptor. */

#include "base/auto.h"
#include "fuse/become.h"
#include "fuse/mounts.h"
#include "fuse/pass.h"
#include "fuse/point.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct order {
    bool read_only, allow_other;
    char point[PATH_MAX], source[PATH_MAX];
};

struct broker {
    const struct serve_broker_spec *spec;
    struct report *rep;
    struct serve_become user;
    pid_t child;
    int socket, signals;
    bool asked;
    char point[PATH_MAX]; /* "": nothing was mounted */
    struct serve_mount_id mount;
};

/* Does the order hold what it may? Root knows its own words; the rest is for the kernel to judge.
 */
static int check_order(const struct broker *b, const struct order *o)
{
    if (memchr(o->point, '\0', sizeof(o->point)) == NULL || o->point[0] != '/' ||
        memchr(o->source, '\0', sizeof(o->source)) == NULL)
        return report_error(b->rep, EPERM, "the order to mount is no order");
    if (o->allow_other && !b->spec->allow_other)
        return report_error(b->rep, EPERM, "allow_other was not in root's words");
    return 0;
}

static int mount_on(const struct broker *b, const struct order *o, int point, int device)
{
    unsigned long flags = MS_NOSUID | MS_NODEV | (o->read_only ? MS_RDONLY : 0);
    char path[32], data[160];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", point);
    snprintf(data, sizeof(data),
             "fd=%d,rootmode=40000,user_id=%u,group_id=%u,default_permissions%s", device,
             (unsigned)b->user.uid, (unsigned)b->user.gid, o->allow_other ? ",allow_other" : "");
    if (mount(o->source, path, "fuse.hushvol", flags, data) == 0)
        return 0;
    return report_errno(b->rep, errno, "cannot mount at %s", o->point);
}

/* The table is asked by path, and he may have renamed a folder on the way since: what another put
 * below his folders is never ours to take down. */
static bool is_his(const struct broker *b)
{
    return b->mount.ours && b->mount.user_id == (long)b->user.uid;
}

/* Returns the device, or -errno (said). */
static int carry_out(struct broker *b, const struct order *o)
{
    AUTO_FD int point = -1, device = -1;
    int r = check_order(b, o);

    if (r < 0)
        return r;
    point = serve_point_open(o->point, &b->user, b->spec->point, b->rep);
    if (point < 0)
        return point;
    device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (device < 0)
        return report_error(b->rep, EOPNOTSUPP,
                            "cannot open /dev/fuse: %s (see \"hushvol doctor\")", strerror(errno));
    r = mount_on(b, o, point, device);
    if (r < 0)
        return r;
    if (serve_mounts_at(&b->mount, o->point) == 0 && is_his(b))
        strcpy(b->point, o->point);
    return TAKE_FD(device);
}

/* One order and no second: then the socket is of no more use. */
static int take_order(struct broker *b)
{
    struct order o = {0};
    ssize_t n = recv(b->socket, &o, sizeof(o), MSG_DONTWAIT);
    AUTO_FD int device = -1;
    int r;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n == (ssize_t)sizeof(o)) {
        device = carry_out(b, &o);
        r = device < 0 ? device : 0;
        serve_pass(b->socket, &r, sizeof(r), device);
    }
    close(b->socket);
    b->socket = -1;
    return device == -ENOTRECOVERABLE ? device : 0;
}

/* What was typed on the terminal reached both processes; the rest is passed on. */
static void read_signals(const struct broker *b)
{
    struct signalfd_siginfo info;

    while (read(b->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        if (info.ssi_signo != SIGCHLD && info.ssi_code <= 0)
            kill(b->child, (int)info.ssi_signo);
}

static int has_ended(const struct broker *b, int *status)
{
    pid_t pid = waitpid(b->child, status, WNOHANG);

    if (pid < 0 && errno != EINTR)
        return report_errno(b->rep, errno, "cannot wait for the process of %s", b->user.name);
    return pid == b->child;
}

/* 1 when the child has ended. */
static int wait_for_child(struct broker *b, int *status)
{
    for (;;) {
        struct pollfd fds[] = {{b->signals, POLLIN, 0}, {b->socket, POLLIN, 0}};
        int r = has_ended(b, status);

        if (r != 0)
            return r;
        poll(fds, 2, -1);
        if (fds[0].revents != 0)
            read_signals(b);
        if (fds[1].revents != 0)
            r = take_order(b);
        if (r < 0)
            return report_errno(b->rep, -r, "cannot become root again");
    }
}

/* Where there is no fusermount3, the guard of the user's cannot do it. */
static void take_down(const struct broker *b)
{
    struct serve_mount_id now;

    if (b->point[0] != '\0' && serve_mounts_at(&now, b->point) == 0 &&
        serve_mounts_same(&now, &b->mount))
        serve_unmount(b->point, true, b->rep);
}

static void choose_signals(sigset_t *set)
{
    static const int taken[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};

    sigemptyset(set);
    for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
        sigaddset(set, taken[i]);
}

/* In root's process. */
static int serve(struct broker *b, const sigset_t *set, int *status)
{
    int r;

    b->signals = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (b->signals < 0)
        return report_errno(b->rep, errno, "cannot wait for signals");
    r = wait_for_child(b, status);
    if (r == 1 && (b->spec->foreground || *status != 0))
        take_down(b);
    close(b->signals);
    return r;
}

/* In the user's process. Root's may be killed: then this one ends, too. */
static int settle(const struct broker *b, pid_t root)
{
    int r = serve_become(&b->user, b->rep);

    if (r < 0)
        return r;
    if (prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0) < 0 || getppid() != root)
        return report_error(b->rep, EINTR, "root's process is gone");
    return 0;
}

static int part(struct broker *b, int sockets[2], int *broker, int *status)
{
    const pid_t root = getpid();
    sigset_t set, before;
    int r;

    choose_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    b->child = fork();
    if (b->child == 0) {
        close(sockets[0]);
        *broker = sockets[1];
        r = settle(b, root);
    } else {
        close(sockets[1]);
        b->socket = sockets[0];
        r = b->child < 0
                ? report_errno(b->rep, errno, "cannot start a process for %s", b->user.name)
                : serve(b, &set, status);
        if (b->socket >= 0)
            close(b->socket);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return r;
}

int serve_broker_start(const struct serve_broker_spec *spec, int *broker, int *status,
                       struct report *rep)
{
    struct broker b = {.spec = spec, .rep = rep, .socket = -1, .signals = -1};
    int sockets[2];
    int r = serve_become_find(&b.user, spec->user, rep);

    if (r < 0)
        return r;
    fflush(NULL); /* or both processes would print what is waiting */
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0)
        r = report_errno(rep, errno, "cannot start a process for %s", spec->user);
    else
        r = part(&b, sockets, broker, status);
    serve_become_done(&b.user);
    return r;
}

static int receive(int from, int *fd)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
    int r = -EPIPE;
    struct iovec number = {.iov_base = &r, .iov_len = sizeof(r)};
    struct msghdr m = {
        .msg_iov = &number, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *c;
    ssize_t n;

    do {
        n = recvmsg(from, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof(r))
        return -EPIPE;
    c = CMSG_FIRSTHDR(&m);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
        memcpy(fd, CMSG_DATA(c), sizeof(int));
    return r;
}

int serve_broker_ask(int broker, const struct serve_broker_mount *m, struct report *rep)
{
    struct order o = {.read_only = m->read_only, .allow_other = m->allow_other};
    int fd = -1, r = -EPIPE;

    if (strlen(m->point) >= sizeof(o.point) || strlen(m->source) >= sizeof(o.source))
        return report_errno(rep, ENAMETOOLONG, "cannot mount at %s", m->point);
    strcpy(o.point, m->point);
    strcpy(o.source, m->source);
    if (send(broker, &o, sizeof(o), MSG_NOSIGNAL) == (ssize_t)sizeof(o))
        r = receive(broker, &fd);
    if (r == -EPIPE || (r == 0 && fd < 0))
        return report_error(rep, EPIPE, "root's process, which was to mount it, is gone");
    return r < 0 ? r : fd;
}
