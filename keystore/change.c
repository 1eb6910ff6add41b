/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/change.h"

/* Most formats make a patch and write it; one whose library only writes straight to the container
 * does both in one step. Here is the choice between the two, so that commands need not know. */

#include <errno.h>

static const char *change_words(enum key_patch_what what)
{
    switch (what) {
    case KEY_PATCH_ADD:
        return "adding a key";
    case KEY_PATCH_CHANGE:
        return "changing a key";
    case KEY_PATCH_REMOVE:
        return "removing a key";
    case KEY_PATCH_ERASE:
        return "erasing the keys";
    case KEY_PATCH_FLAGS:
        return "changing flags";
    }
    return "this change";
}

static int change_impossible(const struct key_format *f, enum key_patch_what what,
                             struct report *rep)
{
    return report_error(rep, EOPNOTSUPP, "%s is not possible in the %s format", change_words(what),
                        f->name);
}

/* Can the format make this change by itself, in one step? */
static bool change_direct(const struct key_format *f, enum key_patch_what what)
{
    switch (what) {
    case KEY_PATCH_ADD:
        return f->add != NULL;
    case KEY_PATCH_CHANGE:
        return f->change != NULL;
    case KEY_PATCH_REMOVE:
        return f->remove != NULL;
    case KEY_PATCH_ERASE:
        return f->erase != NULL || f->destroy != NULL;
    case KEY_PATCH_FLAGS:
        return f->set_flags != NULL;
    }
    return false;
}

static bool change_by_patch(const struct key_format *f, enum key_patch_what what)
{
    bool sealed = what == KEY_PATCH_ADD || what == KEY_PATCH_CHANGE;

    if (what == KEY_PATCH_FLAGS && f->set_flags == NULL)
        return false;
    return f->apply != NULL && (f->seal != NULL || !sealed);
}

int key_change_possible(const struct key_format *f, enum key_patch_what what, struct report *rep)
{
    if (change_by_patch(f, what) || change_direct(f, what))
        return 0;
    return change_impossible(f, what, rep);
}

int key_change_possible_mounted(const struct key_format *f, enum key_patch_what what,
                                struct report *rep)
{
    if (change_by_patch(f, what))
        return 0;
    if (change_direct(f, what))
        return report_error(rep, EOPNOTSUPP,
                            "%s is not possible in the %s format while the container is mounted",
                            change_words(what), f->name);
    return change_impossible(f, what, rep);
}

int key_change_check_kdf(const struct key_format *f, const struct kdf_request *kdf,
                         struct report *rep)
{
    return f->check_kdf != NULL ? f->check_kdf(kdf, rep) : kdf_request_check(kdf, rep);
}

static int seal_and_apply(struct key_container *c, enum key_patch_what what,
                          const struct credential *cred, int slot, const char *label,
                          const struct kdf_request *kdf, struct report *rep)
{
    struct key_patch p;
    int r = c->format->seal(c->store, what, cred, slot, label, kdf, &p, rep);

    if (r == 0)
        r = c->format->apply(c->store, &p, rep);
    return r < 0 ? r : (int)p.slot;
}

int key_change_add(struct key_container *c, const struct credential *cred, int slot,
                   const char *label, const struct kdf_request *kdf, struct report *rep)
{
    const struct key_format *f = c->format;

    if (change_by_patch(f, KEY_PATCH_ADD))
        return seal_and_apply(c, KEY_PATCH_ADD, cred, slot, label, kdf, rep);
    if (f->add == NULL)
        return change_impossible(f, KEY_PATCH_ADD, rep);
    return f->add(c->store, cred, slot, label, kdf, rep);
}

int key_change_change(struct key_container *c, const struct credential *cred, int slot,
                      const char *label, const struct kdf_request *kdf, struct report *rep)
{
    const struct key_format *f = c->format;
    int r;

    if (change_by_patch(f, KEY_PATCH_CHANGE)) {
        r = seal_and_apply(c, KEY_PATCH_CHANGE, cred, slot, label, kdf, rep);
        return r < 0 ? r : 0;
    }
    if (f->change == NULL)
        return change_impossible(f, KEY_PATCH_CHANGE, rep);
    if (label != NULL)
        return report_error(rep, EOPNOTSUPP, "changing a label is not possible in the %s format",
                            f->name);
    r = f->change(c->store, cred, slot, kdf, rep);
    return r < 0 ? r : 0;
}

int key_change_remove(struct key_container *c, int slot, bool force, struct report *rep)
{
    const struct key_patch p = {.what = KEY_PATCH_REMOVE, .slot = (unsigned)slot, .force = force};
    const struct key_format *f = c->format;
    int r;

    if (f->apply != NULL)
        return f->apply(c->store, &p, rep);
    if (f->remove == NULL)
        return change_impossible(f, KEY_PATCH_REMOVE, rep);
    r = f->remove(c->store, slot, force, rep);
    return r < 0 ? r : 0;
}

int key_change_erase(const struct key_format *f, struct blk *header, struct blk *data,
                     struct report *rep)
{
    const struct key_patch p = {.what = KEY_PATCH_ERASE};
    struct key_store *ks = NULL;
    int r;

    if (f->destroy != NULL)
        return f->destroy(header, rep);
    r = key_change_possible(f, KEY_PATCH_ERASE, rep);
    if (r == 0)
        r = f->open(&ks, header, data, rep);
    if (r < 0)
        return r;
    r = f->apply != NULL ? f->apply(ks, &p, rep) : f->erase(ks, rep);
    f->close(ks);
    return r;
}
