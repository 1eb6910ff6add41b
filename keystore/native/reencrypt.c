/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/reencrypt.h"

/* The order of writes, which is what lets the container open at every moment:
 *
 * 1. Start: record, then header copy 1, then copy 0, each durable before the next. Until the newer
 *    header is on the medium nothing refers to the record; from then on it is there. The data
 *    changes only when both copies are the new header.
 * 2. Zone: digests, then the record that names the zone, each durable; then the caller writes the
 *    data and flushes it; then the record that the zone is done. That one need not be durable
 *    before the next digests: those fit no piece of the finished zone, and a piece that fits none
 *    is new, which all of them are.
 *    Who goes on with a zone that was begun writes digests and record once more: after a flush that
 *    failed a cache may show what the medium does not have.
 * 3. Records alternate: the one that counts is never overwritten by its successor. Before anything
 *    else changes, both say the same: a place on the medium that goes bad must not cost the old
 * key, which only they have, nor send anybody back to a record that knows nothing of a zone begun.
 * 4. Finish: both header copies without the bit, and only then the records are wiped: until the
 *    second copy is durable, the first one may be lost and the second one refers to them.
 */

#include "keystore/native/slot.h"
#include "keystore/native/unlock.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint64_t record_off(uint64_t seq)
{
    return NATIVE_RECORD_AT + (seq - 1) % 2 * NATIVE_BLOCK;
}

static int write_failed(struct key_store *ks, int r, struct report *rep)
{
    ks->broken = true; /* nobody knows what is there now */
    return report_errno(rep, -r, "cannot write how far the re-encryption is");
}

/* A record fits what no medium tears; no more is written than has to be. */
static size_t record_len(const struct key_store *ks)
{
    return ks->b->granule > KEY_PIECE ? ks->b->granule : KEY_PIECE;
}

/* Make the next record out of ks->record; durable only after a flush. */
static int put_record(struct key_store *ks, struct report *rep)
{
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    int r;

    if (ks->broken)
        return report_error(rep, EIO,
                            "an earlier update of the header failed (open the container again)");
    ks->record.seq++;
    r = native_record_encode(block, &ks->record, &ks->record_keys);
    if (r == 0)
        r = blk_write(ks->b, block, record_len(ks), record_off(ks->record.seq));
    return r < 0 ? write_failed(ks, r, rep) : 0;
}

/* The next record in both places, one durable before the other. */
static int put_record_twice(struct key_store *ks, struct report *rep)
{
    int r = 0;

    for (unsigned i = 0; r == 0 && i < 2; i++) {
        r = put_record(ks, rep);
        if (r < 0)
            return r;
        r = blk_flush(ks->b);
    }
    return r < 0 ? write_failed(ks, r, rep) : 0;
}

/* --- opening --- */

/* The record that counts. -EBADMSG neither is valid, or why one cannot be read then. */
static int find_record(struct key_store *ks)
{
    const struct native_copy *c = &ks->copy[ks->current];
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    struct native_record found[2] = {0};
    int why = -EBADMSG;

    for (unsigned i = 0; i < 2; i++) {
        int r = blk_read(ks->b, block, NATIVE_BLOCK, NATIVE_RECORD_AT + i * NATIVE_BLOCK);

        if (r == 0)
            r = native_record_decode(&found[i], block, &c->header, native_header_params(c->block),
                                     &ks->record_keys);
        if (r < 0)
            found[i].seq = 0;
        if (r < 0 && r != -EINVAL && why == -EBADMSG)
            why = r;
    }
    ks->record = found[found[1].seq > found[0].seq];
    return ks->record.seq > 0 ? 0 : why;
}

/* The rule of the old key: all as the new one's, but the salt. */
static int old_rule(struct key_store *ks, struct key_volume *v)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};
    struct native_header old = ks->copy[ks->current].header;
    int r = secret_make(&master, NATIVE_MASTER);

    if (r == 0)
        r = native_record_wrap(master.bytes, ks->record.wrapped, &ks->record_keys);
    if (r == 0)
        r = native_header_set_params(&old, ks->record.old_params);
    if (r == 0)
        r = native_header_prk(&prk, &old, &master);
    if (r < 0)
        return r;
    v->old_rule = v->rule;
    v->old_rule.prk = prk;
    prk = (struct secret){0};
    memcpy(v->old_rule.tail, old.params_sha256, sizeof(old.params_sha256));
    return 0;
}

int native_reencrypt_load(struct key_store *ks, struct key_volume *v, struct report *rep)
{
    const struct native_header *h = &ks->copy[ks->current].header;
    int r;

    if (!(h->incompat & NATIVE_INCOMPAT_REENCRYPT))
        return 0;
    r = native_record_keys(&ks->record_keys, h, &ks->prk);
    if (r == 0)
        r = find_record(ks);
    if (r == -EBADMSG)
        return report_error(rep, EBADMSG,
                            "the container is being re-encrypted, and both records of how far that "
                            "is are damaged or changed");
    if (r == 0)
        r = old_rule(ks, v);
    if (r < 0)
        return report_errno(rep, -r, "cannot find out how far the re-encryption is");
    v->mixed = true;
    v->boundary = ks->record.done;
    v->zone = ks->record.zone;
    return 0;
}

int native_reencrypt_none(const struct key_store *ks, const char *doing, struct report *rep)
{
    if (ks->copy[ks->current].header.incompat & NATIVE_INCOMPAT_REENCRYPT)
        return report_error(rep, EBUSY,
                            "a re-encryption is not finished: %s has to wait for its end (hushvol "
                            "reencrypt goes on with it)",
                            doing);
    return 0;
}

/* --- start --- */

static const struct key_keep *find_keep(const struct key_keep *keep, unsigned n, unsigned slot)
{
    for (unsigned i = 0; i < n; i++)
        if (keep[i].slot == slot)
            return &keep[i];
    return NULL;
}

/* What unwrapping the slot shall cost: what it does now, unless something else is asked for. */
static int keep_cost(struct kdf_cost *ret, const struct native_slot *s, unsigned i,
                     const struct kdf_request *kdf, struct report *rep)
{
    if (kdf->memory == 0 && kdf->time_ms == 0 && kdf->iterations == 0) {
        *ret = s->cost;
        return kdf_check(ret, i, rep);
    }
    return ret->m_kib != 0 ? 0 : kdf_choose(ret, kdf, rep); /* one choice for all slots */
}

/* What becomes of the slots. */
struct rewrap {
    const struct native_header *header; /* the new one */
    const struct secret *master;        /* its */
    const struct key_keep *keep;
    unsigned n_keep;
    const struct kdf_request *kdf;
    struct kdf_cost cost; /* chosen for all, once */
};

/* One of keep gets the new master key, another is destroyed, what is empty stays as it is. */
static int rewrap_slot(struct rewrap *w, unsigned char *slot, unsigned i, struct report *rep)
{
    const struct key_keep *k = find_keep(w->keep, w->n_keep, i);
    struct native_slot s;
    int r;

    native_slot_decode(&s, slot);
    if (!s.used)
        return k != NULL ? report_error(rep, ENOENT, "key slot %u is empty", i) : 0;
    r = native_slot_check(&s, i, rep); /* nobody can be asked about one of an unknown kind */
    if (r == 0 && k == NULL)
        native_slot_destroy(slot);
    if (r < 0 || k == NULL)
        return r;
    r = keep_cost(&w->cost, &s, i, w->kdf, rep);
    return r < 0 ? r
                 : native_slot_wrap(slot, i, w->header, &w->cost, s.label, k->cred, w->master, rep);
}

static int rewrap_slots(struct key_store *ks, struct rewrap *w, struct report *rep)
{
    int r = 0;

    for (unsigned i = 0; i < NATIVE_SLOTS && r == 0; i++)
        r = rewrap_slot(w, native_header_slot(ks->next, i), i, rep);
    return r;
}

/* ks->record of the beginning, and the keys for it, which replace those in the store. */
static int first_record(struct key_store *ks, const struct native_header *h,
                        const struct secret *prk)
{
    struct native_copy *c = &ks->copy[ks->current];
    int r;

    ks->record = (struct native_record){0};
    memcpy(ks->record.old_params, native_header_params(c->block), NATIVE_PARAMS);
    r = native_record_keys(&ks->record_keys, h, prk);
    return r < 0 ? r : native_record_wrap(ks->record.wrapped, ks->master.bytes, &ks->record_keys);
}

/* Clears what an earlier re-encryption may have left, and finds out whether there is room. */
static int clear_place(struct key_store *ks, struct report *rep)
{
    const uint64_t len = NATIVE_DIGESTS_AT + NATIVE_DIGESTS_LEN - NATIVE_RECORD_AT;
    int r = blk_write_zeroes(ks->b, len, NATIVE_RECORD_AT);

    if (r == 0)
        r = blk_flush(ks->b);
    return r < 0 ? report_errno(rep, -r, "cannot clear the place of the re-encryption's records")
                 : 0;
}

static int start_with(struct key_store *ks, struct rewrap *w, struct secret *master,
                      struct secret *prk, struct report *rep)
{
    struct native_header h = ks->copy[ks->current].header;
    int r;

    w->header = &h;
    w->master = master;
    secret_random(master->bytes, master->len);
    secret_random(h.salt, sizeof(h.salt));
    h.incompat |= NATIVE_INCOMPAT_REENCRYPT;
    memcpy(ks->next, ks->copy[ks->current].block, NATIVE_BLOCK);
    r = native_header_encode(ks->next, &h);
    if (r == 0)
        r = native_header_prk(prk, &h, master);
    if (r == 0)
        r = rewrap_slots(ks, w, rep);
    if (r == 0)
        r = first_record(ks, &h, prk);
    if (r == 0)
        r = native_store_again(ks, rep); /* the end of an earlier one, whose records these are */
    if (r == 0)
        r = clear_place(ks, rep);
    if (r == 0)
        r = put_record_twice(ks, rep);
    return r < 0 ? r : native_store_replace(ks, &h, prk, rep);
}

static int reencrypt_start(struct key_store *ks, const struct key_keep *keep, unsigned n_keep,
                           const struct kdf_request *kdf, struct key_volume *key,
                           struct report *rep)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct rewrap w = {.keep = keep, .n_keep = n_keep, .kdf = kdf};
    int r;

    assert(ks->master.bytes != NULL && n_keep > 0);
    r = native_reencrypt_none(ks, "another one", rep);
    if (r == 0)
        r = native_store_ready(ks, rep);
    if (r == 0)
        r = secret_make(&master, NATIVE_MASTER);
    if (r == 0)
        r = start_with(ks, &w, &master, &prk, rep);
    if (r < 0)
        return r;
    secret_done(&ks->master);
    secret_done(&ks->prk);
    ks->master = master;
    ks->prk = prk;
    master = prk = (struct secret){0};
    r = native_volume(&v, ks, key->slot, rep);
    if (r < 0)
        return r;
    key_volume_done(key);
    *key = v;
    v = (struct key_volume){0};
    return 0;
}

/* --- zones --- */

static void reencrypt_digest(const struct key_store *ks, unsigned char *out,
                             const unsigned char *ciphertext, size_t len, uint64_t off)
{
    native_record_digest(out, ciphertext, len, off, &ks->record_keys);
}

/* Bytes that the digests of a zone take, whole blocks. */
static size_t digests_len(uint32_t zone)
{
    size_t n = zone / KEY_PIECE * KEY_DIGEST;

    return (n + NATIVE_BLOCK - 1) / NATIVE_BLOCK * NATIVE_BLOCK;
}

static int zone_begin(struct key_store *ks, uint64_t off, uint32_t len,
                      const unsigned char digests[KEY_DIGESTS_MAX], struct report *rep)
{
    int r;

    assert(ks->record.zone == 0 || (off == ks->record.done && len == ks->record.zone));
    assert(off >= ks->record.done && len <= NATIVE_ZONE_MAX);
    if (ks->broken)
        return put_record(ks, rep); /* says so */
    r = blk_write(ks->b, digests, digests_len(len), NATIVE_DIGESTS_AT);
    if (r == 0)
        r = blk_flush(ks->b);
    if (r < 0)
        return write_failed(ks, r, rep);
    ks->record.done = off;
    ks->record.zone = len;
    return put_record_twice(ks, rep);
}

static int zone_digests(struct key_store *ks, unsigned char digests[KEY_DIGESTS_MAX],
                        struct report *rep)
{
    int r = blk_read(ks->b, digests, digests_len(ks->record.zone), NATIVE_DIGESTS_AT);

    return r < 0 ? report_errno(rep, -r, "cannot read what the re-encryption was doing") : 0;
}

static int zone_end(struct key_store *ks, struct report *rep)
{
    ks->record.done += ks->record.zone;
    ks->record.zone = 0;
    return put_record(ks, rep);
}

/* --- finish --- */

/* The container is what it shall be already: that this fails is no reason to say that all did. */
static void wipe_place(struct key_store *ks, struct report *rep)
{
    static const unsigned char zeros[2 * NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    int r = blk_write(ks->b, zeros, sizeof(zeros), NATIVE_RECORD_AT);

    if (r == 0)
        r = blk_write_zeroes(ks->b, NATIVE_DIGESTS_LEN, NATIVE_DIGESTS_AT);
    if (r == 0)
        r = blk_flush(ks->b);
    if (r < 0)
        report_warn(rep,
                    "the old volume key, enciphered with the new one, could not be wiped from the "
                    "header (%s)",
                    strerror(-r));
}

static int reencrypt_finish(struct key_store *ks, struct report *rep)
{
    struct native_header h = ks->copy[ks->current].header;
    int r = native_store_ready(ks, rep);

    assert(ks->record.zone == 0);
    if (r < 0)
        return r;
    h.incompat &= ~NATIVE_INCOMPAT_REENCRYPT;
    memcpy(ks->next, ks->copy[ks->current].block, NATIVE_BLOCK);
    r = native_store_replace(ks, &h, &ks->prk, rep);
    if (r == 0)
        wipe_place(ks, rep);
    return r;
}

const struct key_reencrypt native_reencrypt = {
    .zone_max = NATIVE_ZONE_MAX,
    .start = reencrypt_start,
    .digest = reencrypt_digest,
    .zone_begin = zone_begin,
    .zone_digests = zone_digests,
    .zone_end = zone_end,
    .finish = reencrypt_finish,
};
