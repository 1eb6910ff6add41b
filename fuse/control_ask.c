/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/control.h"

/* A command's side of the control socket. */

#include "base/auto.h"
#include "fuse/control_address.h"
#include "fuse/pass.h"

#include <errno.h>
#include <json-c/json.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#define ANSWER_S 10
#define ERRNO_END 4096 /* the kernel has none from here on */

static int connect_to(const struct serve_found *f)
{
    AUTO_FD int folder = serve_folder_open(f->folder.path, f->folder.owner);
    AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct timeval limit = {.tv_sec = ANSWER_S};
    struct sockaddr_un at;

    if (folder < 0)
        return folder;
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    control_address(&at, folder, f->record.name);
    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
        return errno == ENOENT ? -ECONNREFUSED : -errno;
    return TAKE_FD(fd);
}

/* Up to the end of the stream or the first newline. */
static int receive(struct json_object **ret, int fd)
{
    AUTO_FREE char *text = calloc(1, SERVE_CONTROL_REPLY + 1);
    size_t used = 0;

    if (text == NULL)
        return -ENOMEM;
    while (used < SERVE_CONTROL_REPLY && memchr(text, '\n', used) == NULL) {
        ssize_t n = recv(fd, text + used, SERVE_CONTROL_REPLY - used, 0);

        if (n < 0 && errno != EINTR)
            return errno == EAGAIN ? -ETIMEDOUT : -errno;
        if (n == 0)
            break;
        used += n > 0 ? (size_t)n : 0;
    }
    if (used == 0)
        return -ECONNRESET;
    *ret = json_tokener_parse(text);
    return json_object_get_type(*ret) == json_type_object ? 0 : -EPROTO;
}

static int ask(struct json_object **ret, const struct serve_found *f, struct json_object *request,
               int passed)
{
    AUTO_FD int fd = connect_to(f);
    AUTO_FREE char *line = NULL;
    int len;

    if (fd < 0)
        return fd;
    len = asprintf(&line, "%s\n", json_object_to_json_string_ext(request, JSON_C_TO_STRING_PLAIN));
    if (len < 0) {
        line = NULL;
        return -ENOMEM;
    }
    if (serve_pass(fd, line, (size_t)len, passed) != len)
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    return receive(ret, fd);
}

static bool is_ok(struct json_object *answer)
{
    struct json_object *v;

    return json_object_object_get_ex(answer, "ok", &v) && json_object_get_boolean(v);
}

/* Say the error of an answer that is none we wanted; a number that is no errno counts as EIO. */
static int say_refusal(struct json_object *answer, const char *name, struct report *rep)
{
    struct json_object *error = NULL, *number = NULL;
    int err = EIO;

    json_object_object_get_ex(answer, "error", &error);
    if (json_object_object_get_ex(answer, "errno", &number))
        err = json_object_get_int(number);
    if (err <= 0 || err >= ERRNO_END)
        err = EIO;
    return report_error(rep, err, "%s answers: %s", name,
                        error != NULL ? json_object_get_string(error) : "no");
}

int serve_control_ask_with(struct json_object **ret, const struct serve_found *f, const char *word,
                           struct json_object *more, int fd, struct report *rep)
{
    struct json_object *request = more != NULL ? more : json_object_new_object();
    struct json_object *answer = NULL;
    int r;

    json_object_object_add(request, "request", json_object_new_string(word));
    r = ask(&answer, f, request, fd);
    json_object_put(request);
    if (r < 0) {
        json_object_put(answer);
        return report_errno(rep, -r, "cannot talk to the process that serves %s", f->record.name);
    }
    if (!is_ok(answer)) {
        r = say_refusal(answer, f->record.name, rep);
        json_object_put(answer);
        return r;
    }
    *ret = answer;
    return 0;
}

int serve_control_ask(struct json_object **ret, const struct serve_found *f, const char *word,
                      struct json_object *more, struct report *rep)
{
    return serve_control_ask_with(ret, f, word, more, -1, rep);
}
