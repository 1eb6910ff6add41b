/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/json.h"

#include "base/auto.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistr.h>

#define YEAR_9999_END UINT64_C(253402300799)

struct json_object *cmd_json_string(const char *text)
{
    size_t len = strlen(text), n = 0;
    AUTO_FREE char *escaped = NULL;

    if (u8_check((const uint8_t *)text, len) == NULL)
        return json_object_new_string(text);
    escaped = malloc(4 * len + 1);
    if (escaped == NULL)
        return NULL;
    for (const char *c = text; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;

        if (byte >= 0x80)
            n += (size_t)sprintf(escaped + n, "\\x%02x", byte);
        else
            escaped[n++] = *c;
    }
    return json_object_new_string_len(escaped, (int)n);
}

const char *cmd_time_text(char out[CMD_TIME_TEXT], uint64_t seconds)
{
    time_t t = (time_t)seconds;
    struct tm tm;

    if (seconds > YEAR_9999_END || gmtime_r(&t, &tm) == NULL)
        return "?";
    strftime(out, CMD_TIME_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm);
    return out;
}

struct json_object *cmd_json_time(uint64_t seconds)
{
    char text[CMD_TIME_TEXT];

    if (seconds > YEAR_9999_END)
        return NULL;
    return json_object_new_string(cmd_time_text(text, seconds));
}

int cmd_json_print(struct json_object *o)
{
    puts(json_object_to_json_string_ext(o,
                                        JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(o);
    return 0;
}
