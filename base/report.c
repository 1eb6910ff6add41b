/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/report.h"

/* Lines are put together on the stack and handed out whole, so that lines of several threads never
 * mix and nothing is allocated where memory may be short. */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>
#include <unistr.h>

/* What a terminal may take for an order (C0, DEL and C1 controls) or show in another place than it
 * stands in (marks that turn the direction of writing). */
static bool report_plays_tricks(ucs4_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) ||
           (c >= 0x2066 && c <= 0x2069);
}

void report_escape(char *out, size_t size, const char *text)
{
    const uint8_t *at = (const uint8_t *)text;
    size_t left = strlen(text), n = 0;

    while (left > 0) {
        ucs4_t c;
        int len = u8_mbtoucr(&c, at, left);
        bool plain = len > 0 && !report_plays_tricks(c);
        size_t n_bytes = len > 0 ? (size_t)len : 1;

        if (n + (plain ? 1 : 4) * n_bytes >= size)
            break;
        for (; n_bytes > 0; n_bytes--, at++, left--)
            n += (size_t)snprintf(out + n, size - n, plain ? "%c" : "\\x%02x", *at);
    }
    out[n] = '\0';
}

static void say(struct report *rep, enum report_level level, int err, const char *fmt, va_list ap)
    __attribute__((format(printf, 4, 0)));

static void say(struct report *rep, enum report_level level, int err, const char *fmt, va_list ap)
{
    char raw[REPORT_LINE], text[REPORT_LINE];
    size_t n = 0;

    if (rep == NULL || (level == REPORT_INFO && rep->silent_infos))
        return;
    if (level == REPORT_ERROR && rep->what != NULL)
        n = (size_t)snprintf(raw, sizeof(raw), "%s failed%s%s: ", rep->what,
                             rep->which ? " for " : "", rep->which ? rep->which : "");
    else if (level != REPORT_INFO && rep->which != NULL)
        n = (size_t)snprintf(raw, sizeof(raw), "%s: ", rep->which);
    if (n < sizeof(raw))
        n += (size_t)vsnprintf(raw + n, sizeof(raw) - n, fmt, ap);
    if (err != 0 && n < sizeof(raw))
        snprintf(raw + n, sizeof(raw) - n, ": %s", strerror(err));
    report_escape(text, sizeof(text), raw);
    rep->say(rep, level, text);
}

int report_error(struct report *rep, int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(rep, REPORT_ERROR, 0, fmt, ap);
    va_end(ap);
    return -err;
}

int report_errno(struct report *rep, int err, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(rep, REPORT_ERROR, err, fmt, ap);
    va_end(ap);
    return -err;
}

void report_warn(struct report *rep, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(rep, REPORT_WARN, 0, fmt, ap);
    va_end(ap);
}

void report_info(struct report *rep, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(rep, REPORT_INFO, 0, fmt, ap);
    va_end(ap);
}

static const char *stderr_copy;

/* Opened for each line: a descriptor that stays would be one more for a daemon to leave behind. */
static void copy_line(const char *line, size_t len)
{
    AUTO_FD int fd = open(stderr_copy, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && write(fd, line, len) < 0)
        return; /* nobody reads it any more */
}

static void stderr_say(struct report *rep, enum report_level level, const char *text)
{
    char line[REPORT_LINE + 16];
    int n = snprintf(line, sizeof(line), "hushvol: %s\n", text);

    (void)rep;
    (void)level;
    if (n > (int)sizeof(line) - 1)
        n = (int)sizeof(line) - 1;
    if (stderr_copy != NULL)
        copy_line(line, (size_t)n);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody is left to tell */
}

void report_stderr_init(struct report *rep, const char *what, const char *which)
{
    *rep = (struct report){.say = stderr_say, .what = what, .which = which};
}

void report_stderr_copy(const char *fifo)
{
    stderr_copy = fifo;
}

static void syslog_say(struct report *rep, enum report_level level, const char *text)
{
    static const int priority[] = {
        [REPORT_INFO] = LOG_INFO, [REPORT_WARN] = LOG_WARNING, [REPORT_ERROR] = LOG_ERR};

    (void)rep;
    syslog(LOG_DAEMON | priority[level], "%s", text);
}

void report_syslog_init(struct report *rep, const char *what, const char *which)
{
    *rep = (struct report){.say = syslog_say, .what = what, .which = which};
}
