/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/unlock.h"

/* Slots are tried in their order, and only those that a credential of this kind can open: each
 * costs a second. A slot that cannot be tried here is passed over; when nothing opens, it is the
 * reason. */

#include "keystore/native/reencrypt.h"
#include "keystore/native/slot.h"
#include "keystore/native/store.h"

#include <errno.h>
#include <string.h>

/* One attempt to open the slots of a copy. */
struct attempt {
    const struct native_header *header;
    unsigned char *block;
    const struct credential *cred;
    int wanted; /* slot or KEY_SLOT_ANY */
    enum key_slot_kind kind;
    unsigned n_used, n_tried;
    bool both;   /* a slot wants a passphrase and key files together */
    int skipped; /* why a slot could not be tried: the first reason, as its errno */
    unsigned skipped_slot;
};

/* May and can this slot be tried? Says why not. */
static int slot_usable(const struct native_slot *s, unsigned i, struct report *rep)
{
    int r = native_slot_check(s, i, rep);

    return r < 0 ? r : kdf_check(&s->cost, i, rep);
}

static void skip_slot(struct attempt *a, unsigned i, int why, struct report *rep)
{
    if (a->wanted != KEY_SLOT_ANY)
        return;
    if (a->skipped == 0) {
        a->skipped = why;
        a->skipped_slot = i;
    }
    report_warn(rep, "key slot %u is passed over: it %s", i,
                why == -ENOMEM    ? "needs more memory than is available here"
                : why == -EBADMSG ? "asks for an impossible key derivation"
                                  : "is of a kind that this version does not support");
}

/* 1 opened, 0 not this one, or -errno. */
static int try_slot(struct attempt *a, unsigned i, struct secret *master, struct report *rep)
{
    const unsigned char *bytes = native_header_slot(a->block, i);
    bool any = a->wanted == KEY_SLOT_ANY;
    struct native_slot s;
    int r;

    native_slot_decode(&s, bytes);
    if (!s.used)
        return 0;
    a->n_used++;
    if (!any && a->wanted != (int)i)
        return 0;
    r = native_slot_check(&s, i, any ? NULL : rep);
    a->both |= r == 0 && s.type == KEY_SLOT_BOTH;
    if (r == 0 && s.type != a->kind)
        return 0;
    if (r == 0)
        r = kdf_check(&s.cost, i, any ? NULL : rep);
    if (r < 0) {
        skip_slot(a, i, r, rep);
        return any ? 0 : r;
    }
    a->n_tried++;
    r = native_slot_unwrap(master, bytes, i, a->header, a->cred, rep);
    return r == 0 ? 1 : r == -EKEYREJECTED ? 0 : r;
}

static int reject(const struct attempt *a, struct report *rep)
{
    const char *kind = native_slot_kind_words(a->kind);
    struct native_slot s;
    int r;

    if (a->n_used == 0)
        return report_error(
            rep, EKEYREJECTED,
            "the container was erased: it has no key slot any more (a backup of its "
            "header opens it: --header FILE)");
    if (a->skipped != 0) {
        native_slot_decode(&s, native_header_slot(a->block, a->skipped_slot));
        r = slot_usable(&s, a->skipped_slot, rep);
        if (r < 0) /* memory may have come free meanwhile */
            return r;
    }
    if (a->n_tried > 0 && a->wanted == KEY_SLOT_ANY)
        return report_error(rep, EKEYREJECTED, "no key slot opens with %s",
                            a->kind == KEY_SLOT_PASSPHRASE ? "this passphrase"
                            : a->kind == KEY_SLOT_KEYFILE  ? "these key files"
                                                           : "this passphrase and key files");
    if (a->wanted == KEY_SLOT_ANY)
        return report_error(rep, EKEYREJECTED, "no key slot is one for %s%s", kind,
                            a->both && a->kind == KEY_SLOT_KEYFILE
                                ? " (but for them and a passphrase: --ask-passphrase)"
                                : "");
    native_slot_decode(&s, native_header_slot(a->block, (unsigned)a->wanted));
    if (!s.used)
        return report_error(rep, EKEYREJECTED, "key slot %d is empty", a->wanted);
    if (s.type != a->kind)
        return report_error(rep, EKEYREJECTED, "key slot %d is one for %s", a->wanted,
                            native_slot_kind_words(s.type));
    return report_error(rep, EKEYREJECTED, "key slot %d does not open with this", a->wanted);
}

/* Returns the slot that opened. */
static int open_slots(struct native_copy *c, const struct credential *cred, int wanted,
                      struct secret *master, struct report *rep)
{
    struct attempt a = {.header = &c->header,
                        .block = c->block,
                        .cred = cred,
                        .wanted = wanted,
                        .kind = native_slot_kind(cred)};

    for (unsigned i = 0; i < NATIVE_SLOTS; i++) {
        int r = try_slot(&a, i, master, rep);

        if (r != 0)
            return r < 0 ? r : (int)i;
    }
    return reject(&a, rep);
}

/* Does the copy's MAC fit? -EBADMSG in silence. */
static int authenticate(const struct native_copy *c, const struct secret *master,
                        struct secret *prk)
{
    int r = native_header_prk(prk, &c->header, master);

    return r < 0 ? r : native_header_verify(c->block, &c->header, prk);
}

/* The MAC of the newest copy does not fit: is the other one whole? Returns the slot. */
static int fall_back(struct key_store *ks, const struct credential *cred, int wanted,
                     struct secret *master, struct secret *prk, struct report *rep)
{
    unsigned other = !ks->current;
    struct native_copy *c = &ks->copy[other];
    int slot = -EBADMSG;

    if (c->state == 0 && native_store_check(ks, &c->header, NULL) == 0)
        slot = open_slots(c, cred, wanted, master, NULL);
    if (slot < 0 || authenticate(c, master, prk) < 0)
        return report_error(rep, EBADMSG,
                            "the header was damaged or changed: its authentication fails");
    report_warn(rep, "header copy %u was damaged or changed, the other one is used", ks->current);
    ks->current = other;
    return slot;
}

/* The PRK is copied: the store keeps its own, for the header's MAC. */
static int fill_volume(struct key_volume *v, const struct native_header *h,
                       const struct secret *prk, unsigned slot)
{
    static const char head[] = "hushvol v1 xts";
    struct secret copy = {0};
    int r = secret_copy(&copy, prk->bytes, prk->len);

    if (r < 0)
        return r;
    *v = (struct key_volume){
        .format = "native",
        .sector_size = h->unit,
        .data_offset = h->data_offset,
        .size = h->capacity,
        .zero_pieces = true,
        .discard = h->flags & NATIVE_FLAG_DISCARD,
        .slot = slot,
        .rule = {.prk = copy,
                 .chunk_shift = h->chunk_shift,
                 .head_len = sizeof(head) - 1,
                 .tail_len = sizeof(h->params_sha256)},
    };
    strcpy(v->cipher, native_cipher_name(h->cipher));
    memcpy(v->uuid, h->uuid, sizeof(v->uuid));
    memcpy(v->label, h->label, sizeof(v->label));
    memcpy(v->rule.head, head, sizeof(head) - 1);
    memcpy(v->rule.tail, h->params_sha256, sizeof(h->params_sha256));
    return 0;
}

int native_volume(struct key_volume *ret, struct key_store *ks, unsigned slot, struct report *rep)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    int r = fill_volume(&v, &ks->copy[ks->current].header, &ks->prk, slot);

    if (r < 0)
        return report_errno(rep, -r, "cannot take the volume key");
    r = native_reencrypt_load(ks, &v, rep);
    if (r < 0)
        return r;
    *ret = v;
    v = (struct key_volume){0};
    return 0;
}

/* The store keeps both keys from now on. */
static void keep_keys(struct key_store *ks, struct secret *master, struct secret *prk)
{
    native_store_forget(ks, true);
    ks->master = *master;
    ks->prk = *prk;
    *master = *prk = (struct secret){0};
}

int native_unlock(struct key_store *ks, const struct credential *cred, int slot,
                  struct key_volume *ret, struct report *rep)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};
    int opened, r;

    if (slot != KEY_SLOT_ANY && (slot < 0 || slot >= NATIVE_SLOTS))
        return report_error(rep, EINVAL, "there is no key slot %d (0 to %d)", slot,
                            NATIVE_SLOTS - 1);
    opened = open_slots(&ks->copy[ks->current], cred, slot, &master, rep);
    if (opened < 0)
        return opened;
    r = authenticate(&ks->copy[ks->current], &master, &prk);
    if (r == -EBADMSG)
        opened = r = fall_back(ks, cred, slot, &master, &prk, rep);
    if (r < 0)
        return r;
    keep_keys(ks, &master, &prk);
    r = native_volume(ret, ks, (unsigned)opened, rep);
    if (r < 0)
        native_store_forget(ks, true);
    return r;
}

int native_export(struct key_store *ks, struct secret *ret)
{
    int r = secret_make(ret, ks->master.len);

    if (r == 0)
        memcpy(ret->bytes, ks->master.bytes, ks->master.len);
    return r;
}

int native_import(struct key_store *ks, const struct secret *bytes, struct key_volume *ret,
                  struct report *rep)
{
    const struct native_copy *c = &ks->copy[ks->current];
    AUTO_SECRET struct secret master = {0}, prk = {0};
    int r;

    if (bytes->len != NATIVE_MASTER)
        return -EKEYREJECTED;
    r = authenticate(c, bytes, &prk);
    if (r == -EBADMSG)
        return -EKEYREJECTED;
    if (r < 0)
        return r;
    keep_keys(ks, &master, &prk); /* no slot is to be sealed: the master key stays away */
    r = native_volume(ret, ks, 0, rep);
    if (r < 0)
        native_store_forget(ks, true);
    return r;
}
