/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_sshd.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define BLANKS " \t=\""

bool doctor_sshd_value(const char *text, const char *keyword, char *out, size_t size)
{
    size_t len = strlen(keyword);

    for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
        const char *at = text + strspn(text, " \t");

        if (strncasecmp(at, "match", 5) == 0 && strchr(BLANKS, at[5]) != NULL)
            return false;
        if (strncasecmp(at, keyword, len) != 0 || at[len] == '\0' ||
            strchr(BLANKS, at[len]) == NULL)
            continue;
        at += len + strspn(at + len, BLANKS);
        snprintf(out, size, "%.*s", (int)strcspn(at, " \t\"\r\n#"), at);
        return true;
    }
    return false;
}
