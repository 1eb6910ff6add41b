/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/unlock.h"

/* One user key for both slots, so that a passphrase is stretched once. Nothing but the MAC inside a
 * slot tells whether a master key is the right one, so a store that was unlocked keeps a digest of
 * it, by which it knows the key again when it is handed back. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static bool in_use(const struct geli_meta *m, unsigned i)
{
    return m->keys >> i & 1;
}

int geli_slots(struct key_store *ks, struct key_slot_info *out, unsigned max, struct report *rep)
{
    const struct geli_meta *m = &ks->meta;
    unsigned n = 0;

    (void)rep;
    for (unsigned i = 0; i < GELI_SLOTS && n < max; i++)
        if (in_use(m, i))
            out[n++] = (struct key_slot_info){
                .index = i,
                .kind = m->iterations == GELI_NO_PASSPHRASE ? KEY_SLOT_KEYFILE : KEY_SLOT_UNTOLD,
                .kdf = "pbkdf2-sha512",
                .cost.t = m->iterations > 0 ? (uint32_t)m->iterations : 0,
            };
    return (int)n;
}

static int reject(const struct key_store *ks, const struct credential *cred, int slot,
                  struct report *rep)
{
    if (ks->meta.keys == 0)
        return report_error(rep, EKEYREJECTED,
                            "the container was erased: it has no key slot any more");
    if (slot != KEY_SLOT_ANY)
        return report_error(rep, EKEYREJECTED, "key slot %d %s", slot,
                            in_use(&ks->meta, (unsigned)slot) ? "does not open with this"
                                                              : "is empty");
    return report_error(rep, EKEYREJECTED, "no key slot opens with %s",
                        cred->n_keyfiles == 0  ? "this passphrase"
                        : cred->has_passphrase ? "this passphrase and key files"
                                               : "these key files");
}

/* Returns the slot that opened. */
static int open_slots(struct key_store *ks, const struct credential *cred, int wanted,
                      struct secret *master, struct report *rep)
{
    AUTO_SECRET struct secret user_key = {0};
    int r = 0;

    if (ks->meta.keys == 0)
        return reject(ks, cred, wanted, rep);
    r = geli_user_key(&user_key, &ks->meta, cred, rep);
    for (unsigned i = 0; r == 0 && i < GELI_SLOTS; i++) {
        if (!in_use(&ks->meta, i) || (wanted != KEY_SLOT_ANY && wanted != (int)i))
            continue;
        r = geli_slot_unwrap(master, ks->meta.slot[i], &ks->meta, &user_key, rep);
        if (r == 0)
            return (int)i;
        r = r == -EKEYREJECTED ? 0 : r;
    }
    return r < 0 ? r : reject(ks, cred, wanted, rep);
}

static int fill(struct key_volume *ret, struct key_store *ks, const struct secret *master,
                struct report *rep)
{
    int r = geli_volume(ret, &ks->meta, ks->sector, master);

    return r < 0 ? report_errno(rep, -r, "cannot take the volume key") : 0;
}

int geli_unlock(struct key_store *ks, const struct credential *cred, int slot,
                struct key_volume *ret, struct report *rep)
{
    AUTO_SECRET struct secret master = {0};
    int opened, r;

    if (slot != KEY_SLOT_ANY && (slot < 0 || slot >= GELI_SLOTS))
        return report_error(rep, EINVAL, "there is no key slot %d (0 to %d)", slot, GELI_SLOTS - 1);
    r = geli_store_check_size(ks, rep);
    if (r < 0)
        return r;
    opened = open_slots(ks, cred, slot, &master, rep);
    if (opened < 0)
        return opened;
    r = geli_master_id(ks->master_id, &master);
    if (r == 0)
        r = fill(ret, ks, &master, rep);
    if (r < 0)
        return r;
    ret->slot = (unsigned)opened;
    geli_store_forget(ks, true);
    ks->master = master;
    master = (struct secret){0};
    ks->known = true;
    return 0;
}

/* docs/geli-format.md 2 and 8.2: below version 4 in the IV, in MACs always. */
int geli_big_endian(const struct key_store *ks, struct key_volume *v, struct report *rep)
{
    bool iv = ks->meta.version < 4 && v->iv == KEY_IV_OFFSET_HASH;

    v->auth.big_endian = v->auth.hash[0] != '\0';
    if (iv)
        v->iv = KEY_IV_OFFSET_HASH_BIG;
    if (iv || v->auth.big_endian)
        return 0;
    return report_error(rep, EINVAL,
                        "a container of version %" PRIu32
                        " without authentication is the same on every machine (leave out -o "
                        "big-endian)",
                        ks->meta.version);
}

int geli_export(struct key_store *ks, struct secret *ret)
{
    return secret_copy(ret, ks->master.bytes, ks->master.len);
}

int geli_import(struct key_store *ks, const struct secret *bytes, struct key_volume *ret,
                struct report *rep)
{
    unsigned char id[GELI_MASTER_ID];
    int r;

    if (bytes->len != GELI_MASTER || !ks->known)
        return -EKEYREJECTED;
    r = geli_master_id(id, bytes);
    if (r < 0)
        return r;
    if (!secret_equal(id, ks->master_id, sizeof(id)))
        return -EKEYREJECTED;
    return fill(ret, ks, bytes, rep);
}
