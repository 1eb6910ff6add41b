/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/draft.h"

/* Everything is checked, then room is made beside what is there, then the passphrase is asked for,
 * then all is written and takes its place: a wrong word must not cost an existing file, and nobody
 * thinks up a passphrase for a container that there is no place for. */

#include "base/auto.h"
#include "base/bytes.h"

#include "crypto/cipher.h"
#include "keystore/unlock.h"
#include "volume/stack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_cipher(const struct key_create *header, struct report *rep)
{
    const struct cipher *c = cipher_named(header->data_cipher);

    if (c == NULL)
        return report_error(rep, EOPNOTSUPP, "this version has no cipher \"%s\"",
                            header->data_cipher);
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

/* The sectors of the device, where nobody says what it is an image of. */
static int device_sector(struct key_create *header, const struct vol_create *spec,
                         struct report *rep)
{
    AUTO_FD int fd = -1;
    int size = 0;

    if (header->medium_sector != 0 || !is_device(spec->container))
        return 0;
    fd = open(spec->container, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, BLKSSZGET, &size) < 0 || size <= 0)
        return report_errno(rep, errno, "cannot find out the sectors of the device");
    header->medium_sector = (uint32_t)size;
    return 0;
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
    header->size = format->disk_size(header, device->size);
    if (header->size == 0)
        return report_error(rep, EINVAL, "the device is too small: %" PRIu64 " bytes",
                            device->size);
    return 0;
}

/* The file of a detached header: as large as the place that a header has in a container. */
static int make_header_file(struct vol_draft *d, const struct vol_create *spec, struct report *rep)
{
    struct key_create no_disk = d->header;

    no_disk.size = 0;

    const struct blk_file_create file = {
        .path = spec->header_file,
        .size = d->format->container_size(&no_disk),
        .if_exists = "a header takes no other file's place: choose another name",
    };

    if (spec->header_file == NULL)
        return 0;
    d->header_file = spec->header_file;
    return blk_file_create(&d->header_blk, &file, rep);
}

/* Do both name one new file? Where something is there already, its kind and its lock tell. */
static bool is_same_place(const char *a, const char *b)
{
    const char *const path[2] = {a, b};
    const char *name[2];
    struct stat folder[2];

    for (unsigned i = 0; i < 2; i++) {
        const char *slash = strrchr(path[i], '/');
        AUTO_FREE char *above = slash != NULL ? strndup(path[i], slash + 1 - path[i]) : strdup(".");

        name[i] = slash != NULL ? slash + 1 : path[i];
        if (above == NULL || stat(above, &folder[i]) < 0)
            return false;
    }
    return strcmp(name[0], name[1]) == 0 && folder[0].st_dev == folder[1].st_dev &&
           folder[0].st_ino == folder[1].st_ino;
}

static int check_request(struct key_create *header, const struct key_format *format,
                         const struct vol_create *spec, struct report *rep)
{
    int r;

    if (format == NULL || format->create == NULL)
        return report_error(rep, EOPNOTSUPP, "this version cannot make containers of format \"%s\"",
                            spec->format);
    if (spec->header_file != NULL && !format->detachable)
        return report_error(rep, EOPNOTSUPP, "a detached header is not possible in the %s format",
                            format->name);
    if (spec->header_file != NULL && is_same_place(spec->header_file, spec->container))
        return report_error(rep, EINVAL, "the header %s is the container itself (leave it out)",
                            spec->header_file);
    header->discard = spec->sparse;
    r = format->by_sectors ? device_sector(header, spec, rep) : 0;
    if (r == 0)
        r = format->prepare(header, rep);
    if (r == 0)
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

    const struct blk_file_create file = {
        .path = spec->container,
        .size = d.header.size != 0 ? d.format->container_size(&d.header) : 0,
        .preallocate = !spec->sparse,
        .replace = spec->force,
        .progress = spec->progress};
    r = make_header_file(&d, spec, rep);
    if (r == 0)
        r = blk_file_create(&d.blk, &file, rep);
    if (r == 0 && d.header.size == 0)
        r = fill_device(&d.header, d.format, d.blk, rep);
    if (r < 0)
        return r;
    *ret = d;
    d = (struct vol_draft){0};
    return 0;
}

struct blk *vol_draft_header(const struct vol_draft *d)
{
    return d->header_blk != NULL ? d->header_blk : d->blk;
}

int vol_draft_make_header(struct vol_draft *d, const struct credential_source *src,
                          struct blk *where, struct report *rep)
{
    int r = key_credential_read(&d->cred, src, d->format, rep);

    return r < 0 ? r : d->format->create(where, d->blk, &d->header, &d->cred, rep);
}

/* The header first: it may be left over, while a container that took the place of another one must
 * not be left without. */
int vol_draft_commit(struct vol_draft *d, struct report *rep)
{
    int r = d->header_blk != NULL ? blk_file_commit(d->header_blk, rep) : 0;

    if (r < 0)
        return r;
    r = blk_file_commit(d->blk, rep);
    if (r < 0 && d->header_blk != NULL && !is_device(d->header_file))
        unlink(d->header_file);
    return r;
}

void vol_draft_close(struct vol_draft *d)
{
    blk_close(d->blk);
    blk_close(d->header_blk);
    credential_done(&d->cred);
    *d = (struct vol_draft){0};
}

#define INIT_STEP (UINT64_C(4) << 20) /* bytes between two looks at the progress */

static int write_zeros(struct blk *top, struct progress *progress, struct report *rep)
{
    int r = 0;

    for (uint64_t off = 0; r == 0 && off < top->size; off += INIT_STEP) {
        uint64_t len = top->size - off < INIT_STEP ? top->size - off : INIT_STEP;

        r = blk_write_zeroes(top, len, off);
        if (r < 0)
            return report_errno(rep, -r, "cannot write the disk at byte %" PRIu64, off);
        r = progress_step(progress, off + len, top->size);
    }
    if (r == 0 && blk_flush(top) < 0)
        r = report_error(rep, EIO, "cannot make the disk durable");
    return r;
}

static int write_disk(struct vol_draft *d, const struct key_volume *key,
                      const struct vol_create *spec, struct report *rep)
{
    const struct vol_spec all = {.enospc_wait = VOL_NO, .no_readahead = true};
    struct vol_stack stack = {0};
    int r = vol_stack_open(&stack, d->blk, key, &all, rep);

    if (r < 0)
        return r;
    progress_phase(spec->progress, "writing all sectors once");
    r = write_zeros(stack.top, spec->progress, rep);
    vol_stack_release(&stack);
    return r;
}

/* A sector that was never written does not verify: a file system that looks for one would get
 * errors. */
static int initialise(struct vol_draft *d, const struct vol_create *spec, struct report *rep)
{
    AUTO_KEY_VOLUME struct key_volume key = {0};
    struct key_store *ks = NULL;
    int r;

    if (d->header.integrity == NULL || spec->no_init)
        return 0;
    r = d->format->open(&ks, vol_draft_header(d), d->blk, rep);
    if (r < 0)
        return r;
    r = d->format->unlock(ks, &d->cred, KEY_SLOT_ANY, &key, rep);
    d->format->close(ks);
    return r < 0 ? r : write_disk(d, &key, spec, rep);
}

int vol_create(const struct vol_create *spec, pid_t *holder, struct report *rep)
{
    AUTO_VOL_DRAFT struct vol_draft d = {0};
    int r = vol_draft_open(&d, spec, holder, rep);

    if (r == 0)
        r = vol_draft_make_header(&d, &spec->credential, vol_draft_header(&d), rep);
    if (r == 0)
        r = initialise(&d, spec, rep);
    if (r == 0) /* the last chance to want none of it */
        r = progress_step(spec->progress, d.blk->size, d.blk->size);
    return r < 0 ? r : vol_draft_commit(&d, rep);
}
