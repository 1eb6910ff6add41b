/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/mounts_json.h"

/* Paths are bytes and JSON is UTF-8, so they are put again as cmd_json_string() has them; for root
 * some records are the words of users, who may write anything. */

static void put_text(struct json_object *o, const char *key, const char *text)
{
    if (text != NULL)
        json_object_object_add(o, key, cmd_json_string(text));
}

struct json_object *cmd_mount_json(const struct serve_found *f)
{
    struct json_object *o = serve_record_encode(&f->record);

    put_text(o, "container", f->record.container);
    put_text(o, "mountpoint", f->record.mountpoint);
    put_text(o, "header", f->record.header);
    put_text(o, "filesystem", f->record.filesystem);
    put_text(o, "device", f->record.device);
    put_text(o, "link", f->record.link);
    put_text(o, "format", f->record.format);
    put_text(o, "cipher", f->record.cipher);
    if (f->record.integrity[0] != '\0')
        put_text(o, "integrity", f->record.integrity);
    json_object_object_add(o, "state", json_object_new_string(f->alive ? "mounted" : "dead"));
    json_object_object_add(o, "uid", json_object_new_int64(f->folder.owner));
    return o;
}
