/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/memory.h"

/* From calloc, not from a mapping of our own: a large device costs only the pages that are used all
 * the same, and the address sanitizer sees a request that runs over its end. */

#include "base/bytes.h"

#include <errno.h>

struct memory {
    struct blk blk;
    unsigned char *bytes;
};

static int memory_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct memory *m = container_of(b, struct memory, blk);

    memcpy(buf, m->bytes + off, len);
    return 0;
}

static int memory_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct memory *m = container_of(b, struct memory, blk);

    memcpy(m->bytes + off, buf, len);
    return 0;
}

static int memory_flush(struct blk *b)
{
    (void)b;
    return 0;
}

static int memory_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    struct memory *m = container_of(b, struct memory, blk);

    memset(m->bytes + off, 0, len);
    return 0;
}

static int memory_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    (void)off;
    *ret = (struct blk_extent){.end = b->size, .hole = false};
    return 0;
}

static int memory_stat(struct blk *b, struct blk_stat *ret)
{
    *ret = (struct blk_stat){.allocated = b->size};
    return 0;
}

static int memory_resize(struct blk *b, uint64_t size)
{
    struct memory *m = container_of(b, struct memory, blk);
    unsigned char *bytes = realloc(m->bytes, size > 0 ? size : 1);

    if (bytes == NULL)
        return -ENOMEM;
    if (size > b->size)
        memset(bytes + b->size, 0, size - b->size);
    m->bytes = bytes;
    b->size = size;
    return 0;
}

static void memory_close(struct blk *b)
{
    struct memory *m = container_of(b, struct memory, blk);

    free(m->bytes);
    free(m);
}

static const struct blk_ops memory_ops = {
    .name = "memory",
    .read = memory_read,
    .write = memory_write,
    .flush = memory_flush,
    .discard = memory_write_zeroes,
    .write_zeroes = memory_write_zeroes,
    .extent = memory_extent,
    .stat = memory_stat,
    .resize = memory_resize,
    .close = memory_close,
};

int blk_memory_open(struct blk **ret, uint64_t size, uint32_t granule)
{
    AUTO_BLK struct blk *b = NULL;
    struct memory *m;

    if (!bytes_is_power_of_two(granule) || size % granule != 0)
        return -EINVAL;
    m = calloc(1, sizeof(*m));
    if (m == NULL)
        return -ENOMEM;
    b = &m->blk;
    *b = (struct blk){.ops = &memory_ops, .size = size, .granule = granule};
    m->bytes = calloc(1, size > 0 ? size : 1);
    if (m->bytes == NULL)
        return -ENOMEM;
    *ret = TAKE(b);
    return 0;
}

unsigned char *blk_memory_bytes(struct blk *b)
{
    return container_of(b, struct memory, blk)->bytes;
}
