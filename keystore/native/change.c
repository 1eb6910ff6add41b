/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/change.h"

/* Making a change and writing it are apart, because the process that holds a mounted container has
 * forgotten what seals slots, and the one that asks for the new passphrase may not write. What
 * comes from there is checked as if it came from anybody: a slot that could not be one, or one made
 * for another container, would destroy what is in its place. */

#include "keystore/native/slot.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
    AT_UUID = NATIVE_SLOT,
    AT_PARAMS = AT_UUID + 16,
    PATCH_LEN = AT_PARAMS + 32,
    AT_OLD = PATCH_LEN,                     /* the id of the slot that is to go, */
    PATCH_LEN_OLD = AT_OLD + NATIVE_SLOT_ID /* when it is known */
};

static int check_index(int64_t slot, struct report *rep)
{
    if (slot < 0 || slot >= NATIVE_SLOTS)
        return report_error(rep, EINVAL, "there is no key slot %" PRId64 " (0 to %d)", slot,
                            NATIVE_SLOTS - 1);
    return 0;
}

static struct native_slot slot_now(struct key_store *ks, unsigned i)
{
    struct native_slot s;

    native_slot_decode(&s, native_header_slot(ks->copy[ks->current].block, i));
    return s;
}

/* --- making one --- */

/* The slot to fill: the wanted one if it is free, else the first that is. */
static int free_slot(struct key_store *ks, int wanted, struct report *rep)
{
    for (unsigned i = 0; i < NATIVE_SLOTS; i++)
        if ((wanted == KEY_SLOT_ANY || wanted == (int)i) && !slot_now(ks, i).used)
            return (int)i;
    if (wanted != KEY_SLOT_ANY)
        return report_error(rep, EEXIST, "key slot %d is in use", wanted);
    return report_error(rep, ENOSPC, "all %d key slots are in use", NATIVE_SLOTS);
}

static int used_slot(struct key_store *ks, int wanted, struct report *rep)
{
    if (!slot_now(ks, (unsigned)wanted).used)
        return report_error(rep, ENOENT, "key slot %d is empty", wanted);
    return wanted;
}

static int choose_slot(struct key_store *ks, enum key_patch_what what, int wanted,
                       struct report *rep)
{
    int r = wanted == KEY_SLOT_ANY && what == KEY_PATCH_ADD ? 0 : check_index(wanted, rep);

    if (r < 0)
        return r;
    return what == KEY_PATCH_ADD ? free_slot(ks, wanted, rep) : used_slot(ks, wanted, rep);
}

/* Fill p with cred's slot. */
static int wrap(struct key_store *ks, const struct credential *cred, const char *label,
                const struct kdf_request *kdf, struct key_patch *p, struct report *rep)
{
    const struct native_slot old = slot_now(ks, p->slot);
    struct kdf_cost cost;
    int r;

    assert(ks->master.bytes != NULL);
    if (label != NULL && strlen(label) > NATIVE_SLOT_LABEL)
        return report_error(rep, EINVAL, "the label of a key slot has at most %d bytes",
                            NATIVE_SLOT_LABEL);
    if (label == NULL && p->what == KEY_PATCH_CHANGE)
        label = old.label;
    r = p->what == KEY_PATCH_CHANGE ? kdf_choose_instead(&cost, kdf, &old.cost, rep)
                                    : kdf_choose(&cost, kdf, rep);
    return r < 0 ? r
                 : native_slot_wrap(p->bytes, p->slot, &ks->copy[ks->current].header, &cost, label,
                                    cred, &ks->master, rep);
}

int native_seal(struct key_store *ks, enum key_patch_what what, const struct credential *cred,
                int slot, const char *label, const struct kdf_request *kdf, struct key_patch *ret,
                struct report *rep)
{
    struct native_copy *c = &ks->copy[ks->current];
    struct key_patch p = {.what = what, .len = PATCH_LEN};
    int r, index = choose_slot(ks, what, slot, rep);

    if (index < 0)
        return index;
    p.slot = (unsigned)index;
    r = what == KEY_PATCH_REMOVE ? 0 : wrap(ks, cred, label, kdf, &p, rep);
    if (r < 0)
        return r;
    memcpy(p.bytes + AT_UUID, c->header.uuid, sizeof(c->header.uuid));
    memcpy(p.bytes + AT_PARAMS, c->header.params_sha256, sizeof(c->header.params_sha256));
    if (what != KEY_PATCH_ADD) {
        p.len = PATCH_LEN_OLD;
        memcpy(p.bytes + AT_OLD, native_slot_id(native_header_slot(c->block, p.slot)),
               NATIVE_SLOT_ID);
    }
    *ret = p;
    return 0;
}

/* --- writing one --- */

static int check_bytes(const struct native_header *h, const struct key_patch *p, struct report *rep)
{
    struct native_slot s;

    if (p->len != PATCH_LEN && p->len != PATCH_LEN_OLD)
        return report_error(rep, EINVAL, "a change of %zu bytes is none of this format", p->len);
    if (memcmp(p->bytes + AT_UUID, h->uuid, sizeof(h->uuid)) != 0 ||
        memcmp(p->bytes + AT_PARAMS, h->params_sha256, sizeof(h->params_sha256)) != 0)
        return report_error(rep, EINVAL, "the change of key slot %u is for another container",
                            p->slot);
    native_slot_decode(&s, p->bytes);
    if (native_slot_check(&s, p->slot, NULL) < 0 || !kdf_allowed(&s.cost))
        return report_error(rep, EINVAL, "what is to go into key slot %u is no key slot", p->slot);
    return 0;
}

/* Two who change a slot at the same time shall not both believe that theirs is in it. */
static int check_old(unsigned char *block, const struct key_patch *p, struct report *rep)
{
    const unsigned char *now = native_slot_id(native_header_slot(block, p->slot));

    if (p->len != PATCH_LEN_OLD || memcmp(p->bytes + AT_OLD, now, NATIVE_SLOT_ID) == 0)
        return 0;
    return report_error(rep, ESTALE,
                        "key slot %u was changed by somebody else meanwhile, and stays as it is",
                        p->slot);
}

/* Could this slot be opened here, by who has its passphrase? */
static bool usable(const unsigned char *slot, unsigned i)
{
    struct native_slot s;

    native_slot_decode(&s, slot);
    return s.used && native_slot_check(&s, i, NULL) == 0 && kdf_check(&s.cost, i, NULL) == 0;
}

static int check_left(unsigned char *block, unsigned removed, struct report *rep)
{
    for (unsigned i = 0; i < NATIVE_SLOTS; i++)
        if (i != removed && usable(native_header_slot(block, i), i))
            return 0;
    return report_error(rep, EPERM,
                        "without key slot %u nothing would open the container here any more "
                        "(add another key first; --force removes the last one)",
                        removed);
}

/* Does the change fit the header as it is now? */
static int check_patch(struct key_store *ks, const struct key_patch *p, struct report *rep)
{
    struct native_copy *c = &ks->copy[ks->current];
    bool makes = p->what == KEY_PATCH_ADD || p->what == KEY_PATCH_CHANGE;
    int r = check_index(p->slot, rep);

    if (r == 0 && !makes && p->what != KEY_PATCH_REMOVE)
        r = report_error(rep, EINVAL, "there is no change %d of key slots", (int)p->what);
    if (r == 0)
        r = choose_slot(ks, p->what, (int)p->slot, rep);
    if (r >= 0)
        r = makes ? check_bytes(&c->header, p, rep) : 0;
    if (r == 0 && p->what != KEY_PATCH_ADD)
        r = check_old(c->block, p, rep);
    if (r < 0 || makes)
        return r;
    return p->force ? 0 : check_left(c->block, p->slot, rep);
}

int native_apply(struct key_store *ks, const struct key_patch *p, struct report *rep)
{
    unsigned char *slot;
    int r;

    if (p->what == KEY_PATCH_ERASE)
        return native_store_erase(ks, rep);
    r = check_patch(ks, p, rep);
    if (r == 0)
        r = native_store_ready(ks, rep);
    if (r < 0)
        return r;
    memcpy(ks->next, ks->copy[ks->current].block, NATIVE_BLOCK);
    slot = native_header_slot(ks->next, p->slot);
    if (p->what == KEY_PATCH_REMOVE)
        native_slot_destroy(slot);
    else
        memcpy(slot, p->bytes, NATIVE_SLOT);
    return native_store_update(ks, rep);
}
