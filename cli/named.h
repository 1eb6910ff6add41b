/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* A NAME where a container is expected: a volume of the configuration files. What these give lasts
 * as long as the process. */

#include "base/report.h"
#include "conf/config.h"
#include "keystore/credential.h"

#include <stdbool.h>

/* A word with a / in it, or of something that is there and no folder, is a path; one that is no
 * name neither asks nor needs any configuration. 1 it is a volume; 0 it is not; else as
 * conf_read(), said. */
int cmd_named(const struct conf_volume **ret, const char *word, struct report *rep);

/* For commands that open the container itself: put the volume's container and header, and its key
 * files and passphrase source when key has none, in the place of the word. Without a volume of that
 * name nothing changes. header and key may be NULL. Root goes on as the volume's owner. 0, as
 * above, or as cmd_owner_become(). */
int cmd_named_container(const char **word, const char **header, struct credential_source *key,
                        struct report *rep);

/* Is it the caller's? A volume of a system file without an owner is root's. */
bool cmd_named_is_ours(const struct conf_volume *v);
