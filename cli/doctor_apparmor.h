/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What AppArmor's profile of fusermount3 says about a place (apparmor.d(5), mount rules). Text in,
 * answer out. */

enum doctor_allowed {
    DOCTOR_ALLOWED,
    DOCTOR_REFUSED,
    DOCTOR_UNKNOWN, /* it has no mount rules, or one that could not be understood may allow it */
};

/* profile is the text of the profile and of what it includes for local rules, tunables that of the
 * files that say where homes are (@{HOMEDIRS}). folder is absolute, without symbolic links. */
enum doctor_allowed doctor_apparmor_mount(const char *profile, const char *tunables,
                                          const char *folder);
