/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/volume.h"

/* A volume without its keys. The stack stays as it is, and so do the container's lock and header;
 * what goes is every key and every byte of plaintext in memory of ours. Top down: read-ahead's
 * workers are still in the layers below it until it is drained. */

#include "crypto/sector.h"
#include "volume/align.h"
#include "volume/opened.h"
#include "volume/poison.h"
#include "volume/readahead.h"

#include <errno.h>
#include <string.h>

static void tell_info(struct volume *v, bool suspended, unsigned slot)
{
    HOLD(&v->facts);

    v->info.suspended = suspended;
    v->info.slot = slot;
}

static void forget(struct volume *v)
{
    HOLD(&v->updates);

    vol_align_forget(v->stack.align);
    if (v->stack.readahead != NULL)
        vol_readahead_forget(v->stack.readahead);
    sector_forget(v->stack.sectors);
    v->format->forget(v->store, true);
}

/* A volume that lost writes before has nothing more to lose by this. */
static int flush(struct volume *v, struct report *rep)
{
    int r;

    if (v->info.read_only || vol_poison_struck(v->stack.poison))
        return 0;
    r = blk_flush(v->stack.top);
    return r < 0 ? report_error(rep, -r,
                                "what was written cannot be made durable: it is not suspended, and "
                                "read-only from now on (check the disk below)")
                 : 0;
}

/* An emergency may be what it is for, so it is no reason to refuse. */
static void warn_erased(struct volume *v, struct report *rep)
{
    struct key_slot_info used[KEY_SLOTS_MAX];

    HOLD(&v->updates);
    if (v->format->slots != NULL && v->format->slots(v->store, used, KEY_SLOTS_MAX, NULL) == 0)
        report_warn(rep, "no key slot is left: only a backup of its header can resume it "
                         "(hushvol resume --header BACKUP)");
}

int vol_suspend(struct volume *v, struct report *rep)
{
    int r;

    if (v->format->import == NULL || v->format->forget == NULL)
        return report_error(rep, EOPNOTSUPP, "suspending is not possible in the %s format",
                            v->format->name);
    if (v->onetime)
        return report_error(rep, EOPNOTSUPP,
                            "nobody has the key of a one-time disk: it could not be resumed");
    if (v->info.suspended)
        return report_error(rep, EALREADY, "it is suspended already");
    r = flush(v, rep);
    if (r < 0)
        return r;
    warn_erased(v, rep);
    forget(v);
    tell_info(v, true, v->info.slot);
    return 0;
}

/* The header is locked and the same, so anything else is a mistake of ours or an attack. */
static int check_same(const struct volume *v, const struct key_volume *key, struct report *rep)
{
    if (memcmp(key->uuid, v->info.uuid, sizeof(key->uuid)) == 0 &&
        strcmp(key->cipher, v->info.cipher) == 0 && key->sector_size == v->info.sector_size &&
        key->data_offset == v->info.data_offset && key->size == v->told && key->mixed == v->mixed)
        return 0;
    return report_error(rep, EBADMSG, "the header is not what it was before the suspend");
}

static int remember(struct volume *v, const struct secret *bytes, struct report *rep)
{
    HOLD(&v->updates);
    AUTO_KEY_VOLUME struct key_volume key = {0};
    int r = v->format->import(v->store, bytes, &key, rep);

    if (r == -EKEYREJECTED)
        return report_error(rep, -r, "the key is not the volume's");
    if (r == 0)
        r = check_same(v, &key, rep);
    if (r < 0)
        return r;
    r = sector_rekey(v->stack.sectors,
                     &(struct sector_secrets){.prk = &key.rule.prk,
                                              .old_prk = v->mixed ? &key.old_rule.prk : NULL,
                                              .iv_key = &key.iv_key,
                                              .mac_key = &key.auth.key});
    return r < 0 ? report_errno(rep, -r, "cannot prepare the cipher") : 0;
}

int vol_resume(struct volume *v, const struct secret *bytes, unsigned slot, struct report *rep)
{
    int r;

    if (!v->info.suspended)
        return report_error(rep, EALREADY, "it is not suspended");
    r = remember(v, bytes, rep);
    if (r < 0) {
        forget(v);
        return r;
    }
    tell_info(v, false, slot);
    return 0;
}
