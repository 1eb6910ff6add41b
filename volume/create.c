/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/draft.h"

/* Everything is checked, then room is made beside what is there, then the passphrase is asked for,
 * then all is written and takes its place: a wrong word must not cost an existing file, and nobody
 * thinks up a passphrase for a container that there is no place for. */

#include "base/bytes.h"

#include "crypto/cipher.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

static int check_cipher(const struct key_create *header, struct report *rep)
{
    const struct cipher *c = cipher_named(header->cipher);

    if (c == NULL)
        return report_error(rep, EOPNOTSUPP, "this version has no cipher \"%s\"", header->cipher);
    if (header->sector_size < 512 || !bytes_is_power_of_two(header->sector_size) ||
        header->sector_size > c->sector_max)
        return report_error(rep, EINVAL, "sectors of %u bytes are not possible (512, 1024, ...)",
                            header->sector_size);
    return 0;
}

static bool is_device(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISBLK(st.st_mode);
}

/* What the disk's size comes to. For a device without a size that is all that the device leaves:
 * known only when it is open, so 0 here. */
static int disk_size(uint64_t *ret, const struct vol_create *spec, struct report *rep)
{
    uint64_t size = spec->size;

    if (size == 0 && !is_device(spec->container))
        return report_error(rep, EINVAL, "a size is needed (--size, for example --size 10G)");
    if (size > INT64_MAX - spec->header.sector_size - (UINT64_C(1) << 32))
        return report_error(rep, EINVAL, "%" PRIu64 " bytes are more than a file can have", size);
    *ret = bytes_round_up(size, spec->header.sector_size);
    return 0;
}

static int fill_device(struct key_create *header, const struct key_format *format,
                       const struct blk *device, struct report *rep)
{
    uint64_t overhead = format->container_size(0);

    if (device->size < overhead + header->sector_size)
        return report_error(rep, EINVAL, "the device is too small: %" PRIu64 " bytes",
                            device->size);
    header->size = bytes_round_down(device->size - overhead, header->sector_size);
    return 0;
}

static int check_request(struct key_create *header, const struct key_format *format,
                         const struct vol_create *spec, struct report *rep)
{
    int r;

    if (format == NULL || format->create == NULL)
        return report_error(rep, EOPNOTSUPP, "this version cannot make containers of format \"%s\"",
                            spec->format);
    header->discard = spec->sparse;
    r = check_cipher(header, rep);
    if (r == 0)
        r = disk_size(&header->size, spec, rep);
    if (r == 0 && header->size != 0)
        r = format->check_create(header, rep);
    return r;
}

int vol_draft_open(struct vol_draft *ret, const struct vol_create *spec, pid_t *holder,
                   struct report *rep)
{
    AUTO_VOL_DRAFT struct vol_draft d = {.format = key_format_named(spec->format),
                                         .header = spec->header};
    int r;

    if (holder != NULL)
        *holder = 0; /* whoever has it open is not known to the kernel by pid */
    r = check_request(&d.header, d.format, spec, rep);
    if (r < 0)
        return r;

    const struct blk_file_create file = {.path = spec->container,
                                         .size = d.format->container_size(d.header.size),
                                         .preallocate = !spec->sparse,
                                         .replace = spec->force,
                                         .progress = spec->progress};
    r = blk_file_create(&d.blk, &file, rep);
    if (r == 0 && d.header.size == 0)
        r = fill_device(&d.header, d.format, d.blk, rep);
    if (r < 0)
        return r;
    *ret = d;
    d = (struct vol_draft){0};
    return 0;
}

int vol_draft_make_header(struct vol_draft *d, const struct credential_source *src,
                          struct blk *where, struct report *rep)
{
    int r = credential_read(&d->cred, src, rep);

    return r < 0 ? r : d->format->create(where, &d->header, &d->cred, rep);
}

int vol_draft_commit(struct vol_draft *d, struct report *rep)
{
    return blk_file_commit(d->blk, rep);
}

void vol_draft_close(struct vol_draft *d)
{
    blk_close(d->blk);
    credential_done(&d->cred);
    *d = (struct vol_draft){0};
}

int vol_create(const struct vol_create *spec, pid_t *holder, struct report *rep)
{
    AUTO_VOL_DRAFT struct vol_draft d = {0};
    int r = vol_draft_open(&d, spec, holder, rep);

    if (r == 0)
        r = vol_draft_make_header(&d, &spec->credential, d.blk, rep);
    if (r == 0) /* the last chance to want none of it */
        r = progress_step(spec->progress, d.blk->size, d.blk->size);
    return r < 0 ? r : vol_draft_commit(&d, rep);
}
