/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What "hushvol doctor" looks at, apart from how it prints it. */

enum doctor_level {
    DOCTOR_OK,
    DOCTOR_WARN, /* something will not work, or not well; mounting does */
    DOCTOR_FAIL, /* nothing can be mounted */
};

struct doctor_finding {
    enum doctor_level level;
    const char *check; /* "fuse-device": stays the same, for scripts */
    char text[256];
    const char *fix; /* NULL when there is nothing to mend */
};

#define DOCTOR_FINDINGS 32
struct doctor {
    unsigned n;
    struct doctor_finding findings[DOCTOR_FINDINGS];
};

/* Look at this machine as the calling user sees it. Changes nothing (the runtime folder, which
 * every command makes, apart). */
void doctor_examine(struct doctor *d);
