/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_place.h"

#include <stddef.h>

#define ON_SERVER                                                                                  \
    "a server where the lock against a second mount, and what is on the disk after fsync, are "    \
    "the server's word, and where root is often nobody (root squash): what root starts cannot "    \
    "read it"
#define ON_SERVER_FIX                                                                              \
    "mount it as yourself, never from two machines at once; as root only where the export says "   \
    "no_root_squash"
#define HOME_ON_SERVER "where root is often nobody (root squash): what root starts cannot look in"
#define HOME_ON_SERVER_FIX                                                                         \
    "mount as yourself, at login too; for root's losetup: mount points and containers on a local " \
    "disk"
#define SERVER(magic, name)                                                                        \
    {                                                                                              \
        magic, name, ON_SERVER, ON_SERVER_FIX, HOME_ON_SERVER, HOME_ON_SERVER_FIX                  \
    }

static const struct doctor_place places[] = {
    SERVER(0x6969, "NFS"),
    SERVER(0x517b, "SMB"),
    SERVER(0xff534d42, "CIFS"),
    SERVER(0xfe534d42, "SMB"),
    SERVER(0x5346414f, "AFS"),
    SERVER(0x6b414653, "AFS"),
    SERVER(0x0bd00bd0, "Lustre"),
    SERVER(0x47504653, "GPFS"),
    SERVER(0x00c36400, "Ceph"),
    {0x65735546, "FUSE",
     "which shows it to nobody but who mounted it, not even to root, and may know no locks and no "
     "fsync",
     "put it on a file system of the kernel where you can",
     "which nobody but who mounted it can enter, not even root", "mount as yourself, at login too"},
    {0x01021997, "9p", "where a lock may hold in this machine only",
     "never mount it on the host at the same time", NULL, NULL},
    {0x01021994, "tmpfs", "which is memory: it is gone when the machine stops", "move it to a disk",
     NULL, NULL},
    {0x858458f6, "ramfs", "which is memory: it is gone when the machine stops", "move it to a disk",
     NULL, NULL},
    {0x4d44, "FAT", "which has no files over 4 GiB and no holes", "move it to ext4, XFS or btrfs",
     NULL, NULL},
};

const struct doctor_place *doctor_place(uint32_t magic)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
        if (places[i].magic == magic)
            return &places[i];
    return NULL;
}
