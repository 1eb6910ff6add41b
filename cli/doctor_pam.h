/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Does pam_hushvol.so stand where it works in the files of /etc/pam.d? Text in, findings out. */

#include "cli/doctor.h"

struct doctor_pam_file {
    const char *name; /* of the service: "login", "common-auth" */
    const char *path; /* for the findings */
    const char *text;
};

/* Walk each service's auth, session and password lines, with all that they include, as the library
 * does when a password is right. *module gets the module as a line names it (its file or path), in
 * size bytes; "" when no line does, and then nothing is found. -ENOMEM. */
int doctor_pam(struct doctor *d, const struct doctor_pam_file *files, unsigned n, char *module,
               size_t size);
