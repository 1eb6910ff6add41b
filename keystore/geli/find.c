/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/whole.h"

/* Metadata that is no longer at the end, because the container grew: docs/geli-format.md 11. It
 * says itself how large the container was, so it is known by lying where that container ended; one
 * that lies elsewhere (in a partition, in a file that was on the disk before it was enciphered)
 * does not count. Looked for from the end down: what is nearest was there last. */

#include "block/blk.h"

#include <errno.h>
#include <stdlib.h>

#define FIND_PIECE ((uint64_t)1 << 20) /* bytes read at once */

static bool is_end(const unsigned char *block, uint64_t off, uint64_t *ret)
{
    struct geli_meta m;

    if (!geli_meta_begins(block) || geli_meta_decode(&m, block, NULL) < 0)
        return false;
    for (uint32_t s = GELI_SECTOR_MIN; s <= GELI_SECTOR_MAX; s *= 2) {
        if (off % s != 0 || m.provsize < s || m.provsize - s != off)
            continue;
        *ret = m.provsize;
        return true;
    }
    return false;
}

/* The last one in a piece; 1 found. */
static int find_in(const unsigned char *bytes, uint64_t start, uint64_t len, uint64_t end,
                   uint64_t *ret)
{
    for (uint64_t at = len / GELI_BLOCK * GELI_BLOCK; at > 0; at -= GELI_BLOCK) {
        uint64_t size;

        if (!is_end(bytes + at - GELI_BLOCK, start + at - GELI_BLOCK, &size) || size >= end)
            continue;
        *ret = size;
        return 1;
    }
    return 0;
}

/* A file that grew is mostly a hole there. */
static bool is_hole(struct blk *b, uint64_t start, uint64_t end)
{
    struct blk_extent e;

    return blk_extent(b, start, &e) == 0 && e.hole && e.end >= end;
}

static int find(struct blk *b, unsigned char *bytes, uint64_t *ret, struct progress *progress)
{
    uint64_t start;
    int r = 0;

    for (uint64_t end = b->size; r == 0 && end > 0; end = start) {
        start = (end - 1) / FIND_PIECE * FIND_PIECE;
        r = progress_step(progress, b->size - end, b->size);
        if (r < 0 || is_hole(b, start, end))
            continue;
        r = blk_read(b, bytes, end - start, start);
        if (r == 0)
            r = find_in(bytes, start, end - start, b->size, ret);
    }
    return r;
}

int geli_find_end(struct blk *header, uint64_t *ret, struct progress *progress, struct report *rep)
{
    AUTO_FREE unsigned char *bytes = malloc(FIND_PIECE);
    int r = bytes != NULL ? find(header, bytes, ret, progress) : -ENOMEM;

    if (r == 0)
        return report_error(rep, EBADMSG,
                            "there is no GELI metadata of a container that ended anywhere in it");
    if (r == -EINTR)
        return r;
    return r < 0 ? report_errno(rep, -r, "cannot look for the metadata") : 0;
}
