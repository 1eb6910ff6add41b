/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/draft.h"

/* From one container into a new one of other parameters, in this order:
 *
 *  1. room for it;
 *  2. the header, in memory, and the volume key by the way that every mount goes: from the header
 *     with the credential that made it; what is at the place of the header is cleared, durably;
 *  3. the disk is copied, made durable, and read again past the page cache: compared with the
 *     source;
 *  4. the header is written, made durable, read again and compared;
 *  5. only now the draft gets its name.
 *
 * So even a device, whose name everybody knows, is no container before it is complete, whatever
 * stops us and when. A file would do without 4 at the end, its name appears last; it goes the same
 * way so that there is one. */

#include "volume/copy.h"
#include "volume/ends.h"
#include "volume/stack.h"

#include <errno.h>
#include <inttypes.h>

enum { HEADER_MAX = 64 << 20 };

struct conversion {
    struct volume *from;
    struct vol_draft draft;
    struct key_volume key;
    struct blk *header; /* the ends of the container, where its header is until the end; owned */
    struct progress *progress;
};

static void conversion_done(struct conversion *c)
{
    blk_close(c->header);
    key_volume_done(&c->key);
    vol_draft_close(&c->draft);
}
#define AUTO_CONVERSION __attribute__((cleanup(conversion_done)))

static int make_header(struct conversion *c, const struct vol_create *to, struct report *rep)
{
    const struct key_format *format = c->draft.format;
    struct key_store *ks = NULL;
    struct key_create no_disk = c->draft.header;
    uint64_t len;
    int r;

    no_disk.size = 0;
    len = format->container_size(&no_disk);

    if (len > HEADER_MAX)
        return report_error(rep, EOPNOTSUPP, "a header of %" PRIu64 " bytes is too large", len);
    r = vol_ends_open(&c->header, vol_draft_header(&c->draft)->size, len, rep);
    if (r == 0)
        r = vol_draft_make_header(&c->draft, &to->credential, c->header, rep);
    if (r == 0)
        r = format->open(&ks, c->header, c->draft.blk, rep);
    if (r < 0)
        return r;
    r = format->unlock(ks, &c->draft.cred, KEY_SLOT_ANY, &c->key, rep);
    format->close(ks);
    return r;
}

/* Nobody finds an older container there while the new one grows. */
static int clear_head(struct conversion *c, struct report *rep)
{
    int r = blk_write_zeroes(c->draft.blk, c->key.data_offset, 0);

    if (r == 0)
        r = blk_flush(c->draft.blk);
    return r < 0 ? report_errno(rep, -r, "cannot clear the place of the header") : 0;
}

static int sync_and_drop_cache(struct blk *b, struct report *rep)
{
    int r = blk_flush(b);

    blk_file_drop_cache(b);
    return r < 0 ? report_errno(rep, -r, "cannot make the copy durable") : 0;
}

/* One pass over the disk through a stack that is built for it: the comparison shares nothing with
 * the copy. */
static int pass(struct conversion *c, int (*work)(const struct vol_copy *, struct report *),
                struct report *rep)
{
    const struct vol_spec spec = {.enospc_wait = VOL_NO, .no_readahead = true};
    struct vol_stack stack = {0};
    struct vol_copy copy = {
        .from = vol_top(c->from), .sparse = c->key.zero_pieces, .progress = c->progress};
    int r = vol_stack_open(&stack, c->draft.blk, &c->key, &spec, rep);

    if (r < 0)
        return r;
    copy.to = stack.top;
    r = work(&copy, rep);
    vol_stack_release(&stack);
    return r;
}

static int fill(struct conversion *c, struct report *rep)
{
    int r;

    progress_phase(c->progress, "copying");
    r = pass(c, vol_copy_run, rep);
    if (r == 0)
        r = sync_and_drop_cache(c->draft.blk, rep);
    progress_phase(c->progress, "checking");
    return r < 0 ? r : pass(c, vol_copy_compare, rep);
}

static int finish(struct conversion *c, struct report *rep)
{
    struct blk *to = vol_draft_header(&c->draft);
    int r = vol_ends_write(c->header, to, rep);

    if (r == 0)
        r = sync_and_drop_cache(to, rep);
    if (r == 0)
        r = vol_ends_compare(c->header, to, rep);
    if (r == 0) /* the last chance to want none of it */
        r = progress_step(c->progress, c->key.size, c->key.size);
    return r < 0 ? r : vol_draft_commit(&c->draft, rep);
}

int vol_convert(struct volume *from, const struct vol_create *to, pid_t *holder, struct report *rep)
{
    AUTO_CONVERSION struct conversion c = {.from = from, .progress = to->progress};
    int r = vol_draft_open(&c.draft, to, holder, rep);

    if (r == 0)
        r = make_header(&c, to, rep);
    if (r == 0)
        r = clear_head(&c, rep);
    if (r == 0)
        r = fill(&c, rep);
    return r < 0 ? r : finish(&c, rep);
}

int vol_is_zero(struct volume *v, uint64_t off, struct progress *progress, struct report *rep)
{
    return vol_copy_is_zero(vol_top(v), off, progress, rep);
}
