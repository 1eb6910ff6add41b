/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/store.h"

/* 1. The newest copy that is not damaged counts; the other is looked at only when the newest turns
 * out damaged, also as late as its MAC. A newest copy without slots is an erased container: going
 * back to the other one would undo the erasure.
 * 2. At every moment one copy is whole. An update writes copy 1, flushes, then copy 0, flushes, and
 *    starts from two equal copies: when copy 1 is the only good one, copy 0 is mended first.
 * 3. Only what was verified with the key is written: a copy is mended from one whose MAC fits.
 * 4. After a write that failed nobody knows what is on the medium: no further update by this store.
 */

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int write_copy(struct blk *b, unsigned i, const unsigned char *block, struct report *rep)
{
    int r = blk_write(b, block, NATIVE_BLOCK, native_copy_off(i));

    if (r == 0)
        r = blk_flush(b);
    return r < 0 ? report_errno(rep, -r, "cannot write header copy %u", i) : 0;
}

/* Everything before the data is cleared first, and durably: an older header with a higher sequence
 * number would win over the new one. */
int native_store_create(struct blk *b, const unsigned char block[NATIVE_BLOCK], struct report *rep)
{
    int r = blk_write_zeroes(b, NATIVE_DATA, 0);

    if (r == 0)
        r = blk_flush(b);
    if (r < 0)
        return report_errno(rep, -r, "cannot clear the place of the header");
    r = write_copy(b, 1, block, rep);
    return r < 0 ? r : write_copy(b, 0, block, rep);
}

void native_store_forget(struct key_store *ks, bool all)
{
    secret_done(&ks->master);
    if (all)
        secret_done(&ks->prk);
}

void native_store_close(struct key_store *ks)
{
    if (ks == NULL)
        return;
    native_store_forget(ks, true);
    free(ks);
}

static int read_copy(struct key_store *ks, unsigned i)
{
    struct native_copy *c = &ks->copy[i];
    int r;

    if (native_copy_off(i) > ks->b->size || NATIVE_BLOCK > ks->b->size - native_copy_off(i))
        return -EBADMSG;
    r = blk_read(ks->b, c->block, NATIVE_BLOCK, native_copy_off(i));
    return r < 0 ? r : native_header_decode(&c->header, c->block, NULL);
}

/* A copy that only a later version understands is no damage: it may well be the newest. */
static bool copy_counts(const struct native_copy *c)
{
    return c->state == 0 || c->state == -EOPNOTSUPP;
}

static bool copy_newer(const struct native_copy *a, const struct native_copy *b)
{
    if (a->header.seq != b->header.seq)
        return a->header.seq > b->header.seq;
    return a->header.slot_seq > b->header.slot_seq;
}

/* Does the container hold what the copy's header promises, and may we use it as b was opened? */
int native_store_check(const struct key_store *ks, const struct native_header *h,
                       struct report *rep)
{
    if (h->data_offset > ks->data->size || h->capacity > ks->data->size - h->data_offset)
        return report_error(rep, EBADMSG,
                            "the container is cut short: it has %" PRIu64
                            " bytes and its header promises %" PRIu64,
                            ks->data->size, h->data_offset + h->capacity);
    if (h->ro_compat != 0 && !ks->data->read_only)
        return report_error(rep, EOPNOTSUPP,
                            "the container uses features 0x%" PRIx32
                            " that this version can only read (open it read-only)",
                            h->ro_compat);
    return 0;
}

/* No copy counts: say what is wrong with one of them. */
static int explain_damage(struct key_store *ks, struct report *rep)
{
    struct native_header h;
    int first = ks->copy[0].state, second = ks->copy[1].state;

    if (ks->b->size < NATIVE_BLOCK)
        return report_error(rep, EBADMSG,
                            "the container is cut short: it has %" PRIu64
                            " bytes, less than a header",
                            ks->b->size);
    if (first != -EBADMSG && second != -EBADMSG)
        return report_errno(rep, -first, "cannot read the header");
    return native_header_decode(&h, ks->copy[first != -EBADMSG].block, rep);
}

static void warn_damage(const struct key_store *ks, unsigned i, struct report *rep)
{
    int state = ks->copy[i].state;

    if (state == -EBADMSG)
        report_warn(rep, "header copy %u is damaged, the other one is used", i);
    else if (state != 0 && state != -EOPNOTSUPP)
        report_warn(rep, "header copy %u cannot be read (%s), the other one is used", i,
                    strerror(-state));
}

/* Find the copy that counts (1). */
static int choose_copy(struct key_store *ks, struct report *rep)
{
    const struct native_copy *c = ks->copy;
    struct native_header h;

    if (!copy_counts(&c[0]) && !copy_counts(&c[1]))
        return explain_damage(ks, rep);
    ks->current = !copy_counts(&c[0]) || (copy_counts(&c[1]) && copy_newer(&c[1], &c[0]));
    if (c[ks->current].state == -EOPNOTSUPP)
        return native_header_decode(&h, c[ks->current].block, rep);
    warn_damage(ks, !ks->current, rep);
    return native_store_check(ks, &c[ks->current].header, rep);
}

int native_store_open(struct key_store **ret, struct blk *header, struct blk *data,
                      struct report *rep)
{
    struct key_store *ks = aligned_alloc(NATIVE_ALIGN, sizeof(*ks));
    int r;

    if (ks == NULL)
        return report_error(rep, ENOMEM, "no memory for the header");
    memset(ks, 0, sizeof(*ks)); /* sizeof is a multiple of the alignment */
    ks->b = header;
    ks->data = data;
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        ks->copy[i].state = read_copy(ks, i);
    r = choose_copy(ks, rep);
    if (r < 0) {
        native_store_close(ks);
        return r;
    }
    *ret = ks;
    return 0;
}

/* Every write after an unlock goes through here: none follows one that failed (4). */
static int store_write(struct key_store *ks, unsigned i, const unsigned char *block,
                       struct report *rep)
{
    int r = write_copy(ks->b, i, block, rep);

    ks->broken = r < 0;
    return r;
}

int native_store_repair(struct key_store *ks, struct report *rep)
{
    const struct native_copy *good = &ks->copy[ks->current];
    unsigned other = !ks->current;
    struct native_copy *c = &ks->copy[other];
    int r;

    assert(ks->prk.bytes != NULL);
    if (ks->broken)
        return report_error(rep, EIO,
                            "an earlier update of the header failed (open the container again)");
    if (c->state == 0 && memcmp(c->block, good->block, NATIVE_BLOCK) == 0)
        return 0;
    r = store_write(ks, other, good->block, rep);
    if (r < 0) {
        report_warn(rep, "header copy %u is damaged and cannot be mended (-o ro leaves it alone)",
                    other);
        return r;
    }
    report_warn(rep, "header copy %u was %s and is now mended", other,
                c->state == 0 ? "out of date" : "damaged");
    *c = *good;
    return 0;
}

/* Number ks->next, authenticate it, store it (2). The repair before it saw to (4). */
int native_store_update(struct key_store *ks, struct report *rep)
{
    struct native_header h = ks->copy[ks->current].header;
    int r;

    assert(!ks->broken);
    h.seq++;
    h.slot_seq++;
    if (h.seq == UINT64_MAX || h.slot_seq == UINT64_MAX)
        return report_error(rep, EOVERFLOW, "the header was changed too often");
    r = native_header_encode(ks->next, &h);
    if (r == 0)
        r = native_header_seal(ks->next, &h, &ks->prk);
    if (r == 0)
        r = store_write(ks, 1, ks->next, rep);
    if (r == 0)
        r = store_write(ks, 0, ks->next, rep);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < NATIVE_COPIES; i++) {
        ks->copy[i].header = h;
        memcpy(ks->copy[i].block, ks->next, NATIVE_BLOCK);
    }
    return 0;
}
