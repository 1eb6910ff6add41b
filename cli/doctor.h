/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What "hushvol doctor" looks at, apart from how it prints it. */

#include <stdbool.h>
#include <stddef.h>

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARN, /* something will not work, or not well; mounting does */
    DOCTOR_FAIL, /* nothing can be mounted */
};

struct doctor_finding {
    enum doctor_level level;
    const char *check; /* "fuse-device": stays the same, for scripts */
    char text[480];    /* escaped, as report_escape() makes it */
    const char *fix;   /* NULL when there is nothing to mend */
};

#define DOCTOR_FINDINGS 96
struct doctor {
    unsigned n;
    struct doctor_finding findings[DOCTOR_FINDINGS];
};

/* Look at this machine as the calling user sees it. Changes nothing (the runtime folder, which
 * every command makes, apart). What he may not read is left out. */
void doctor_examine(struct doctor *d);

/* The parts of it: the machine, the caller's configuration and volumes, the login. */
void doctor_machine(struct doctor *d);
struct conf;
/* *ret, the caller's to conf_free(), stays NULL when the files are faulty. */
void doctor_config(struct doctor *d, struct conf **ret);
/* c may be NULL. */
void doctor_login(struct doctor *d, const struct conf *c);

struct conf_volume;
/* One volume of the caller: may it be mounted where it says? */
void doctor_mountpoint(struct doctor *d, const struct conf_volume *v);
void doctor_apparmor(struct doctor *d, const struct conf_volume *v);
/* The same for a folder in the current one, with volumes that have no name. */
void doctor_apparmor_here(struct doctor *d);

/* Add a finding; one that was made before is not repeated, and the last place says that there is
 * more. check and fix live as long as d. */
void doctor_found(struct doctor *d, enum doctor_level level, const char *check, const char *fix,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The rest of the first line of a small file that begins with key, without blanks and colons in
 * front. */
bool doctor_field(const char *path, const char *key, char *out, size_t size);
/* A file of the system as text, cut after 256 KiB. NULL when it cannot be read or is no regular
 * file; the caller's to free. */
char *doctor_text(const char *path);
