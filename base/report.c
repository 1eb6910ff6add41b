/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/report.h"

/* Lines are put together on the stack and handed out whole, so that lines of several threads never
 * mix and nothing is allocated where memory may be short. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

/* The control characters of ASCII, and of ISO 8859-1 as UTF-8 writes them (0xc2 and the byte
 * itself), which some terminals obey as well. 0: none; else its length in bytes. */
static size_t control_len(const unsigned char *c)
{
    if (c[0] < 0x20 || c[0] == 0x7f)
        return 1;
    return c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0 ? 2 : 0;
}

void report_escape(char *out, size_t size, const char *text)
{
    const unsigned char *c = (const unsigned char *)text;
    size_t n = 0;

    while (*c != '\0') {
        size_t control = control_len(c);

        if (n + (control > 0 ? 4 * control : 1) >= size)
            break;
        if (control == 0)
            out[n++] = (char)*c++;
        for (; control > 0; control--)
            n += (size_t)snprintf(out + n, size - n, "\\x%02x", *c++);
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

static void stderr_say(struct report *rep, enum report_level level, const char *text)
{
    char line[REPORT_LINE + 16];
    int n = snprintf(line, sizeof(line), "hushvol: %s\n", text);

    (void)rep;
    (void)level;
    if (n > (int)sizeof(line) - 1)
        n = (int)sizeof(line) - 1;
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody is left to tell */
}

void report_stderr_init(struct report *rep, const char *what, const char *which)
{
    *rep = (struct report){.say = stderr_say, .what = what, .which = which};
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
