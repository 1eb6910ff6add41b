/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/confirm.h"

/* On the terminal itself and not on standard input: what a script pipes into a command is no answer
 * to a question that it did not see. For the same reason what was typed before the question is
 * thrown away. */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <termios.h>

#define ANSWER_MAX 4096 /* what a terminal can give as one line */

static int no_terminal(struct report *rep)
{
    return report_error(rep, EINVAL, "there is no terminal to ask on (--yes answers beforehand)");
}

/* One line without its newline; cut where it does not fit. */
static int read_answer(int fd, char answer[ANSWER_MAX + 1])
{
    ssize_t n;

    do
        n = read(fd, answer, ANSWER_MAX);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return -errno;
    answer[n] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    return 0;
}

int cmd_confirm(bool yes, const char *question, const char *word, struct report *rep)
{
    char shown[REPORT_LINE], expected[REPORT_LINE], answer[ANSWER_MAX + 1];
    AUTO_FD int fd = -1;
    int r;

    if (yes)
        return 0;
    fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (fd < 0 || tcflush(fd, TCIFLUSH) < 0)
        return no_terminal(rep);
    report_escape(shown, sizeof(shown), question);
    report_escape(expected, sizeof(expected), word);
    dprintf(fd, "%s\nType \"%s\" to go on: ", shown, expected);
    r = read_answer(fd, answer);
    if (r < 0)
        return report_errno(rep, -r, "cannot read from the terminal");
    if (strcmp(answer, word) != 0)
        return report_error(rep, ECANCELED, "not confirmed, nothing was changed");
    return 0;
}
