/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The mount that a word of the command line means. */

#include "base/report.h"
#include "fuse/registry.h"

/* As serve_registry_find(), and when nothing mounted is known by the word: the mount of the
 * container of the configured volume with that name, which can have another name. Only then are the
 * configuration files read. -ENOENT there is none, without words; all else is said. */
int cmd_find_mount(struct serve_found *ret, const char *word, struct report *rep);

/* The same; -ENOENT is said too. */
int cmd_find_mounted(struct serve_found *ret, const char *word, struct report *rep);
