/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/backup.h"

/* A backup is the header as it would lie in a container: both copies in their places, zeros between
 * them. So it is checked by the same code, and serves as a detached header as it is. Both copies
 * are the one that counts: an older one beside it holds slots that somebody may have removed since.
 *
 * Restoring writes the place first that holds the lesser copy, and goes on only when that is on the
 * medium: until the second place is touched the old header opens, from then on the new one does. In
 * between the sequence numbers decide, and both copies are whole. */

#include "keystore/native/reencrypt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void native_uuid(struct key_store *ks, unsigned char uuid[16])
{
    memcpy(uuid, ks->copy[ks->current].header.uuid, 16);
}

/* As large as the place of a header in a container, so that whatever else may stand before the data
 * has its place in a detached header too. */
uint64_t native_header_size(struct key_store *ks)
{
    (void)ks;
    return NATIVE_DATA;
}

int native_backup(struct key_store *ks, struct blk *to, struct report *rep)
{
    const struct native_copy *c = &ks->copy[ks->current];
    int r = native_reencrypt_none(ks, "a backup, which would not fit it later,", rep);

    return r < 0 ? r : native_store_create(to, c->block, rep);
}

/* Written, and there: what a worn medium does not keep is better known now. */
static int replace_copy(struct blk *header, unsigned i, const unsigned char *block,
                        struct report *rep)
{
    unsigned char back[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    int r = blk_write(header, block, NATIVE_BLOCK, native_copy_off(i));

    if (r == 0)
        r = blk_flush(header);
    if (r < 0)
        return report_errno(rep, -r, "cannot write header copy %u", i);
    r = blk_read(header, back, NATIVE_BLOCK, native_copy_off(i));
    if (r < 0)
        return report_errno(rep, -r, "cannot read header copy %u back", i);
    if (memcmp(back, block, NATIVE_BLOCK) != 0)
        return report_error(rep, EIO, "header copy %u does not read back as it was written", i);
    return 0;
}

int native_restore(struct key_store *backup, struct blk *header, struct report *rep)
{
    const struct native_copy *c = &backup->copy[backup->current];
    AUTO_FREE struct native_copy *old = aligned_alloc(NATIVE_ALIGN, NATIVE_COPIES * sizeof(*old));
    unsigned first;
    int r;

    if (old == NULL)
        return report_errno(rep, ENOMEM, "cannot restore the header");
    if (header->size < native_copy_off(1) + NATIVE_BLOCK)
        return report_error(rep, EBADMSG, "there is no room for a header: %" PRIu64 " bytes",
                            header->size);
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        native_copy_read(&old[i], header, i);
    first = native_copy_newest(old) != 1; /* 1 when copy 1 is the one to lose first */
    r = replace_copy(header, first, c->block, rep);
    return r < 0 ? r : replace_copy(header, !first, c->block, rep);
}

int native_restore_check(struct key_store *backup, struct key_store *ks, struct report *rep)
{
    const struct native_header *from = &backup->copy[backup->current].header;
    const struct native_header *now = ks != NULL ? &ks->copy[ks->current].header : from;
    int r = ks != NULL ? native_reencrypt_none(ks, "another header", rep) : 0;

    if (r < 0)
        return r;
    if (from->incompat & NATIVE_INCOMPAT_REENCRYPT)
        return report_error(rep, EPERM,
                            "the backup is from the middle of a re-encryption, whose records are "
                            "not in it");
    if (memcmp(from->params_sha256, now->params_sha256, sizeof(now->params_sha256)) != 0)
        return report_error(rep, EPERM,
                            "the backup has another volume key than the container has now: what "
                            "was written with that would be lost");
    if (from->capacity != now->capacity)
        return report_error(rep, EPERM,
                            "the disk was resized since: it has %" PRIu64 " bytes, and %" PRIu64
                            " in the backup",
                            now->capacity, from->capacity);
    return 0;
}
