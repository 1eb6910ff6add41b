/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/keyfile.h"

/* Waiting asks again a few times a second. Watching folders instead (inotify) would have to follow
 * mounts that appear above the path, links into /dev, and file systems that tell nothing; and a
 * person who puts a stick in does not notice a quarter of a second.
 *
 * Memory grows with what is read: locked memory is scarce for users, and most key files are small.
 */

#include "base/auto.h"
#include "keystore/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define ROOM_FIRST 4096 /* bytes */
#define ASK_AGAIN_MS 250

struct keyfiles {
    struct secret all; /* all.len is the room */
    size_t len;        /* in use */
    uint64_t deadline_ms;
    unsigned timeout; /* seconds, for words */
    bool said;        /* that it waits */
    struct report *rep;
};

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* The signals that would end us, but for those that somebody chose to ignore (nohup). */
static sigset_t ending_signals(void)
{
    static const int endings[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
    sigset_t set;

    sigemptyset(&set);
    for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        struct sigaction now;

        if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, endings[i]);
    }
    return set;
}

/* A path that nothing has yet, or a device whose medium or driver is not there. */
static bool may_appear(int r)
{
    return r == -ENOENT || r == -ENOMEDIUM || r == -ENODEV || r == -ENXIO;
}

/* 0 or -errno. Only a device has to be opened to know: to open a fifo would wait for its writer. */
static int look(const char *path)
{
    AUTO_FD int fd = -1;
    struct stat st;

    if (stat(path, &st) < 0)
        return -errno;
    if (!S_ISBLK(st.st_mode) && !S_ISCHR(st.st_mode))
        return 0;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return fd < 0 ? -errno : 0;
}

/* Look again and again, with set blocked. What look() gave in the end, or -EINTR. */
static int look_until_there(const struct keyfiles *k, const char *path, const sigset_t *set)
{
    static const struct timespec t = {.tv_nsec = ASK_AGAIN_MS * 1000000};
    int r = -ENOENT;

    while (may_appear(r) && now_ms() < k->deadline_ms) {
        int sig = sigtimedwait(set, NULL, &t);

        if (sig > 0) {
            key_interrupted(sig);
            return -EINTR;
        }
        r = look(path);
    }
    return r;
}

/* Signals are blocked all the while, not around each sleep: somebody's handler that takes one in
 * between would only make a note of it for later. */
static int wait_for(struct keyfiles *k, const char *path)
{
    sigset_t set = ending_signals(), old;
    int r;

    pthread_sigmask(SIG_BLOCK, &set, &old);
    if (!k->said)
        report_warn(k->rep, "waiting up to %u s for key file %s (Ctrl-C gives up)", k->timeout,
                    path);
    k->said = true;
    r = look_until_there(k, path, &set);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (r == -EINTR)
        return report_error(k->rep, EINTR, "interrupted while waiting for key file %s", path);
    return 0; /* opening it says what is wrong */
}

/* Returns a descriptor. */
static int open_when_there(struct keyfiles *k, const char *path)
{
    int r = 0, fd;

    if (now_ms() < k->deadline_ms && may_appear(look(path)))
        r = wait_for(k, path);
    if (r < 0)
        return r;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? report_errno(k->rep, errno, "cannot open key file %s", path) : fd;
}

/* Room for at least one byte more; one more than may be, by which too much is known. */
static int make_room(struct keyfiles *k)
{
    size_t room = k->all.len == 0 ? ROOM_FIRST : 4 * k->all.len;
    AUTO_SECRET struct secret more = {0};
    int r;

    if (k->len < k->all.len)
        return 0;
    r = secret_make(&more, room < CREDENTIAL_KEYFILE_MAX ? room : CREDENTIAL_KEYFILE_MAX + 1);
    if (r < 0)
        return r;
    if (k->len > 0)
        memcpy(more.bytes, k->all.bytes, k->len);
    secret_done(&k->all);
    k->all = more;
    more = (struct secret){0};
    return 0;
}

static int read_open(struct keyfiles *k, int fd, const char *path)
{
    size_t before = k->len;

    for (;;) {
        int r = make_room(k);
        ssize_t n;

        if (r < 0)
            return r;
        n = read(fd, k->all.bytes + k->len, k->all.len - k->len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return report_errno(k->rep, errno, "cannot read key file %s", path);
        k->len += (size_t)n;
        if (k->len > CREDENTIAL_KEYFILE_MAX)
            return report_error(k->rep, EINVAL, "the key files have more than %d MiB",
                                CREDENTIAL_KEYFILE_MAX >> 20);
        if (n == 0)
            break;
    }
    if (k->len == before)
        return report_error(k->rep, EINVAL, "key file %s is empty", path);
    return 0;
}

static int read_one(struct keyfiles *k, const char *path)
{
    AUTO_FD int fd = -1;

    if (strcmp(path, "-") == 0)
        return read_open(k, STDIN_FILENO, "from standard input");
    fd = open_when_there(k, path);
    return fd < 0 ? fd : read_open(k, fd, path);
}

int keyfile_read_all(struct secret *ret, const struct credential_source *src, struct report *rep)
{
    struct keyfiles k = {.deadline_ms = now_ms() + (uint64_t)src->keyfile_timeout * 1000,
                         .timeout = src->keyfile_timeout,
                         .rep = rep};
    int r = 0;

    for (unsigned i = 0; r == 0 && i < src->n_keyfiles; i++)
        r = read_one(&k, src->keyfiles[i]);
    if (r == 0)
        r = secret_copy(ret, k.all.bytes, k.len);
    secret_done(&k.all);
    return r;
}
