/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/onetime.h"

/* A disk for as long as it is mounted: scratch, swap. It is an ordinary GELI container whose header
 * is in memory and whose key file was never a file, so that all the rest needs to know nothing. */

#include "base/bytes.h"
#include "block/memory.h"

#include <errno.h>
#include <inttypes.h>

#define LOOK (64u << 10) /* bytes at either end that tell whether somebody needs what is there */
#define KEY_BYTES 64

static int is_zero_at(struct blk *b, uint64_t off, size_t len)
{
    AUTO_FREE unsigned char *bytes = aligned_alloc(4096, LOOK);
    int r = bytes != NULL ? blk_read(b, bytes, len, off) : -ENOMEM;

    return r < 0 ? r : bytes_are_zero(bytes, len);
}

static int check_empty(struct blk *b, struct report *rep)
{
    size_t len = b->size < LOOK ? (size_t)b->size : LOOK;
    int r = is_zero_at(b, 0, len);

    if (r > 0)
        r = is_zero_at(b, b->size - len, len);
    if (r < 0)
        return report_errno(rep, -r, "cannot look at what is there");
    return r > 0 ? 0
                 : report_error(rep, EEXIST,
                                "it holds something, which a one-time disk would overwrite "
                                "(--onetime=force does)");
}

static int make_key(struct credential *key)
{
    int r = secret_make(&key->keyfiles, KEY_BYTES);

    if (r < 0)
        return r;
    secret_random(key->keyfiles.bytes, KEY_BYTES);
    key->n_keyfiles = 1;
    return 0;
}

static int make_header(struct key_container *c, const struct credential *key, struct report *rep)
{
    struct key_create req = {.cipher = "aes-xts", .key_bits = 256, .sector_size = 4096};
    int r;

    c->format = key_format_named("geli");
    r = c->format->prepare(&req, rep);
    if (r < 0)
        return r;
    req.size = c->format->disk_size(&req, c->blk->size);
    if (req.size == 0)
        return report_error(rep, EINVAL, "the container is too small: %" PRIu64 " bytes",
                            c->blk->size);
    r = blk_memory_open(&c->header, req.medium_sector, 1);
    if (r < 0)
        return report_errno(rep, -r, "cannot make a header");
    r = c->format->create(c->header, c->blk, &req, key, rep);
    return r < 0 ? r : c->format->open(&c->store, c->header, c->blk, rep);
}

int onetime_open(struct key_container *ret, const struct vol_spec *spec, struct credential *key,
                 pid_t *holder, struct report *rep)
{
    const struct blk_file_spec file = {.path = spec->container, .direct = spec->direct};
    AUTO_KEY_CONTAINER struct key_container c = {0};
    int r;

    if (spec->read_only || spec->header != NULL)
        return report_error(rep, EINVAL,
                            "a one-time disk is new: read-only, or with the header of "
                            "another one, it is of no use");
    r = key_container_open_files(&c, &file, NULL, holder, rep);
    if (r == 0 && spec->onetime != VOL_ONETIME_FORCE)
        r = check_empty(c.blk, rep);
    if (r == 0)
        r = make_key(key);
    if (r == 0)
        r = make_header(&c, key, rep);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct key_container){0};
    return 0;
}
