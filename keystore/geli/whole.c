/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/whole.h"

/* docs/geli-format.md 11 and 13. A backup is the last sector, as geli(8) makes it, so that each
 * takes the other's. What is put somewhere is read back by who asked for it. */

#include "base/bytes.h"
#include "keystore/geli/change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* There is none; the salt is as good, it is new for every container and never changes. */
void geli_uuid(struct key_store *ks, unsigned char uuid[16])
{
    memcpy(uuid, ks->meta.salt, 16);
}

uint64_t geli_header_size(struct key_store *ks)
{
    return ks->sector;
}

uint64_t geli_header_place(struct key_store *ks, const struct blk *b)
{
    return geli_place(b, ks->sector);
}

int geli_backup(struct key_store *ks, struct blk *to, struct report *rep)
{
    return geli_write(to, &ks->meta, ks->sector, geli_place(to, ks->sector), rep);
}

/* Who insists on a backup from before a resize gets one that fits: as "geli restore -f". */
int geli_restore(struct key_store *backup, struct blk *header, struct report *rep)
{
    struct geli_meta m = backup->meta;

    if (m.provsize != backup->data->size)
        report_warn(rep,
                    "the backup is of a container of %" PRIu64
                    " bytes: restored as that of one of %" PRIu64,
                    m.provsize, backup->data->size);
    m.provsize = backup->data->size;
    if (m.provsize % backup->sector != 0 || geli_meta_disk(&m, backup->sector) == 0)
        return report_error(rep, EBADMSG, "a container of %" PRIu64 " bytes cannot have it",
                            m.provsize);
    return geli_write(header, &m, backup->sector, geli_place(header, backup->sector), rep);
}

/* No container with metadata to compare with. */
static int check_fits(const struct key_store *backup, struct report *rep)
{
    if (backup->meta.provsize == backup->data->size)
        return 0;
    return report_error(
        rep, EPERM, "the backup is of a container of %" PRIu64 " bytes, and this one has %" PRIu64,
        backup->meta.provsize, backup->data->size);
}

int geli_restore_check(struct key_store *backup, struct key_store *ks, struct report *rep)
{
    const struct geli_meta *from = &backup->meta, *now = ks != NULL ? &ks->meta : from;

    if (ks == NULL)
        return check_fits(backup, rep);
    if (memcmp(from->salt, now->salt, GELI_SALT) != 0)
        return report_error(rep, EPERM, "the backup is of another container");
    if (from->version != now->version || from->ealgo != now->ealgo || from->keylen != now->keylen ||
        from->aalgo != now->aalgo || (from->flags & GELI_AUTH) != (now->flags & GELI_AUTH))
        return report_error(rep, EPERM,
                            "the backup has another version or cipher than the container has now");
    if (from->provsize != now->provsize || from->sectorsize != now->sectorsize)
        return report_error(rep, EPERM,
                            "the container was resized since: it has %" PRIu64
                            " bytes, and %" PRIu64 " in the backup",
                            now->provsize, from->provsize);
    return 0;
}

/* --- another size --- */

uint64_t geli_disk_room(struct key_store *ks, uint64_t container)
{
    struct geli_meta m = ks->meta;

    m.provsize = bytes_round_down(container, ks->sector);
    return geli_meta_disk(&m, ks->sector);
}

/* A provider may have a few sectors more than its disk needs. */
uint64_t geli_container_end(struct key_store *ks, uint64_t size)
{
    if (size == geli_meta_disk(&ks->meta, ks->sector))
        return ks->meta.provsize;
    return geli_meta_provider(&ks->meta, size, ks->sector);
}

/* At the very end of a container that was made for this size, as a device is. */
static uint64_t new_end(struct key_store *ks, uint64_t size)
{
    uint64_t there = bytes_round_down(ks->data->size, ks->sector);

    return geli_disk_room(ks, there) == size ? there : geli_container_end(ks, size);
}

/* New before old: from the first write on both are there, and the one at the end counts. What was
 * at the old end belongs to the disk then, and is to say nothing. */
static int move(struct blk *b, const struct geli_meta *m, uint32_t sector, uint64_t old_end,
                struct report *rep)
{
    int r = geli_write(b, m, sector, m->provsize - sector, rep);

    if (r < 0 || old_end > m->provsize - sector)
        return r;
    return geli_wipe(b, sector, old_end - sector, GELI_OVERWRITES, false, rep);
}

int geli_resize(struct key_store *ks, uint64_t size, struct report *rep)
{
    uint64_t old_end = ks->meta.provsize;
    struct geli_meta m = ks->meta;
    bool detached = ks->b != ks->data;
    int r;

    if (size == 0 || size % m.sectorsize != 0 || size > INT64_MAX / 4)
        return report_error(rep, EINVAL,
                            "a disk of %" PRIu64 " bytes is not possible with sectors of %" PRIu32,
                            size, m.sectorsize);
    m.provsize = new_end(ks, size);
    if (m.provsize == old_end)
        return 0;
    if (m.provsize > ks->data->size)
        return report_error(rep, EINVAL, "the container has only %" PRIu64 " bytes",
                            ks->data->size);
    if (detached)
        return geli_store_update(ks, &m, rep);
    if (ks->broken)
        return geli_store_update(ks, &m, rep); /* says so */
    r = move(ks->b, &m, ks->sector, old_end, rep);
    if (r < 0)
        ks->broken = true;
    else
        ks->meta = m;
    return r;
}

/* The block that ended where the container did. */
static int find_old(struct geli_meta *ret, uint32_t *sector, struct blk *b, uint64_t old_size,
                    struct report *rep)
{
    unsigned char block[GELI_BLOCK];

    for (uint32_t s = GELI_SECTOR_MIN; s <= GELI_SECTOR_MAX && s <= old_size; s *= 2) {
        int r = geli_read(b, block, old_size, s);

        if (r < 0 && r != -EINVAL)
            return report_errno(rep, -r, "cannot read the metadata");
        if (r < 0 || geli_meta_decode(ret, block, NULL) < 0 || ret->provsize != old_size)
            continue;
        *sector = s;
        return 0;
    }
    return report_error(rep, EBADMSG,
                        "there is no GELI metadata of a container that ended at byte %" PRIu64,
                        old_size);
}

int geli_relocate(struct blk *header, uint64_t old_size, struct report *rep)
{
    uint32_t sector = 0;
    struct geli_meta m;
    int r;

    if (old_size >= header->size)
        return report_error(rep, EINVAL,
                            "the container has %" PRIu64 " bytes: it did not grow from %" PRIu64,
                            header->size, old_size);
    r = find_old(&m, &sector, header, old_size, rep);
    if (r < 0)
        return r;
    m.provsize = header->size;
    if (header->size % sector != 0)
        return report_error(rep, EINVAL,
                            "the container is not a whole number of sectors of %" PRIu32, sector);
    return move(header, &m, sector, old_size, rep);
}

/* --- looking at it --- */

static void dump_flags(const struct geli_meta *m, struct key_dump *to)
{
    char words[256] = "";
    size_t n = 0;

    for (unsigned bit = 0; bit < 32 && n < sizeof(words); bit++)
        if (m->flags >> bit & 1)
            n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%s", n > 0 ? "," : "",
                                  geli_flag_name(bit));
    to->number(to, "flags", m->flags);
    to->text(to, "flags_set", words);
}

static void dump_algorithms(const struct geli_meta *m, struct key_dump *to)
{
    const struct geli_cipher *c = geli_cipher_numbered(m->ealgo);
    const struct geli_hash *h = geli_hash_numbered(m->aalgo);

    to->number(to, "ealgo", m->ealgo);
    to->text(to, "cipher", c != NULL ? c->name : "unknown");
    to->number(to, "keylen", m->keylen);
    to->number(to, "aalgo", m->aalgo);
    if (m->flags & GELI_AUTH)
        to->text(to, "integrity", h != NULL ? h->name : "unknown");
}

/* What is in the slots stays out: with it a passphrase can be guessed, and a dump gets mailed. */
void geli_dump(struct key_store *ks, struct key_dump *to)
{
    const struct geli_meta *m = &ks->meta;
    char iterations[16];

    to->number(to, "version", m->version);
    dump_flags(m, to);
    dump_algorithms(m, to);
    to->number(to, "provsize", m->provsize);
    to->number(to, "provider_sector", ks->sector);
    to->number(to, "sectorsize", m->sectorsize);
    to->number(to, "size", geli_meta_disk(m, ks->sector));
    to->number(to, "keys", m->keys);
    snprintf(iterations, sizeof(iterations), "%" PRId32, m->iterations);
    to->text(to, "iterations", iterations);
    to->bytes(to, "salt", m->salt, GELI_SALT);
    for (unsigned i = 0; i < GELI_SLOTS; i++) {
        char name[16];

        snprintf(name, sizeof(name), "slot_%u", i);
        to->flag(to, name, m->keys >> i & 1);
    }
}

int geli_check(struct blk *header, struct blk *data, struct report *rep)
{
    struct key_store *ks = NULL;
    int r = geli_store_open(&ks, header, data, rep);

    if (r < 0)
        return r;
    r = geli_store_check_size(ks, rep);
    if (r == 0 && ks->meta.keys == 0)
        r = report_error(rep, EKEYREJECTED, "no key slot is in use: the container was erased");
    geli_store_close(ks);
    return r;
}
