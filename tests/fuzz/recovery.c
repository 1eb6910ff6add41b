/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes what takes an entry for a recovery key. Input: the entry. What it must never find: a
 * crash, a key that is read back as another, groups that do not exist, a key that is also
 * mistyped. */

#include "keystore/recovery.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static void check_key(const struct secret *text)
{
    AUTO_SECRET struct secret again = {0};
    struct recovery_slips slips = {0};

    if (text->len != RECOVERY_TEXT || recovery_read(&again, text, &slips) != 1 ||
        again.len != text->len || memcmp(again.bytes, text->bytes, text->len) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    static bool started;
    AUTO_SECRET struct secret entry = {0}, text = {0};
    struct recovery_slips slips = {0};
    int r;

    if (!started && secret_start(NULL) < 0)
        abort();
    started = true;
    if (len == 0 || len > 8192 || secret_copy(&entry, data, len) < 0)
        return 0;
    r = recovery_read(&text, &entry, &slips);
    if (r < 0 || r > 1)
        abort();
    if (r == 1)
        check_key(&text);
    else if (slips.groups >> RECOVERY_GROUPS != 0 || slips.n_chars > len)
        abort();
    return 0;
}
