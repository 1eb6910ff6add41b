/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes what reads a configuration file. Input: the text. What it must never find: a crash, a
 * refusal without a word, a volume that is taken and then cannot be applied. */

#include "conf/config.h"

#include <errno.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static void count(struct report *rep, enum report_level level, const char *text)
{
    (void)level;
    (void)text;
    rep->silent_infos++;
}

static void check_volume(const struct conf_volume *v)
{
    struct conf_mount m;

    conf_mount_init(&m);
    if (v->container[0] != '/' || conf_volume_apply(&m, v, NULL) < 0 || m.serve.name == NULL)
        abort();
    conf_mount_done(&m);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    struct report rep = {.say = count};
    const struct conf_volume *v;
    struct conf *c;
    int r;

    if (conf_new(&c) < 0)
        abort();
    r = conf_add(c, "file", true, (const char *)data, len, &rep);
    if (r == 0)
        r = conf_settle(c, &rep);
    if ((r < 0) != (rep.silent_infos > 0))
        abort();
    for (unsigned i = 0; r == 0 && (v = conf_volume(c, i)) != NULL; i++)
        check_volume(v);
    conf_free(c);
    return 0;
}
