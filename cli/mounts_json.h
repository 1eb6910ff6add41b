/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "cli/json.h"
#include "fuse/registry.h"

/* The object that "list --json" prints about a mount: its record, "state" (mounted or dead) and
 * "uid", its owner. The caller's to put. */
struct json_object *cmd_mount_json(const struct serve_found *f);
