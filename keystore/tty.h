/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Ask for a secret on the controlling terminal, unseen. Whatever ends the asking, the terminal
 * shows again what is typed afterwards. From one thread, while no other takes signals. */

#include "base/report.h"
#include "base/secret.h"

#include <signal.h>
#include <stdbool.h>
#include <termios.h>

struct tty {
    bool open;
    int fd;
    int signals; /* a signalfd for those that would leave the terminal without echo */
    sigset_t caught, old_mask;
    struct termios shown; /* as it was */
};

/* -ENXIO no terminal, in silence. t must be given to tty_close() in any case. */
int tty_open(struct tty *t, struct report *rep);
/* Show prompt, read a line of at most max bytes, without its newline. -EINVAL too long or nothing;
 * -EINTR a signal that ends programs (Ctrl-C; it was taken: interrupt.h). Ctrl-Z stops the
 * program and asks again afterwards. */
int tty_ask(struct tty *t, const char *prompt, struct secret *ret, size_t max, struct report *rep);
void tty_close(struct tty *t);
#define AUTO_TTY __attribute__((cleanup(tty_close)))
