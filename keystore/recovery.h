/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Recovery keys: passphrases made by chance, more than 256 bits, in groups that a person can copy
 * and whose every slip is noticed and located. docs/format.md 10.6. No I/O.
 *
 *     4JQ0R-9BTX2-...-M3H7W     13 groups of 5 of 0123456789ABCDEFGHJKMNPQRSTVWXYZ
 *
 * There is no I, L, O or U: what is read as one of the first three means 1, 1 and 0. The last of
 * each group is its check digit. The bytes above, with capitals and hyphens, are the passphrase of
 * the slot. */

#include "base/secret.h"

#include <stdbool.h>
#include <stdint.h>

#define RECOVERY_GROUPS 13
#define RECOVERY_GROUP 5 /* characters */
#define RECOVERY_CHARS (RECOVERY_GROUPS * RECOVERY_GROUP)
#define RECOVERY_TEXT (RECOVERY_GROUPS * (RECOVERY_GROUP + 1) - 1) /* bytes, no terminator */

/* A new one; text gets RECOVERY_TEXT bytes. -ENOMEM. */
int recovery_make(struct secret *text);

/* What is wrong with an entry that is no recovery key. */
struct recovery_slips {
    bool meant;       /* it was meant to be one: at least 4 groups are right and in their places */
    uint32_t groups;  /* bit i: group i, counted from 0, is mistyped, missing or out of place */
    unsigned n_chars; /* without separators; RECOVERY_CHARS make a key */
};
/* Is entry a recovery key, in any spelling: capitals or not, with blanks, line ends or hyphens
 * anywhere or not at all? 1: text gets the bytes of the one spelling that slots know; 0: it is not,
 * and *slips says more; -ENOMEM. Of other entries with so many characters of this alphabet, one in
 * 2^65 is taken for one. */
int recovery_read(struct secret *text, const struct secret *entry, struct recovery_slips *slips);
