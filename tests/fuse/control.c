/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/control.c: requests are answered, and no client, however it behaves, keeps the others
 * or the daemon waiting. */

#include "fuse/control.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un at;
static struct serve_control *control;
static unsigned n_asked;

static struct json_object *echo(struct json_object *request, int *fd, void *arg)
{
    struct json_object *answer = serve_control_answer(NULL), *v = NULL;
    char text[16] = "";

    assert_ptr_equal(arg, &at);
    n_asked++;
    if (json_object_object_get_ex(request, "request", &v))
        json_object_object_add(answer, "echo", json_object_get(v));
    if (*fd >= 0 && read(*fd, text, sizeof(text) - 1) > 0)
        json_object_object_add(answer, "passed", json_object_new_string(text));
    return answer;
}

/* In the abstract namespace: no file to remove. */
static int setup(void **state)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t len;

    (void)state;
    at = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, "hushvol-test-%d", (int)getpid());
    len = sizeof(at);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, len), 0);
    assert_int_equal(listen(fd, 32), 0);
    n_asked = 0;
    return serve_control_adopt(&control, fd, echo, &at);
}

static int teardown(void **state)
{
    (void)state;
    serve_control_close(control);
    return 0;
}

static int client(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
    return fd;
}

/* What the daemon's thread does, as long as there is something to do at once. */
static void turns(void)
{
    struct pollfd fds[SERVE_CONTROL_FDS];

    for (;;) {
        serve_control_prepare(control, fds);
        if (poll(fds, SERVE_CONTROL_FDS, 20) <= 0)
            break;
        serve_control_turn(control, fds);
    }
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* The answer up to the end of the connection; "" when there is none. */
static const char *hear(int fd)
{
    static char text[4096];
    size_t used = 0;
    ssize_t n;

    while ((n = recv(fd, text + used, sizeof(text) - 1 - used, MSG_DONTWAIT)) > 0)
        used += (size_t)n;
    text[used] = '\0';
    assert_true(n == 0 || errno == ECONNRESET); /* closed by the daemon */
    close(fd);
    return text;
}

static void a_request_is_answered_and_the_connection_ends(void **state)
{
    int fd = client();

    (void)state;
    say(fd, "{\"request\":\"status\"}\n");
    turns();
    assert_string_equal(hear(fd), "{\"ok\":true,\"echo\":\"status\"}\n");
}

static void a_request_may_come_in_pieces(void **state)
{
    const char *line = "{\"request\":\"x\"}\n";
    int fd = client();

    (void)state;
    for (const char *c = line; *c != '\0'; c++) {
        assert_int_equal(send(fd, c, 1, 0), 1);
        turns();
    }
    assert_string_equal(hear(fd), "{\"ok\":true,\"echo\":\"x\"}\n");
}

static void what_is_no_object_gets_an_error(void **state)
{
    static const char *const bad[] = {"\n", "[]\n", "7\n", "status\n", "{\"a\":\n", "\x01\xff\n"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        int fd = client();

        say(fd, bad[i]);
        turns();
        assert_non_null(strstr(hear(fd), "\"ok\":false"));
    }
    assert_int_equal(n_asked, 0);
}

static void a_line_without_end_is_cut_off(void **state)
{
    static char large[SERVE_CONTROL_LINE];
    int fd = client();

    (void)state;
    memset(large, 'x', sizeof(large));
    assert_int_equal(send(fd, large, sizeof(large), 0), sizeof(large));
    turns();
    assert_string_equal(hear(fd), "");
    assert_int_equal(n_asked, 0);
}

static void one_who_goes_away_is_forgotten(void **state)
{
    int fd = client();

    (void)state;
    say(fd, "{\"request\":");
    turns();
    close(fd);
    turns();
    fd = client();
    say(fd, "{\"request\":\"status\"}\n");
    close(fd); /* does not even wait for the answer */
    turns();
    assert_int_equal(n_asked, 1);
}

static void stalled_clients_are_thrown_out_and_others_served(void **state)
{
    struct pollfd fds[SERVE_CONTROL_FDS];
    int stalled[SERVE_CONTROL_CLIENTS], fd;

    (void)state;
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++) {
        stalled[i] = client();
        say(stalled[i], "{");
    }
    turns();
    fd = client();
    say(fd, "{\"request\":\"status\"}\n");
    turns();
    assert_int_equal(n_asked, 0); /* all places are taken */
    assert_true(serve_control_prepare(control, fds) > 0);
    for (int i = 0; i < 100 && n_asked == 0; i++) {
        poll(fds, SERVE_CONTROL_FDS, serve_control_prepare(control, fds));
        serve_control_turn(control, fds);
    }
    turns();
    assert_int_equal(n_asked, 1);
    assert_string_equal(hear(fd), "{\"ok\":true,\"echo\":\"status\"}\n");
    for (unsigned i = 0; i < SERVE_CONTROL_CLIENTS; i++)
        assert_string_equal(hear(stalled[i]), "");
    assert_int_equal(serve_control_prepare(control, fds), -1);
}

static unsigned n_open(void)
{
    unsigned n = 0;

    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* Two at once: the last one counts, and none stays open in the daemon. */
static void a_descriptor_comes_along(void **state)
{
    const char line[] = "{\"request\": \"x\"}\n";
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {0};
    struct iovec text = {.iov_base = (char *)line, .iov_len = strlen(line)};
    struct msghdr m = {
        .msg_iov = &text, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    unsigned before = n_open();
    int fd = client(), ends[2], fds[2];
    char answer[256] = "";

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "from a pipe", 11), 11);
    fds[0] = STDIN_FILENO;
    fds[1] = ends[0];
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(c), fds, sizeof(fds));
    assert_int_equal(sendmsg(fd, &m, MSG_NOSIGNAL), strlen(line));
    turns();
    assert_true(recv(fd, answer, sizeof(answer) - 1, MSG_DONTWAIT) > 0);
    assert_non_null(strstr(answer, "from a pipe"));
    close(fd);
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(n_open(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        TEST(a_request_is_answered_and_the_connection_ends),
        TEST(a_request_may_come_in_pieces),
        TEST(what_is_no_object_gets_an_error),
        TEST(a_line_without_end_is_cut_off),
        TEST(one_who_goes_away_is_forgotten),
        TEST(stalled_clients_are_thrown_out_and_others_served),
        TEST(a_descriptor_comes_along),
#undef TEST
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
