/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Where words about what happened go. Who finds the reason says it once, here; everyone above
 * passes the negative errno on in silence. A NULL report swallows the words (a probe wants that).
 *
 * A line is at most REPORT_LINE bytes; control characters in it are shown as \xNN, so that labels
 * and names from a container cannot play with a terminal. Sinks may be called from any thread. */

#include <stddef.h>

#define REPORT_LINE 1024

enum report_level { REPORT_INFO, REPORT_WARN, REPORT_ERROR };

struct report {
    /* text has no newline, no program name, and is already escaped. */
    void (*say)(struct report *rep, enum report_level level, const char *text);
    const char *what; /* "mount": errors read "mount failed for WHICH: text"; NULL: the bare text */
    const char *which; /* the container, name or file the user gave; borrowed, may be NULL */
    int silent_infos;  /* drop REPORT_INFO */
};

/* Say why something failed. Returns -err, so that callers can return it. */
int report_error(struct report *rep, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* The same, ending in ": " and the words of errno value err. */
int report_errno(struct report *rep, int err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Something the user should know although the work goes on. */
void report_warn(struct report *rep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Something worth a line when all is well. */
void report_info(struct report *rep, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Lines "hushvol: text" on stderr, each in one write. */
void report_stderr_init(struct report *rep, const char *what, const char *which);
/* From now on these lines go into the FIFO at this path too, as long as somebody reads it. For a
 * process that still has one thread; the path is borrowed. */
void report_stderr_copy(const char *fifo);
/* Lines in syslog, facility daemon. */
void report_syslog_init(struct report *rep, const char *what, const char *which);

/* Copy text to out (size bytes, always terminated) with control characters, marks that turn the
 * direction of writing, and bytes that are not UTF-8 as \xNN. Cut between characters. */
void report_escape(char *out, size_t size, const char *text);
