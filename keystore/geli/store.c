/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/store.h"

/* docs/geli-format.md 1 and 9. The size of the provider's sectors is stored nowhere: it is what
 * lies between the metadata and the end. So all that are possible are tried, and a block counts
 * when its checksum is right and it is for a container of this size.
 *
 * A layer below may take whole granules only, larger than a sector: then what surrounds a sector is
 * written back as it is. */

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* A piece of b in whole granules, with a sector in it. */
struct place {
    struct blk *b;
    uint64_t off; /* bytes, of the piece */
    size_t len, skip;
    unsigned char *bytes; /* owned: the piece */
};

static void place_done(struct place *p)
{
    free(p->bytes);
}
#define AUTO_PLACE __attribute__((cleanup(place_done)))

/* -EINVAL when there is not so much. */
static int place_init(struct place *p, struct blk *b, size_t len, uint64_t off)
{
    uint64_t end;

    if (off > b->size || len > b->size - off)
        return -EINVAL;
    p->b = b;
    p->off = bytes_round_down(off, b->granule);
    p->skip = (size_t)(off - p->off);
    end = bytes_round_up(off + len, b->granule);
    if (end > b->size)
        return -EINVAL;
    p->len = (size_t)(end - p->off);
    p->bytes = aligned_alloc(4096, bytes_round_up(p->len, 4096));
    return p->bytes != NULL ? 0 : -ENOMEM;
}

static int place_read(struct place *p)
{
    return blk_read(p->b, p->bytes, p->len, p->off);
}

/* len bytes at off, in one write, durably. */
static int write_durably(struct blk *b, const unsigned char *bytes, size_t len, uint64_t off)
{
    AUTO_PLACE struct place p = {0};
    int r = place_init(&p, b, len, off);

    if (r == 0 && p.len != len)
        r = place_read(&p);
    if (r < 0)
        return r;
    memcpy(p.bytes + p.skip, bytes, len);
    r = blk_write(b, p.bytes, p.len, p.off);
    return r < 0 ? r : blk_flush(b);
}

/* A backup that geli(8) rewrote is the bare block, shorter than a sector. */
static int read_block(struct blk *b, unsigned char block[GELI_BLOCK], uint64_t off)
{
    size_t len = b->size - off < GELI_BLOCK ? (size_t)(b->size - off) : GELI_BLOCK;
    AUTO_PLACE struct place p = {0};
    int r = place_init(&p, b, len, off);

    if (r == 0)
        r = place_read(&p);
    if (r < 0)
        return r;
    memset(block, 0, GELI_BLOCK);
    memcpy(block, p.bytes + p.skip, len);
    return 0;
}

int geli_read(struct blk *b, unsigned char block[GELI_BLOCK], uint64_t end, uint32_t sector)
{
    return end < sector || end > b->size ? -EINVAL : read_block(b, block, end - sector);
}

uint64_t geli_place(const struct blk *b, uint32_t sector)
{
    return b->size < sector ? 0 : b->size - sector;
}

int geli_find(struct blk *b, uint64_t provsize, uint32_t *sector)
{
    unsigned char block[GELI_BLOCK];
    struct geli_meta m;
    uint32_t first = 0;
    int r, error = 0;

    if (b->size < GELI_BLOCK) {
        *sector = GELI_SECTOR_MIN;
        return b->size > 16 && b->granule == 1 && read_block(b, block, 0) == 0 &&
               geli_meta_begins(block);
    }
    for (uint32_t s = GELI_SECTOR_MIN; s <= GELI_SECTOR_MAX && s <= b->size; s *= 2) {
        r = geli_read(b, block, b->size, s);
        if (r < 0 && r != -EINVAL)
            error = r;
        if (r < 0 || !geli_meta_begins(block))
            continue;
        if (first == 0)
            first = s;
        if (geli_meta_decode(&m, block, NULL) == 0 && m.provsize == provsize) {
            first = s;
            break;
        }
    }
    *sector = first;
    return first != 0 ? 1 : error;
}

int geli_store_check_size(const struct key_store *ks, struct report *rep)
{
    if (ks->meta.provsize == ks->data->size)
        return 0;
    return report_error(rep, EBADMSG,
                        "the container has %" PRIu64 " bytes, and its metadata is for %" PRIu64
                        ": it was grown or cut, or is a whole disk of which GELI has a partition",
                        ks->data->size, ks->meta.provsize);
}

/* What the block says against where it lies. */
static int check_place(const struct key_store *ks, struct report *rep)
{
    const struct geli_meta *m = &ks->meta;
    /* a backup need not fit to be looked at, or to be made to fit */
    int r = ks->b == ks->data ? geli_store_check_size(ks, rep) : 0;

    if (r < 0)
        return r;
    if (ks->sector > m->sectorsize)
        return report_error(rep, EBADMSG,
                            "the metadata claims sectors of %" PRIu32
                            " bytes on a container that has sectors of %" PRIu32,
                            m->sectorsize, ks->sector);
    if (geli_meta_disk(m, ks->sector) == 0)
        return report_error(rep, EBADMSG, "the metadata leaves no room for a single sector");
    return 0;
}

static int open_block(struct key_store *ks, struct report *rep)
{
    unsigned char block[GELI_BLOCK];
    int r = geli_find(ks->b, ks->data->size, &ks->sector);

    if (r == 0)
        return report_error(rep, EBADMSG, "there is no GELI metadata at its end");
    if (r > 0)
        r = read_block(ks->b, block, geli_place(ks->b, ks->sector));
    if (r < 0)
        return report_errno(rep, -r, "cannot read the metadata");
    r = geli_meta_decode(&ks->meta, block, rep);
    return r < 0 ? r : check_place(ks, rep);
}

int geli_store_open(struct key_store **ret, struct blk *header, struct blk *data,
                    struct report *rep)
{
    struct key_store *ks = calloc(1, sizeof(*ks));
    int r;

    if (ks == NULL)
        return report_errno(rep, ENOMEM, "cannot read the metadata");
    ks->b = header;
    ks->data = data;
    r = open_block(ks, rep);
    if (r < 0) {
        geli_store_close(ks);
        return r;
    }
    *ret = ks;
    return 0;
}

/* Slots are sealed with the same key that makes all others: there is only one thing to forget. */
void geli_store_forget(struct key_store *ks, bool all)
{
    (void)all;
    secret_done(&ks->master);
}

void geli_store_close(struct key_store *ks)
{
    if (ks == NULL)
        return;
    geli_store_forget(ks, true);
    free(ks);
}

int geli_write(struct blk *b, const struct geli_meta *m, uint32_t sector, uint64_t off,
               struct report *rep)
{
    size_t len = b->size - off < sector ? (size_t)(b->size - off) : sector;
    AUTO_FREE unsigned char *bytes = calloc(1, sector);
    int r = bytes != NULL ? geli_meta_encode(bytes, m) : -ENOMEM;

    if (r == 0)
        r = write_durably(b, bytes, len, off);
    return r < 0 ? report_errno(rep, -r, "cannot write the metadata") : 0;
}

int geli_store_update(struct key_store *ks, const struct geli_meta *m, struct report *rep)
{
    int r;

    if (ks->b->read_only)
        return report_error(rep, EROFS, "the container is open for reading only");
    if (ks->broken)
        return report_error(rep, EIO,
                            "writing the metadata failed before: close the container and look at "
                            "it (\"hushvol header check\")");
    r = geli_write(ks->b, m, ks->sector, geli_place(ks->b, ks->sector), rep);
    if (r < 0)
        ks->broken = true;
    else
        ks->meta = *m;
    return r;
}

int geli_wipe(struct blk *b, uint32_t sector, uint64_t off, unsigned times, bool zeros,
              struct report *rep)
{
    AUTO_FREE unsigned char *bytes = calloc(1, sector);
    int r = bytes != NULL ? 0 : -ENOMEM;

    for (unsigned i = 0; r == 0 && i < times; i++) {
        secret_random(bytes, sector);
        r = write_durably(b, bytes, sector, off);
    }
    if (r == 0 && zeros) {
        memset(bytes, 0, sector);
        r = write_durably(b, bytes, sector, off);
    }
    return r < 0 ? report_errno(rep, -r, "cannot overwrite the metadata") : 0;
}
