/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/geli/geli.h"

/* What the format offers to the rest, put together from the block on the medium (store), keys and
 * slots (key, unlock), changes of them (change), the metadata as a whole (whole, create), and the
 * bytes (meta). */

#include "keystore/geli/change.h"
#include "keystore/geli/store.h"
#include "keystore/geli/unlock.h"
#include "keystore/geli/whole.h"

static int geli_recognise(struct blk *b)
{
    uint32_t sector;

    return geli_find(b, b->size, &sector);
}

const struct key_format geli_format = {
    .name = "geli",
    .default_cipher = "aes-xts",
    .recognise = geli_recognise,
    .prepare = geli_prepare,
    .container_size = geli_container_size,
    .disk_size = geli_disk_size,
    .check_create = geli_check_create,
    .create = geli_create,
    .open = geli_store_open,
    .close = geli_store_close,
    .unlock = geli_unlock,
    .slots = geli_slots,
    .check_kdf = geli_check_kdf,
    .seal = geli_seal,
    .apply = geli_apply,
    .destroy = geli_destroy,
    .big_endian = geli_big_endian,
    .export = geli_export,
    .import = geli_import,
    .forget = geli_store_forget,
    .container_end = geli_container_end,
    .disk_room = geli_disk_room,
    .resize = geli_resize,
    .relocate = geli_relocate,
    .find_end = geli_find_end,
    .set_flags = geli_set_flags,
    .uuid = geli_uuid,
    .header_size = geli_header_size,
    .header_place = geli_header_place,
    .backup = geli_backup,
    .restore = geli_restore,
    .restore_check = geli_restore_check,
    .dump = geli_dump,
    .check = geli_check,
    .max_slots = GELI_SLOTS,
    .detachable = true,
    .by_sectors = true,
    .passphrase_lines = true,
};
