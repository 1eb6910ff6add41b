/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/filesystem_size.h"

/* libblkid wants a file and the disk is a stack of layers, so it gets a copy of the ends of the
 * disk in memory, as large as the disk and hollow: that is where file systems, volume managers and
 * partition tables have what they are known by.
 *
 * What libblkid recognised says its own size at a fixed place; libblkid of Debian 12 does not tell
 * it. */

#include "base/auto.h"
#include "base/bytes.h"

#include <blkid/blkid.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#define LOOK ((size_t)1024 * 1024) /* bytes at either end */

/* Where each says so, from the start of the disk. */
enum {
    EXT_SUPER = 1024,
    EXT_BLOCKS = EXT_SUPER + 0x04,
    EXT_LOG_BLOCK = EXT_SUPER + 0x18,
    EXT_INCOMPAT = EXT_SUPER + 0x60,
    EXT_BLOCKS_HIGH = EXT_SUPER + 0x150,
    EXT_64BIT = 0x80,
    XFS_BLOCK = 0x04,
    XFS_BLOCKS = 0x08,
    BTRFS_TOTAL = 0x10000 + 0x70,
    PARTITION_UNIT = 512,
    GPT_TAIL = 33 * 512, /* its second copy */
};

static uint64_t ext_end(const unsigned char *p)
{
    uint64_t blocks = bytes_get_le32(p + EXT_BLOCKS);
    uint32_t log_block = bytes_get_le32(p + EXT_LOG_BLOCK);

    if (bytes_get_le32(p + EXT_INCOMPAT) & EXT_64BIT)
        blocks |= (uint64_t)bytes_get_le32(p + EXT_BLOCKS_HIGH) << 32;
    if (log_block > 6 || blocks > (uint64_t)INT64_MAX >> (10 + log_block))
        return 0;
    return blocks << (10 + log_block);
}

static uint64_t xfs_end(const unsigned char *p)
{
    uint64_t block = __builtin_bswap32(bytes_get_le32(p + XFS_BLOCK));
    uint64_t blocks = __builtin_bswap64(bytes_get_le64(p + XFS_BLOCKS));

    return block == 0 || blocks > INT64_MAX / block ? 0 : block * blocks;
}

static uint64_t btrfs_end(const unsigned char *p)
{
    return bytes_get_le64(p + BTRFS_TOTAL);
}

static const struct {
    const char *type;
    uint64_t (*end)(const unsigned char *start); /* LOOK bytes */
} known[] = {
    {"ext2", ext_end}, {"ext3", ext_end}, {"ext4", ext_end}, {"xfs", xfs_end}, {"btrfs", btrfs_end},
};

static void auto_probe(blkid_probe *p)
{
    if (*p != NULL)
        blkid_free_probe(*p);
}

static int copy_to(int fd, struct blk *disk, unsigned char *buf, size_t len, uint64_t off)
{
    int r = blk_read(disk, buf, len, off);

    if (r < 0)
        return r;
    return pwrite(fd, buf, len, (off_t)off) == (ssize_t)len ? 0 : -EIO;
}

/* A hollow copy; start gets its first LOOK bytes. */
static int make_copy(struct blk *disk, unsigned char *start)
{
    AUTO_FD int fd = memfd_create("disk", MFD_CLOEXEC);
    AUTO_FREE unsigned char *tail = malloc(LOOK);
    size_t len = disk->size < LOOK ? (size_t)disk->size : LOOK;
    int r;

    if (fd < 0)
        return -errno;
    if (tail == NULL)
        return -ENOMEM;
    if (ftruncate(fd, (off_t)disk->size) < 0)
        return -errno;
    r = copy_to(fd, disk, tail, len, disk->size - len);
    if (r == 0)
        r = copy_to(fd, disk, start, len, 0);
    return r < 0 ? r : TAKE_FD(fd);
}

static uint64_t partitions_end(blkid_probe p, bool gpt)
{
    blkid_partlist list = blkid_probe_get_partitions(p);
    int n = list != NULL ? blkid_partlist_numof_partitions(list) : 0;
    uint64_t end = 0;

    for (int i = 0; i < n; i++) {
        blkid_partition part = blkid_partlist_get_partition(list, i);
        uint64_t last =
            (uint64_t)blkid_partition_get_start(part) + (uint64_t)blkid_partition_get_size(part);

        end = last > end ? last : end;
    }
    return end == 0 ? 0 : end * PARTITION_UNIT + (gpt ? GPT_TAIL : 0);
}

static void find_file_system(struct cmd_fs_need *need, const char *type, const unsigned char *start)
{
    snprintf(need->what, sizeof(need->what), "%s", type);
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(known[i].type, type) == 0)
            need->end = known[i].end(start);
}

static int probe(struct cmd_fs_need *need, int fd, const unsigned char *start)
{
    blkid_probe p __attribute__((cleanup(auto_probe))) = blkid_new_probe();
    const char *word;
    int r;

    if (p == NULL || blkid_probe_set_device(p, fd, 0, 0) != 0)
        return -EIO;
    blkid_probe_enable_superblocks(p, 1);
    blkid_probe_set_superblocks_flags(p, BLKID_SUBLKS_TYPE);
    blkid_probe_enable_partitions(p, 1);
    r = blkid_do_safeprobe(p);
    if (r == -2)
        snprintf(need->what, sizeof(need->what), "several things at once");
    else if (r < 0)
        return -EIO;
    else if (r == 0 && blkid_probe_lookup_value(p, "TYPE", &word, NULL) == 0)
        find_file_system(need, word, start);
    else if (r == 0 && blkid_probe_lookup_value(p, "PTTYPE", &word, NULL) == 0) {
        snprintf(need->what, sizeof(need->what), "%.16s partition table", word);
        need->end = partitions_end(p, strcmp(word, "gpt") == 0);
    }
    return 0;
}

int cmd_fs_find_need(struct cmd_fs_need *ret, struct blk *disk, struct report *rep)
{
    AUTO_FREE unsigned char *start = calloc(1, LOOK);
    AUTO_FD int fd = -1;
    int r;

    *ret = (struct cmd_fs_need){0};
    if (start == NULL)
        return report_errno(rep, ENOMEM, "cannot look at the disk");
    r = fd = make_copy(disk, start);
    if (r >= 0)
        r = probe(ret, fd, start);
    return r < 0 ? report_errno(rep, -r, "cannot look at what is on the disk") : 0;
}
