/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header restore --resize-from: a header at the end of a container that something else made
 * larger is no longer at its end. It is found by the size that the container had. */

#include "block/file.h"
#include "keystore/unlock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* A header where it belongs would be overwritten by an old one. */
static int check_lost(struct blk *b, struct report *rep)
{
    const struct key_format *f = NULL;
    struct key_store *ks = NULL;

    if (key_recognise(&f, b, NULL) < 0 || f->open(&ks, b, b, NULL) < 0)
        return 0;
    f->close(ks);
    return report_error(rep, EEXIST,
                        "the container has a header that fits it: nothing was changed");
}

/* The format whose header it is says where it may be; what the others found is not worth a line. */
static int move(struct blk *b, uint64_t old_size, struct report *rep)
{
    const struct key_format *able = NULL;

    for (const struct key_format *const *f = key_formats; *f != NULL; f++) {
        if ((*f)->relocate == NULL)
            continue;
        able = *f;
        if ((*f)->relocate(b, old_size, NULL) == 0)
            return 0;
    }
    return able != NULL ? able->relocate(b, old_size, rep) : -EOPNOTSUPP;
}

int header_move(const struct header_words *w, struct report *rep)
{
    const struct blk_file_spec spec = {.path = w->container, .direct = BLK_DIRECT_OFF};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    pid_t holder = 0;
    int r = key_container_open_files(&c, &spec, NULL, &holder, rep);

    if (r == -EBUSY)
        return cmd_busy(w->container, NULL, holder, rep);
    if (r == 0)
        r = check_lost(c.blk, rep);
    if (r == 0)
        r = move(c.blk, w->resize_from, rep);
    if (r == 0)
        printf("the header of %s, which had %" PRIu64 " bytes, is at its end again\n",
               CMD_SHOWN(w->container), w->resize_from);
    return r;
}
