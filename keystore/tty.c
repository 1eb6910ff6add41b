/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/tty.h"

/* Signals are blocked and read from a descriptor beside the terminal, instead of caught by
 * handlers: there is no moment between a check and a read at which one could get lost, and nothing
 * of the program's own handling has to be put away and back. SIGTTIN and SIGTTOU stay as they are:
 * they stop a program in the background before it has changed anything. */

#include "base/auto.h"
#include "keystore/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>

#define LINE_CHUNK 4096 /* what a terminal can give as one line */

static int set_terminal(const struct tty *t, const struct termios *to, int how)
{
    int r;

    do {
        r = tcsetattr(t->fd, how, to);
    } while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

/* By itself the kernel drops what was typed when a signal is, and with it what we say about that in
 * the same moment: so it does not, and await() drops it. */
static int hide(const struct tty *t)
{
    struct termios hidden = t->shown;

    hidden.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
    hidden.c_lflag |= ICANON | ISIG | NOFLSH;
    return set_terminal(t, &hidden, TCSAFLUSH);
}

/* The signals to take: those that would end or stop us, and that nobody chose to ignore (nohup). */
static void choose_signals(sigset_t *set)
{
    static const int endings[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGTSTP};

    sigemptyset(set);
    for (unsigned i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        struct sigaction now;

        if (sigaction(endings[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(set, endings[i]);
    }
}

int tty_open(struct tty *t, struct report *rep)
{
    int r;

    *t = (struct tty){.signals = -1};
    t->fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (t->fd < 0)
        return -ENXIO;
    if (tcgetattr(t->fd, &t->shown) < 0) {
        close(t->fd);
        return -ENXIO;
    }
    choose_signals(&t->caught);
    pthread_sigmask(SIG_BLOCK, &t->caught, &t->old_mask);
    t->open = true;
    t->signals = signalfd(-1, &t->caught, SFD_CLOEXEC | SFD_NONBLOCK);
    if (t->signals < 0)
        return report_errno(rep, errno, "cannot watch for signals");
    r = hide(t);
    return r < 0 ? report_errno(rep, -r, "cannot turn the echo of the terminal off") : 0;
}

void tty_close(struct tty *t)
{
    if (!t->open)
        return;
    set_terminal(t, &t->shown, TCSADRAIN);
    if (t->signals >= 0)
        close(t->signals);
    close(t->fd);
    pthread_sigmask(SIG_SETMASK, &t->old_mask, NULL);
    t->open = false;
}

static void show(const struct tty *t, const char *text)
{
    if (write(t->fd, text, strlen(text)) < 0)
        return; /* whoever cannot see the prompt cannot see words about it either */
}

/* Ctrl-Z: stop as if nobody had taken the signal, and hide again when the program goes on. */
static int stop_here(const struct tty *t)
{
    set_terminal(t, &t->shown, TCSADRAIN);
    pthread_sigmask(SIG_SETMASK, &t->old_mask, NULL);
    raise(SIGTSTP);
    pthread_sigmask(SIG_BLOCK, &t->caught, NULL);
    return hide(t);
}

/* Wait for input. 1 there is some, 0 asking starts again, or -errno. */
static int await(const struct tty *t)
{
    struct pollfd fds[] = {{t->fd, POLLIN, 0}, {t->signals, POLLIN, 0}};
    struct signalfd_siginfo info;
    int r;

    if (poll(fds, 2, -1) < 0)
        return errno == EINTR ? 0 : -errno;
    if (read(t->signals, &info, sizeof(info)) != sizeof(info))
        return 1;
    tcflush(t->fd, TCIFLUSH);
    show(t, "\n");
    if (info.ssi_signo != SIGTSTP) {
        key_interrupted((int)info.ssi_signo);
        return -EINTR;
    }
    r = stop_here(t);
    return r < 0 ? r : 0;
}

/* Read up to the newline into line, which holds size bytes; what does not fit is dropped. Returns
 * the length that the line would have, 0 with *again set when asking starts again, or -errno. */
static ssize_t read_line(const struct tty *t, unsigned char *line, size_t size, bool *again)
{
    size_t n = 0;

    *again = false;
    for (;;) {
        size_t at = n < size - 1 ? n : size - 1;
        int r = await(t);
        ssize_t got;

        if (r <= 0) {
            *again = r == 0;
            return r;
        }
        got = read(t->fd, line + at, size - at);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0)
            return got < 0 ? -errno : (ssize_t)n;
        if (line[at + (size_t)got - 1] == '\n')
            return (ssize_t)(n + (size_t)got - 1);
        n += (size_t)got;
    }
}

int tty_ask(struct tty *t, const char *prompt, struct secret *ret, size_t max, struct report *rep)
{
    AUTO_SECRET struct secret line = {0};
    char text[REPORT_LINE];
    bool again = true;
    ssize_t n = 0;
    int r = secret_make(&line, max + LINE_CHUNK);

    if (r < 0)
        return r;
    report_escape(text, sizeof(text), prompt);
    while (again) {
        show(t, text);
        show(t, ": ");
        n = read_line(t, line.bytes, line.len, &again);
    }
    if (n == -EINTR)
        return report_error(rep, EINTR, "interrupted while asking for the passphrase");
    show(t, "\n");
    if (n < 0)
        return report_errno(rep, (int)-n, "cannot read from the terminal");
    if (n == 0)
        return report_error(rep, EINVAL, "no passphrase was entered");
    if ((size_t)n > max)
        return report_error(rep, EINVAL, "a passphrase has at most %zu bytes", max);
    return secret_copy(ret, line.bytes, (size_t)n);
}
