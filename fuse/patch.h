/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A change of key slots on the control socket, {"request": "slot", ...}: both directions, so that a
 * command and the daemon cannot drift apart. */

#include "base/report.h"

struct json_object;
struct key_patch;

/* "add", "change", "remove", "erase", "flags" */
const char *serve_patch_word(const struct key_patch *p);
/* For serve_control_ask(); the caller's to put. */
struct json_object *serve_patch_encode(const struct key_patch *p);
/* From a request that may hold anything. -EINVAL, said. */
int serve_patch_decode(struct key_patch *ret, struct json_object *request, struct report *rep);
