/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/patch.h"

/* The bytes go as base64. What they mean is the format's to check: here it only has to be a change
 * of the right shape. */

#include "volume/volume.h"

#include <errno.h>
#include <json-c/json.h>
#include <sodium.h>
#include <string.h>

#define BASE64 sodium_base64_VARIANT_ORIGINAL

static const char *const words[] = {
    [KEY_PATCH_ADD] = "add",
    [KEY_PATCH_CHANGE] = "change",
    [KEY_PATCH_REMOVE] = "remove",
    [KEY_PATCH_ERASE] = "erase",
    [KEY_PATCH_FLAGS] = "flags",
};
#define N_WORDS (sizeof(words) / sizeof(words[0]))

const char *serve_patch_word(const struct key_patch *p)
{
    return words[p->what];
}

struct json_object *serve_patch_encode(const struct key_patch *p)
{
    char text[sodium_base64_ENCODED_LEN(KEY_PATCH_MAX, BASE64)];
    struct json_object *o = json_object_new_object();

    sodium_bin2base64(text, sizeof(text), p->bytes, p->len, BASE64);
    json_object_object_add(o, "what", json_object_new_string(serve_patch_word(p)));
    json_object_object_add(o, "slot", json_object_new_int64(p->slot));
    json_object_object_add(o, "force", json_object_new_boolean(p->force));
    json_object_object_add(o, "bytes", json_object_new_string(text));
    return o;
}

/* NULL when it is not there or of another type. */
static struct json_object *member(struct json_object *o, const char *key, enum json_type type)
{
    struct json_object *v = NULL;

    json_object_object_get_ex(o, key, &v);
    return json_object_get_type(v) == type ? v : NULL;
}

static int decode_what(enum key_patch_what *ret, struct json_object *v)
{
    for (unsigned i = KEY_PATCH_ADD; i < N_WORDS; i++) {
        if (strcmp(json_object_get_string(v), words[i]) == 0) {
            *ret = (enum key_patch_what)i;
            return 0;
        }
    }
    return -EINVAL;
}

int serve_patch_decode(struct key_patch *ret, struct json_object *request, struct report *rep)
{
    struct json_object *what = member(request, "what", json_type_string);
    struct json_object *slot = member(request, "slot", json_type_int);
    struct json_object *force = member(request, "force", json_type_boolean);
    struct json_object *bytes = member(request, "bytes", json_type_string);
    struct key_patch p = {0};

    if (what == NULL || slot == NULL || force == NULL || bytes == NULL ||
        decode_what(&p.what, what) < 0)
        return report_error(rep, EINVAL, "this is no change of a key slot");
    if (json_object_get_int64(slot) < 0 || json_object_get_int64(slot) >= KEY_SLOTS_MAX)
        return report_error(rep, EINVAL, "there is no such key slot");
    if (sodium_base642bin(p.bytes, sizeof(p.bytes), json_object_get_string(bytes),
                          (size_t)json_object_get_string_len(bytes), NULL, &p.len, NULL,
                          BASE64) != 0)
        return report_error(rep, EINVAL, "the bytes of the key slot are none, or too many");
    p.slot = (unsigned)json_object_get_int64(slot);
    p.force = json_object_get_boolean(force);
    *ret = p;
    return 0;
}
