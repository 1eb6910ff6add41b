/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/volume.h"

/* A volume from its container: keystore/ opens and unlocks, stack.c builds, and this file keeps
 * both together while it is open. Layers speak through the volume's own report, which passes on to
 * the one of the moment: a terminal while the command runs, syslog once the daemon has left it. */

#include "keystore/unlock.h"
#include "volume/onetime.h"
#include "volume/opened.h"
#include "volume/poison.h"
#include "volume/readahead.h"
#include "volume/space.h"
#include "volume/zone.h"

#include "crypto/sector.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void pass_on(struct report *rep, enum report_level level, const char *text)
{
    struct report *to = atomic_load(&container_of(rep, struct volume, rep)->say_to);

    if (to != NULL)
        to->say(to, level, text);
}

/* While it opens, the volume's report words things as the caller's does. */
static void report_init(struct volume *v, struct report *rep)
{
    if (rep != NULL)
        v->rep = *rep;
    v->rep.say = pass_on;
    atomic_store(&v->say_to, rep);
}

static const struct blk *bottom(const struct blk *b)
{
    while (b->below != NULL)
        b = b->below;
    return b;
}

static void remember(struct volume *v, const struct key_volume *key, const struct vol_spec *spec)
{
    struct stat st = {0};

    fstat(blk_file_fd(bottom(v->stack.container)), &st);
    memcpy(v->cipher, key->cipher, sizeof(v->cipher));
    memcpy(v->label, key->label, sizeof(v->label));
    v->sparse = key->discard;
    v->mixed = key->mixed;
    v->onetime = spec->onetime != VOL_ONETIME_NO;
    memcpy(v->integrity, key->auth.hash, sizeof(v->integrity));
    v->told = v->promised = key->size;
    v->info = (struct vol_info){
        .format = key->format,
        .cipher = v->cipher,
        .integrity = v->integrity,
        .label = v->label,
        .sector_size = key->sector_size,
        .size = key->size,
        .data_offset = key->data_offset,
        .read_only = spec->read_only,
        .discard = v->stack.discard,
        .reencrypting = key->mixed,
        .reencrypted = key->boundary,
        .enospc_wait = v->stack.enospc_wait,
        .direct = v->stack.container->granule > 1,
        .threads = v->stack.threads,
        .slot = key->slot,
        .container_dev = st.st_dev,
        .container_ino = st.st_ino,
    };
    memcpy(v->info.uuid, key->uuid, sizeof(v->info.uuid));
}

static void say_mixed(const struct key_volume *key, struct report *rep)
{
    if (key->mixed)
        report_warn(rep,
                    "its re-encryption is not finished (%.0f %%): it works as it is, and \"hushvol "
                    "reencrypt\" goes on when it is not mounted",
                    100.0 * (double)key->boundary / (double)key->size);
}

static int turn_big_endian(struct key_container *c, struct key_volume *key, struct report *rep)
{
    if (c->format->big_endian == NULL)
        return report_error(rep, EOPNOTSUPP, "-o big-endian is not possible in the %s format",
                            c->format->name);
    return c->format->big_endian(c->store, key, rep);
}

static int unlock_and_build(struct volume *v, struct key_container *c, const struct vol_spec *spec,
                            const struct credential_source *src, struct report *rep)
{
    AUTO_KEY_VOLUME struct key_volume key = {0};
    int r = key_unlock_with(c, src, spec->slot, &key, rep);

    if (r == 0 && spec->big_endian)
        r = turn_big_endian(c, &key, rep);
    if (r == 0 && key.read_only && !spec->read_only)
        r = report_error(rep, EROFS, "its header says that it is read-only (mount it with -o ro)");
    if (r == 0 && !spec->read_only && c->format->repair != NULL)
        r = c->format->repair(c->store, rep);
    if (r == 0 && spec->direct == BLK_DIRECT_AUTO)
        vol_stack_fit(c->blk, &key);
    if (r == 0)
        r = zone_settle(c, &key, rep);
    if (r == 0)
        r = vol_stack_open(&v->stack, c->blk, &key, spec, &v->rep);
    if (r < 0)
        return r;
    c->blk = NULL; /* the stack's now; the store goes on borrowing it */
    v->format = c->format;
    v->store = TAKE(c->store);
    v->header = TAKE(c->header);
    if (v->format->forget != NULL)
        v->format->forget(v->store, false);
    remember(v, &key, spec);
    say_mixed(&key, rep);
    return 0;
}

int vol_open(struct volume **ret, const struct vol_spec *spec, pid_t *holder, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    const struct blk_file_spec file = {
        .path = spec->container, .read_only = spec->read_only, .direct = spec->direct};
    AUTO_FREE struct volume *v = calloc(1, sizeof(*v));
    AUTO_CREDENTIAL struct credential once = {0};
    struct credential_source src = spec->credential;
    int r;

    if (v == NULL)
        return -ENOMEM;
    pthread_mutex_init(&v->updates, NULL);
    pthread_mutex_init(&v->facts, NULL);
    report_init(v, rep);
    if (spec->onetime != VOL_ONETIME_NO) {
        r = onetime_open(&c, spec, &once, holder, rep);
        src = (struct credential_source){.given = &once};
    } else {
        r = key_container_open(&c, &file, spec->header, holder, rep);
    }
    if (r == 0)
        r = unlock_and_build(v, &c, spec, &src, rep);
    if (r < 0)
        return r;
    v->rep.what = NULL; /* what happens from now on is not part of a command */
    *ret = TAKE(v);
    return 0;
}

int vol_close(struct volume *v)
{
    int r;

    if (v == NULL)
        return 0;
    r = v->info.read_only ? 0 : blk_flush(v->stack.top);
    v->format->close(v->store);
    blk_close(v->header);
    vol_stack_close(&v->stack);
    free(v);
    return r;
}

struct blk *vol_top(struct volume *v)
{
    return v->stack.top;
}

void vol_set_report(struct volume *v, struct report *rep)
{
    atomic_store(&v->say_to, rep);
}

void vol_get_info(struct volume *v, struct vol_info *ret)
{
    HOLD(&v->facts);

    *ret = v->info;
    ret->poisoned = vol_poison_struck(v->stack.poison);
}

void vol_get_stats(struct volume *v, struct vol_stats *ret)
{
    struct sector_stats sector;
    struct vol_readahead_stats readahead = {0};
    struct pool_stats pool;

    sector_stats(v->stack.sectors, &sector);
    if (v->stack.readahead != NULL)
        vol_readahead_stats(v->stack.readahead, &readahead);
    pool_get_stats(v->stack.pool, &pool);
    *ret = (struct vol_stats){
        .cipher_ns = sector.cipher_ns,
        .bytes_enciphered = sector.bytes_enciphered,
        .bytes_deciphered = sector.bytes_deciphered,
        .pool_batches = pool.n_batches,
        .pool_pieces = pool.n_pieces,
        .pool_pieces_worker = pool.n_pieces_worker,
        .readahead_prepared = readahead.prepared,
        .readahead_used = readahead.used,
        .readahead_wasted = readahead.wasted,
        .waiting_for_space = vol_space_waiting(v->stack.space),
    };
}

unsigned vol_layers(struct volume *v, const char **names, unsigned max)
{
    unsigned n = 0;

    for (const struct blk *b = v->stack.top; b != NULL && n < max; b = b->below)
        names[n++] = b->ops->name;
    return n;
}

int vol_key_apply(struct volume *v, const struct key_patch *p, struct report *rep)
{
    HOLD(&v->updates);

    if (v->info.read_only)
        return report_error(rep, EROFS, "it is mounted read-only: its key slots stay as they are");
    if (v->format->apply == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "changing keys while it is mounted is not possible in the %s format",
                            v->format->name);
    return v->format->apply(v->store, p, rep);
}

void vol_give_up_waiting(struct volume *v)
{
    vol_space_set_wait(v->stack.space, false);
}
