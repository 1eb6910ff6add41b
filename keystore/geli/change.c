/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/change.h"

/* docs/geli-format.md 11. A change is a whole new block in one write. What it may not do is decided
 * by what both slots share: the salt, which never changes, and the iterations, which may only when
 * no other slot depends on them.
 *
 * Sealing and applying are apart as in every format: who has the container mounted has no key any
 * more. What comes from the other one is checked as if it came from anybody. */

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define DEFAULT_MS 2000

/* A patch: the slot, whose container it is for, the iterations, and what was in the slot. */
enum {
    AT_SALT = GELI_SLOT,
    AT_ITERATIONS = AT_SALT + GELI_SALT,
    AT_OLD = AT_ITERATIONS + 4,
    PATCH_LEN = AT_OLD + GELI_SLOT,
};
_Static_assert(PATCH_LEN <= KEY_PATCH_MAX, "a change fits into a patch");

static bool in_use(const struct geli_meta *m, unsigned i)
{
    return m->keys >> i & 1;
}

static int check_index(int64_t slot, struct report *rep)
{
    if (slot < 0 || slot >= GELI_SLOTS)
        return report_error(rep, EINVAL, "there is no key slot %" PRId64 " (0 to %d)", slot,
                            GELI_SLOTS - 1);
    return 0;
}

/* --- iterations --- */

int geli_check_kdf(const struct kdf_request *kdf, struct report *rep)
{
    if (kdf->memory != 0)
        return report_error(rep, EINVAL,
                            "--kdf-memory has no meaning here: GELI stretches passphrases with "
                            "PBKDF2, which needs none");
    if (kdf->iterations > INT32_MAX && kdf->iterations != KDF_NO_PASSES)
        return report_error(rep, EINVAL, "%" PRIu32 " iterations are too many (at most %d)",
                            kdf->iterations, INT32_MAX);
    return 0;
}

static bool is_given(const struct kdf_request *kdf)
{
    return kdf->iterations != 0 || kdf->time_ms != 0;
}

static int choose_iterations(int32_t *ret, const struct kdf_request *kdf, struct report *rep)
{
    int r = 0;

    if (kdf->iterations == KDF_NO_PASSES)
        *ret = 0;
    else if (kdf->iterations != 0)
        *ret = (int32_t)kdf->iterations;
    else
        r = geli_calibrate(ret, kdf->time_ms != 0 ? kdf->time_ms : DEFAULT_MS);
    return r < 0 ? report_errno(rep, -r, "cannot find out how fast PBKDF2 is here") : 0;
}

static int refuse_without_passphrase(struct report *rep)
{
    return report_error(rep, EINVAL, "a key without a passphrase has no iterations to choose");
}

int geli_iterations(int32_t *ret, const struct credential *cred, const struct kdf_request *kdf,
                    struct report *rep)
{
    int r = geli_check_kdf(kdf, rep);

    if (r < 0)
        return r;
    if (cred->has_passphrase)
        return choose_iterations(ret, kdf, rep);
    *ret = GELI_NO_PASSPHRASE;
    return is_given(kdf) ? refuse_without_passphrase(rep) : 0;
}

int geli_check_new(const struct credential *cred, struct report *rep)
{
    const struct secret *p = &cred->passphrase;

    if (p->len > GELI_PASSPHRASE_MAX)
        return report_error(rep, EINVAL, "GELI takes passphrases of at most %d bytes",
                            GELI_PASSPHRASE_MAX);
    if (p->len > 0 && memchr(p->bytes, '\0', p->len) != NULL)
        return report_error(rep, EINVAL, "GELI takes no passphrase with a zero byte in it");
    return 0;
}

/* May the iterations change when this slot gets another key? */
static bool iterations_free(const struct geli_meta *m, unsigned slot)
{
    return m->iterations == GELI_NO_PASSPHRASE || (m->keys & ~(1u << slot)) == 0;
}

static int slot_iterations(int32_t *ret, const struct geli_meta *m, unsigned slot,
                           const struct credential *cred, const struct kdf_request *kdf,
                           struct report *rep)
{
    int r = geli_check_kdf(kdf, rep);

    *ret = m->iterations;
    if (r < 0)
        return r;
    if (!cred->has_passphrase)
        return is_given(kdf) ? refuse_without_passphrase(rep) : 0;
    if (m->iterations != GELI_NO_PASSPHRASE && !is_given(kdf))
        return 0;
    if (!iterations_free(m, slot)) {
        if (kdf->iterations != 0 && kdf->iterations == (uint32_t)m->iterations)
            return 0;
        return report_error(rep, EINVAL,
                            "both key slots share their %" PRId32
                            " iterations: they can change only while no other slot is in use",
                            m->iterations);
    }
    return choose_iterations(ret, kdf, rep);
}

/* --- making a change --- */

static int choose_slot(const struct geli_meta *m, enum key_patch_what what, int wanted,
                       struct report *rep)
{
    if (what == KEY_PATCH_ADD && wanted == KEY_SLOT_ANY) {
        for (int i = 0; i < GELI_SLOTS; i++)
            if (!in_use(m, (unsigned)i))
                return i;
        return report_error(rep, ENOSPC, "both key slots are in use");
    }
    if (check_index(wanted, rep) < 0)
        return -EINVAL;
    if (what == KEY_PATCH_ADD && in_use(m, (unsigned)wanted))
        return report_error(rep, EEXIST, "key slot %d is in use", wanted);
    if (what != KEY_PATCH_ADD && !in_use(m, (unsigned)wanted))
        return report_error(rep, ENOENT, "key slot %d is empty", wanted);
    return wanted;
}

static int wrap(struct key_store *ks, const struct credential *cred, const char *label,
                const struct kdf_request *kdf, struct key_patch *p, struct report *rep)
{
    AUTO_SECRET struct secret user_key = {0};
    struct geli_meta m = ks->meta;
    int r;

    assert(ks->master.bytes != NULL);
    if (label != NULL && label[0] != '\0')
        return report_error(rep, EOPNOTSUPP, "key slots have no labels in the geli format");
    r = geli_check_new(cred, rep);
    if (r == 0)
        r = slot_iterations(&m.iterations, &ks->meta, p->slot, cred, kdf, rep);
    if (r == 0)
        r = geli_user_key(&user_key, &m, cred, rep);
    if (r == 0)
        r = geli_slot_wrap(p->bytes, &m, &user_key, &ks->master, rep);
    bytes_put_le32(p->bytes + AT_ITERATIONS, (uint32_t)m.iterations);
    return r;
}

int geli_seal(struct key_store *ks, enum key_patch_what what, const struct credential *cred,
              int slot, const char *label, const struct kdf_request *kdf, struct key_patch *ret,
              struct report *rep)
{
    struct key_patch p = {.what = what, .len = PATCH_LEN};
    int r, index = choose_slot(&ks->meta, what, slot, rep);

    if (index < 0)
        return index;
    p.slot = (unsigned)index;
    bytes_put_le32(p.bytes + AT_ITERATIONS, (uint32_t)ks->meta.iterations);
    r = what == KEY_PATCH_REMOVE ? 0 : wrap(ks, cred, label, kdf, &p, rep);
    if (r < 0)
        return r;
    memcpy(p.bytes + AT_SALT, ks->meta.salt, GELI_SALT);
    memcpy(p.bytes + AT_OLD, ks->meta.slot[p.slot], GELI_SLOT);
    *ret = p;
    return 0;
}

/* --- writing one --- */

static int check_iterations(const struct geli_meta *m, const struct key_patch *p,
                            struct report *rep)
{
    int32_t iterations = (int32_t)bytes_get_le32(p->bytes + AT_ITERATIONS);

    if (iterations < GELI_NO_PASSPHRASE)
        return report_error(rep, EINVAL, "what is to go into key slot %u is no key slot", p->slot);
    if (iterations == m->iterations || iterations_free(m, p->slot))
        return 0;
    return report_error(rep, ESTALE,
                        "the iterations of key slot %u do not fit the other slot, which somebody "
                        "made meanwhile",
                        p->slot);
}

static int check_bytes(const struct geli_meta *m, const struct key_patch *p, struct report *rep)
{
    if (p->len != PATCH_LEN)
        return report_error(rep, EINVAL, "a change of %zu bytes is none of this format", p->len);
    if (memcmp(p->bytes + AT_SALT, m->salt, GELI_SALT) != 0)
        return report_error(rep, EINVAL, "the change of key slot %u is for another container",
                            p->slot);
    if (memcmp(p->bytes + AT_OLD, m->slot[p->slot], GELI_SLOT) != 0)
        return report_error(rep, ESTALE,
                            "key slot %u was changed by somebody else meanwhile, and stays as it "
                            "is",
                            p->slot);
    return p->what == KEY_PATCH_REMOVE ? 0 : check_iterations(m, p, rep);
}

static int check_patch(const struct geli_meta *m, const struct key_patch *p, struct report *rep)
{
    int r = check_index(p->slot, rep);

    if (r == 0 && (p->what < KEY_PATCH_ADD || p->what > KEY_PATCH_REMOVE))
        r = report_error(rep, EINVAL, "there is no change %d of key slots", (int)p->what);
    if (r == 0)
        r = choose_slot(m, p->what, (int)p->slot, rep);
    if (r < 0)
        return r;
    if (p->what != KEY_PATCH_REMOVE || p->len != 0) /* a removal may come without a seal */
        r = check_bytes(m, p, rep);
    else
        r = 0;
    if (r == 0 && p->what == KEY_PATCH_REMOVE && !p->force && m->keys == 1u << p->slot)
        r = report_error(rep, EPERM,
                         "without key slot %u nothing would open the container any more (add "
                         "another key first; --force removes the last one)",
                         p->slot);
    return r;
}

/* The block is whole, and the slot not in use, from the first of the overwrites on. */
static int remove_slot(struct key_store *ks, unsigned slot, struct report *rep)
{
    struct geli_meta m = ks->meta;
    int r = 0;

    m.keys &= (uint8_t) ~(1u << slot);
    for (unsigned i = 0; r == 0 && i < GELI_OVERWRITES; i++) {
        secret_random(m.slot[slot], GELI_SLOT);
        r = geli_store_update(ks, &m, rep);
    }
    return r;
}

static int erase(struct key_store *ks, struct report *rep)
{
    int r;

    if (ks->b->read_only)
        return report_error(rep, EROFS, "the container is open for reading only");
    ks->broken = true; /* nothing is to come after this */
    r = geli_wipe(ks->b, ks->sector, geli_place(ks->b, ks->sector), GELI_OVERWRITES, true, rep);
    if (r == 0)
        ks->meta.keys = 0;
    return r;
}

int geli_destroy(struct blk *header, struct report *rep)
{
    uint32_t sector;
    int r = geli_find(header, header->size, &sector);

    if (r < 0)
        return report_errno(rep, -r, "cannot read the metadata");
    if (r == 0)
        return report_error(rep, EBADMSG, "there is no GELI metadata at its end");
    if (header->size < sector)
        sector = (uint32_t)header->size;
    return geli_wipe(header, sector, geli_place(header, sector), GELI_OVERWRITES, true, rep);
}

/* --- flags --- */

/* Those that geli(8) can set; the others it takes from elsewhere. */
static const struct {
    const char *name;
    uint32_t flag;
    bool settable;
} flags[] = {
    {"onetime", GELI_ONETIME, false},
    {"boot", GELI_BOOT, true},
    {"detach-after-write", GELI_WO_DETACH, false},
    {"detach-on-close", GELI_RW_DETACH, false},
    {"auth", GELI_AUTH, false},
    {"read-only", GELI_RO, false},
    {"nodelete", GELI_NODELETE, true},
    {"geliboot", GELI_GELIBOOT, true},
    {"displaypass", GELI_DISPLAYPASS, true},
    {"autoresize", GELI_AUTORESIZE, true},
};

const char *geli_flag_name(unsigned bit)
{
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        if (flags[i].flag == 1u << bit)
            return flags[i].name;
    return "";
}

static int flag_word(uint32_t *to, const char *word, size_t len, struct report *rep)
{
    bool no = len > 3 && memcmp(word, "no-", 3) == 0;
    const char *name = no ? word + 3 : word;
    size_t name_len = no ? len - 3 : len;

    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        if (!flags[i].settable || strlen(flags[i].name) != name_len ||
            memcmp(flags[i].name, name, name_len) != 0)
            continue;
        *to = no ? *to & ~flags[i].flag : *to | flags[i].flag;
        return 0;
    }
    return report_error(rep, EINVAL,
                        "no flag \"%.*s\" (boot, nodelete, geliboot, displaypass, autoresize; "
                        "no- before one clears it)",
                        (int)len, word);
}

int geli_flag_words(uint32_t *to, const char *words, struct report *rep)
{
    uint32_t result = *to;

    for (const char *at = words;; at++) {
        size_t len = strcspn(at, ",");
        int r = flag_word(&result, at, len, rep);

        if (r < 0)
            return r;
        at += len;
        if (*at == '\0')
            break;
    }
    *to = result;
    return 0;
}

int geli_set_flags(struct key_store *ks, const char *words, struct report *rep)
{
    struct geli_meta m = ks->meta;
    int r = geli_flag_words(&m.flags, words, rep);

    if (r < 0 || m.flags == ks->meta.flags)
        return r;
    return geli_store_update(ks, &m, rep);
}

/* --- writing any change --- */

static int apply_flags(struct key_store *ks, const struct key_patch *p, struct report *rep)
{
    char words[KEY_PATCH_MAX + 1];

    memcpy(words, p->bytes, p->len);
    words[p->len] = '\0';
    return geli_set_flags(ks, words, rep);
}

int geli_apply(struct key_store *ks, const struct key_patch *p, struct report *rep)
{
    struct geli_meta m = ks->meta;
    int r;

    if (p->what == KEY_PATCH_ERASE)
        return erase(ks, rep);
    if (p->what == KEY_PATCH_FLAGS)
        return apply_flags(ks, p, rep);
    r = check_patch(&m, p, rep);
    if (r < 0)
        return r;
    if (p->what == KEY_PATCH_REMOVE)
        return remove_slot(ks, p->slot, rep);
    memcpy(m.slot[p->slot], p->bytes, GELI_SLOT);
    m.iterations = (int32_t)bytes_get_le32(p->bytes + AT_ITERATIONS);
    m.keys |= (uint8_t)(1u << p->slot);
    return geli_store_update(ks, &m, rep);
}
