/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/control.h"

/* One thread serves the socket beside its signals, so nothing here may wait: clients are polled,
 * each has a deadline, and an answer goes out in one send into a socket whose buffer is larger than
 * any answer; a client whose buffer does not take it loses its connection. */

#include "base/auto.h"
#include "fuse/control_address.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define CLIENT_MS 2000 /* from connecting to the end of the request */

struct client {
    int fd;     /* -1: free */
    int passed; /* a descriptor that came with the request, or -1 */
    int64_t deadline_ms;
    size_t used;
    char line[SERVE_CONTROL_LINE];
};

struct serve_control {
    int listener;
    serve_control_fn *fn;
    void *arg;
    struct client clients[SERVE_CONTROL_CLIENTS];
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int serve_control_adopt(struct serve_control **ret, int listener, serve_control_fn *fn, void *arg)
{
    struct serve_control *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        close(listener);
        return -ENOMEM;
    }
    c->listener = listener;
    c->fn = fn;
    c->arg = arg;
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++)
        c->clients[i].fd = c->clients[i].passed = -1;
    *ret = c;
    return 0;
}

/* The mode is 0600 before the name exists: bind() makes the file with the socket's own mode. */
static int bind_and_listen(int fd, const struct serve_slot *slot)
{
    struct sockaddr_un at;
    char file[SERVE_NAME_MAX + 8];

    snprintf(file, sizeof(file), "%s.sock", serve_slot_name(slot));
    unlinkat(serve_slot_folder(slot), file, 0);
    control_address(&at, serve_slot_folder(slot), serve_slot_name(slot));
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 ||
        listen(fd, 16) < 0)
        return -errno;
    return 0;
}

int serve_control_open(struct serve_control **ret, const struct serve_slot *slot,
                       serve_control_fn *fn, void *arg, struct report *rep)
{
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r = fd < 0 ? -errno : bind_and_listen(fd, slot);

    if (r == 0)
        r = serve_control_adopt(ret, TAKE_FD(fd), fn, arg);
    return r < 0 ? report_errno(rep, -r, "cannot make the control socket") : 0;
}

static void drop_client(struct client *cl)
{
    if (cl->fd >= 0)
        close(cl->fd);
    if (cl->passed >= 0)
        close(cl->passed);
    cl->fd = cl->passed = -1;
}

void serve_control_close(struct serve_control *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++)
        drop_client(&c->clients[i]);
    close(c->listener);
    free(c);
}

static struct client *free_client(struct serve_control *c)
{
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++)
        if (c->clients[i].fd < 0)
            return &c->clients[i];
    return NULL;
}

int serve_control_prepare(struct serve_control *c, struct pollfd fds[SERVE_CONTROL_FDS])
{
    int64_t first = INT64_MAX, now = now_ms();

    fds[0] = (struct pollfd){.fd = free_client(c) != NULL ? c->listener : -1, .events = POLLIN};
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++) {
        fds[i + 1] = (struct pollfd){.fd = c->clients[i].fd, .events = POLLIN};
        if (c->clients[i].fd >= 0 && c->clients[i].deadline_ms < first)
            first = c->clients[i].deadline_ms;
    }
    if (first == INT64_MAX)
        return -1;
    return first > now ? (int)(first - now) : 0;
}

static bool may_ask(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void accept_client(struct serve_control *c)
{
    struct client *cl = free_client(c);
    int fd = accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0)
        return;
    if (cl == NULL || !may_ask(fd)) {
        close(fd);
        return;
    }
    cl->fd = fd;
    cl->used = 0;
    cl->deadline_ms = now_ms() + CLIENT_MS;
}

struct json_object *serve_control_answer(const char *error)
{
    struct json_object *o = json_object_new_object();

    json_object_object_add(o, "ok", json_object_new_boolean(error == NULL));
    if (error != NULL)
        json_object_object_add(o, "error", json_object_new_string(error));
    return o;
}

struct json_object *serve_control_refuse(int err, const char *error)
{
    struct json_object *o = serve_control_answer(error);

    json_object_object_add(o, "errno", json_object_new_int(err));
    return o;
}

static void send_object(int fd, struct json_object *o)
{
    AUTO_FREE char *line = NULL;
    int len = asprintf(&line, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));

    if (len < 0) {
        line = NULL;
        return;
    }
    if (len <= SERVE_CONTROL_REPLY)
        send(fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void answer_line(struct serve_control *c, struct client *cl)
{
    struct json_object *request = json_tokener_parse(cl->line);
    struct json_object *answer = NULL;

    if (json_object_get_type(request) == json_type_object)
        answer = c->fn(request, &cl->passed, c->arg);
    else
        answer = serve_control_answer("the request is no JSON object");
    send_object(cl->fd, answer);
    json_object_put(answer);
    json_object_put(request);
}

/* Whatever comes of descriptors is ours to close; the last one counts. */
static void take_descriptors(struct client *cl, struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            if (cl->passed >= 0)
                close(cl->passed);
            memcpy(&cl->passed, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
        }
    }
}

static ssize_t receive(struct client *cl)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(4 * sizeof(int))];
    struct iovec line = {.iov_base = cl->line + cl->used, .iov_len = sizeof(cl->line) - cl->used};
    struct msghdr m = {
        .msg_iov = &line, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    ssize_t n = recvmsg(cl->fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n >= 0)
        take_descriptors(cl, &m);
    return n;
}

static void read_client(struct serve_control *c, struct client *cl)
{
    ssize_t n = receive(cl);
    char *end;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        drop_client(cl);
        return;
    }
    cl->used += (size_t)n;
    end = memchr(cl->line, '\n', cl->used);
    if (end != NULL) {
        *end = '\0';
        answer_line(c, cl);
        drop_client(cl);
    } else if (cl->used == sizeof(cl->line)) {
        drop_client(cl);
    }
}

void serve_control_turn(struct serve_control *c, const struct pollfd fds[SERVE_CONTROL_FDS])
{
    int64_t now = now_ms();

    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++) {
        struct client *cl = &c->clients[i];

        if (cl->fd < 0 || cl->fd != fds[i + 1].fd)
            continue;
        if (fds[i + 1].revents != 0)
            read_client(c, cl);
        if (cl->fd >= 0 && cl->deadline_ms <= now)
            drop_client(cl);
    }
    if (fds[0].fd >= 0 && fds[0].revents != 0)
        accept_client(c);
}
