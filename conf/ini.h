/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The text of one configuration file as settings that know where they stand. No key is known here
 * and no file is opened. */

#include "base/report.h"

#define CONF_TEXT_MAX (1024 * 1024) /* bytes of one file */
#define CONF_LINE_MAX 1000          /* bytes of one line; iniparser has room for 1024 */
#define CONF_SETTINGS_MAX 1024      /* of one file, its sections counted */

struct conf_setting {
    char *volume; /* of [volume NAME], or "" in [defaults] */
    char *key;    /* "" for the line of the section itself */
    char *value;  /* as it stands there, without its quotes */
    unsigned line;
};

struct conf_ini {
    struct conf_setting *settings; /* in the order of the file */
    unsigned n;
};
void conf_ini_done(struct conf_ini *ini);
#define AUTO_INI __attribute__((cleanup(conf_ini_done)))

/* Read len bytes. file is for the messages, one for each line that is wrong: "FILE:LINE: why".
 * -EUCLEAN something is wrong, -ENOMEM. ret holds something only when this succeeds. */
int conf_ini_read(struct conf_ini *ret, const char *file, const char *text, size_t len,
                  struct report *rep);
