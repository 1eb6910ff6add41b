/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Output for programs: json-c, with two rules of ours. */

#include <json-c/json.h>
#include <stdint.h>

/* text as a JSON string. JSON is UTF-8 and nothing else, paths and labels are bytes: when text is
 * not valid UTF-8, its bytes from 0x80 on are written as \xNN. */
struct json_object *cmd_json_string(const char *text);

/* Seconds since 1970 as "2026-01-31T08:00:00Z"; null when the year is beyond 9999. */
struct json_object *cmd_json_time(uint64_t seconds);
#define CMD_TIME_TEXT 32
/* The same for people; "?" then. */
const char *cmd_time_text(char out[CMD_TIME_TEXT], uint64_t seconds);

/* Print o to stdout, indented, with a newline, and release it. Returns 0; main() notices when it
 * could not be written. */
int cmd_json_print(struct json_object *o);
