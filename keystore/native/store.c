/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/store.h"

/* 1. The newest copy that is not damaged counts; the other is looked at only when the newest turns
 * out damaged, also as late as its MAC. A newest copy without slots is an erased container: going
 * back to the other one would undo the erasure.
 * 2. At every moment one copy is whole. An update writes copy 1, flushes, then copy 0, flushes, and
 *    starts from two equal copies: when copy 1 is the only good one, copy 0 is mended first.
 * 3. Only what was verified with the key is written: a copy is mended from one whose MAC fits.
 * 4. After a write that failed nobody knows what is on the medium: no further update by this store.
 *    Nor does anybody later: an older copy that is whole gives way only after the newer one, which
 * a cache may show though the medium does not have it, was written once more.
 * 5. Erasing writes what will be the newest copy over the one that does not count, then over the
 *    other: a crash between leaves a newest copy that is whole and has no slots, one inside leaves
 *    the container as it was. */

#include "keystore/native/slot.h"

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
    secret_done(&ks->record_keys);
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

static bool copy_exists(const struct blk *b, unsigned i)
{
    return native_copy_off(i) <= b->size && NATIVE_BLOCK <= b->size - native_copy_off(i);
}

void native_copy_read(struct native_copy *c, struct blk *b, unsigned i)
{
    memset(c, 0, sizeof(*c));
    c->state = -EBADMSG;
    if (copy_exists(b, i))
        c->state = blk_read(b, c->block, NATIVE_BLOCK, native_copy_off(i));
    if (c->state == 0)
        c->state = native_header_decode(&c->header, c->block, NULL);
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

int native_store_fits(const struct native_header *h, const struct blk *data, struct report *rep)
{
    if (h->data_offset > data->size || h->capacity > data->size - h->data_offset)
        return report_error(rep, EBADMSG,
                            "the container is cut short: it has %" PRIu64
                            " bytes and its header promises %" PRIu64
                            " (copy it again; if the rest is lost, \"truncate --size %" PRIu64
                            "\" on the file makes what is left open)",
                            data->size, h->data_offset + h->capacity, h->data_offset + h->capacity);
    return 0;
}

int native_store_check(const struct key_store *ks, const struct native_header *h,
                       struct report *rep)
{
    int r = native_store_fits(h, ks->data, rep);

    if (r < 0)
        return r;
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

unsigned native_copy_newest(const struct native_copy c[NATIVE_COPIES])
{
    return !copy_counts(&c[0]) || (copy_counts(&c[1]) && copy_newer(&c[1], &c[0]));
}

static int check_chosen(struct key_store *ks, struct report *rep)
{
    const struct native_copy *c = ks->copy;
    struct native_header h;

    if (!copy_counts(&c[ks->current]))
        return explain_damage(ks, rep);
    if (c[ks->current].state == -EOPNOTSUPP)
        return native_header_decode(&h, c[ks->current].block, rep);
    warn_damage(ks, !ks->current, rep);
    return native_store_check(ks, &c[ks->current].header, rep);
}

static int store_read(struct key_store **ret, struct blk *header, struct blk *data,
                      struct report *rep)
{
    struct key_store *ks = aligned_alloc(NATIVE_ALIGN, sizeof(*ks));

    if (ks == NULL)
        return report_error(rep, ENOMEM, "no memory for the header");
    memset(ks, 0, sizeof(*ks)); /* sizeof is a multiple of the alignment */
    ks->b = header;
    ks->data = data;
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        native_copy_read(&ks->copy[i], header, i);
    *ret = ks;
    return 0;
}

int native_store_open(struct key_store **ret, struct blk *header, struct blk *data,
                      struct report *rep)
{
    struct key_store *ks = NULL;
    int r = store_read(&ks, header, data, rep);

    if (r < 0)
        return r;
    ks->current = native_copy_newest(ks->copy);
    r = check_chosen(ks, rep);
    if (r < 0) {
        native_store_close(ks);
        return r;
    }
    *ret = ks;
    return 0;
}

/* Every write of a header that is to open goes through here: none follows one that failed (4). */
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
    r = c->state == 0 ? store_write(ks, ks->current, good->block, rep) : 0; /* (4) */
    if (r == 0)
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

int native_store_ready(struct key_store *ks, struct report *rep)
{
    const struct native_copy *c = ks->copy;

    if (ks->b->read_only)
        return report_error(rep, EROFS, "the container is open for reading only");
    if (ks->broken || ks->prk.bytes != NULL)
        return native_store_repair(ks, rep);
    if (c[0].state != 0 || c[1].state != 0 || memcmp(c[0].block, c[1].block, NATIVE_BLOCK) != 0)
        return report_error(rep, EBADMSG,
                            "header copy %u is damaged or out of date and has to be mended first "
                            "(unlocking the container for writing does that)",
                            !ks->current);
    return 0;
}

int native_store_again(struct key_store *ks, struct report *rep)
{
    return store_write(ks, 0, ks->copy[ks->current].block, rep);
}

/* The numbers and the sums of ks->next: all of them with the key, else those behind the MAC. */
static int finish_next(struct key_store *ks, struct native_header *h, const struct secret *prk,
                       struct report *rep)
{
    bool keyed = prk->bytes != NULL;
    int r;

    h->slot_seq++;
    h->seq += keyed;
    if (h->seq == UINT64_MAX || h->slot_seq == UINT64_MAX)
        return report_error(rep, EOVERFLOW, "the header was changed too often");
    r = native_header_encode(ks->next, h);
    if (r < 0)
        return r;
    return keyed ? native_header_seal(ks->next, h, prk) : native_header_sum(ks->next);
}

/* Complete ks->next with these fields, store it (2). native_store_ready() before it saw to (4). */
int native_store_replace(struct key_store *ks, struct native_header *h, const struct secret *prk,
                         struct report *rep)
{
    int r;

    assert(!ks->broken);
    r = finish_next(ks, h, prk, rep);
    if (r == 0)
        r = store_write(ks, 1, ks->next, rep);
    if (r == 0)
        r = store_write(ks, 0, ks->next, rep);
    if (r < 0)
        return r;
    for (unsigned i = 0; i < NATIVE_COPIES; i++) {
        ks->copy[i].header = *h;
        memcpy(ks->copy[i].block, ks->next, NATIVE_BLOCK);
    }
    return 0;
}

int native_store_update(struct key_store *ks, struct report *rep)
{
    struct native_header h = ks->copy[ks->current].header;

    return native_store_replace(ks, &h, &ks->prk, rep);
}

int native_store_set_capacity(struct key_store *ks, uint64_t capacity, struct report *rep)
{
    struct native_header h = ks->copy[ks->current].header;

    assert(ks->prk.bytes != NULL);
    h.capacity = capacity;
    memcpy(ks->next, ks->copy[ks->current].block, NATIVE_BLOCK);
    return native_store_replace(ks, &h, &ks->prk, rep);
}

/* A block without slots; the checksum fits if it fitted before. */
static int erase_block(unsigned char *block, bool fits)
{
    for (unsigned i = 0; i < NATIVE_SLOTS; i++)
        native_slot_destroy(native_header_slot(block, i));
    if (!fits)
        return 0;
    native_header_touch(block);
    return native_header_sum(block);
}

/* What a container that was cut has of a copy may have slots. */
static int wipe_cut(struct blk *b, unsigned i, struct report *rep)
{
    uint64_t off = native_copy_off(i);
    int r;

    if (off >= b->size)
        return 0;
    r = blk_write_zeroes(b, b->size - off, off);
    if (r == 0)
        r = blk_flush(b);
    return r < 0 ? report_errno(rep, -r, "cannot wipe what is left of header copy %u", i) : 0;
}

/* (5): the copy that does not count is replaced first, the one that counts last. Each is tried
 * though the other failed. */
static int write_erased(struct key_store *ks, struct report *rep)
{
    int r = 0;

    for (unsigned n = 0; n < NATIVE_COPIES; n++) {
        unsigned i = n == 0 ? !ks->current : ks->current;
        int one = copy_exists(ks->b, i) ? write_copy(ks->b, i, ks->copy[i].block, rep)
                                        : wipe_cut(ks->b, i, rep);

        r = r < 0 ? r : one;
    }
    ks->broken = r < 0;
    return r;
}

int native_store_erase(struct key_store *ks, struct report *rep)
{
    struct native_copy *c = ks->copy, *good = &c[ks->current];
    int r = 0;

    if (ks->b->read_only)
        return report_error(rep, EROFS, "the container is open for reading only");
    if (copy_counts(good)) {
        r = erase_block(good->block, true);
        native_header_decode(&good->header, good->block, NULL);
        c[!ks->current] = *good;
    }
    for (unsigned i = 0; i < NATIVE_COPIES && !copy_counts(good); i++)
        r = erase_block(c[i].block, false);
    return r < 0 ? r : write_erased(ks, rep);
}

int native_store_destroy(struct blk *header, struct report *rep)
{
    struct key_store *ks = NULL;
    int r = store_read(&ks, header, header, rep);

    if (r == 0) {
        ks->current = native_copy_newest(ks->copy);
        r = native_store_erase(ks, rep);
    }
    native_store_close(ks);
    return r;
}
