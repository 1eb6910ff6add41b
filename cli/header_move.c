/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header restore --resize-from: a header at the end of a container that something else made
 * larger is no longer at its end. It is found by the size that the container
 * had, or by looking for it. */

#include "block/file.h"
#include "cli/progress.h"
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

static int find_in(uint64_t *ret, struct blk *b, struct report *rep)
{
    int r = -EOPNOTSUPP;

    for (const struct key_format *const *f = key_formats; *f != NULL; f++) {
        struct cmd_progress progress;

        if ((*f)->find_end == NULL)
            continue;
        cmd_progress_start(&progress, "header restore");
        r = (*f)->find_end(b, ret, &progress.progress, rep);
        cmd_progress_end(&progress, r);
        if (r != -EBADMSG)
            break;
    }
    return r;
}

/* What was found may be older than the container: who made it grow knows. */
static int find(uint64_t *ret, const struct header_words *w, struct blk *b, struct report *rep)
{
    char question[REPORT_LINE];
    int r = find_in(ret, b, rep);

    if (r < 0)
        return r;
    printf("there is a header from when %s had %" PRIu64 " bytes\n", CMD_SHOWN(w->container), *ret);
    fflush(stdout); /* also where nobody can be asked */
    snprintf(question, sizeof(question),
             "That header will move to the end of %s, which has %" PRIu64 " bytes now.",
             w->container, b->size);
    return cmd_confirm(w->yes, question, "yes", rep);
}

int header_move(const struct header_words *w, struct report *rep)
{
    const struct blk_file_spec spec = {.path = w->container, .direct = BLK_DIRECT_OFF};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    uint64_t old_size = w->resize_from;
    pid_t holder = 0;
    int r = key_container_open_files(&c, &spec, NULL, &holder, rep);

    if (r == -EBUSY)
        return cmd_busy(w->container, NULL, holder, rep);
    if (r == 0)
        r = check_lost(c.blk, rep);
    if (r == 0 && w->resize_find)
        r = find(&old_size, w, c.blk, rep);
    if (r == 0)
        r = move(c.blk, old_size, rep);
    if (r == 0)
        printf("the header of %s, which had %" PRIu64 " bytes, is at its end again\n",
               CMD_SHOWN(w->container), old_size);
    return r;
}
