/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/mounts_json.h"

/* Paths are bytes and JSON is UTF-8, so those are put again as cmd_json_string() has them. */

static void put_path(struct json_object *o, const char *key, const char *path)
{
    if (path != NULL)
        json_object_object_add(o, key, cmd_json_string(path));
}

struct json_object *cmd_mount_json(const struct serve_found *f)
{
    struct json_object *o = serve_record_encode(&f->record);

    put_path(o, "container", f->record.container);
    put_path(o, "mountpoint", f->record.mountpoint);
    put_path(o, "filesystem", f->record.filesystem);
    put_path(o, "device", f->record.device);
    json_object_object_add(o, "state", json_object_new_string(f->alive ? "mounted" : "dead"));
    json_object_object_add(o, "uid", json_object_new_int64(f->folder.owner));
    return o;
}
