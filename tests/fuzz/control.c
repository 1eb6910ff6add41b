/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes the control socket of a mount: whatever a client sends, in pieces, it gets one answer that
 * is a JSON object, or none, and the next client is served. Input: a byte that says how large the
 * pieces are, then what is sent. */

#include "fuse/control.h"
#include "base/auto.h"
#include "fuse/patch.h"
#include "keystore/format.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static struct serve_control *control;
static struct sockaddr_un at;
static socklen_t at_len;

/* As the daemon looks at a request. */
static struct json_object *answer(struct json_object *request, int *fd, void *arg)
{
    struct json_object *word = NULL;
    struct key_patch p;

    (void)arg;
    if (*fd >= 0)
        abort(); /* none was sent */
    if (!json_object_object_get_ex(request, "request", &word) ||
        json_object_get_type(word) != json_type_string)
        return serve_control_answer("no request");
    if (strcmp(json_object_get_string(word), "slot") == 0 &&
        serve_patch_decode(&p, request, NULL) < 0)
        return serve_control_refuse(EINVAL, "no change");
    return serve_control_answer(NULL);
}

/* An abstract name that the kernel chooses: nothing to remove. */
static void start(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    at.sun_family = AF_UNIX;
    at_len = sizeof(at);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(sa_family_t)) < 0 || listen(fd, 8) < 0 ||
        getsockname(fd, (struct sockaddr *)&at, &at_len) < 0 ||
        serve_control_adopt(&control, fd, answer, NULL) < 0)
        abort();
}

static int connect_client(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, at_len) < 0)
        abort();
    return fd;
}

static void turn(void)
{
    struct pollfd fds[SERVE_CONTROL_FDS];

    serve_control_prepare(control, fds);
    if (poll(fds, SERVE_CONTROL_FDS, 0) < 0)
        abort();
    serve_control_turn(control, fds);
}

/* What came back is nothing, or one line with one object that has "ok". */
static void check_answer(int fd, bool must)
{
    static char line[SERVE_CONTROL_REPLY + 1];
    struct json_object *o, *ok = NULL;
    ssize_t n = recv(fd, line, sizeof(line) - 1, 0);

    if (n <= 0 && !must)
        return;
    if (n <= 0 || line[n - 1] != '\n' || memchr(line, '\n', (size_t)n) != line + n - 1)
        abort();
    line[n] = '\0';
    o = json_tokener_parse(line);
    if (!json_object_object_get_ex(o, "ok", &ok) || json_object_get_type(ok) != json_type_boolean)
        abort();
    json_object_put(o);
}

static void send_pieces(int fd, const unsigned char *data, size_t len, size_t piece)
{
    while (len > 0) {
        size_t n = len < piece ? len : piece;
        ssize_t sent = send(fd, data, n, MSG_NOSIGNAL | MSG_DONTWAIT);

        turn();
        if (sent <= 0) /* it was answered or thrown out */
            return;
        data += sent;
        len -= (size_t)sent;
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    static const char well[] = "{\"request\": \"status\"}\n";
    AUTO_FD int first = -1, second = -1;

    if (control == NULL)
        start();
    if (len == 0)
        return 0;
    first = connect_client();
    turn();
    send_pieces(first, data + 1, len - 1, 1 + (size_t)data[0] * 64);
    turn();
    check_answer(first, false);
    shutdown(first, SHUT_WR);
    turn();
    second = connect_client();
    turn();
    send_pieces(second, (const unsigned char *)well, sizeof(well) - 1, sizeof(well));
    turn();
    check_answer(second, true);
    return 0;
}
