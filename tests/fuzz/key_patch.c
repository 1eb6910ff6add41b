/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes a change of key slots on its way through a daemon: a request in JSON, taken apart and
 * applied to a container. Input: a byte of choices, then the text of the request.
 *
 * What it must never find: a crash; a container that nothing opens any more, unless that is what
 * the change asked for; one whose copies differ; a refused change that wrote. */

#include "block/memory.h"
#include "fuse/patch.h"
#include "keystore/format.h"
#include "lib/container.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

enum { READ_ONLY = 1, FORGET = 2, FIT = 4 /* the bytes are made for this container */ };
enum { USED = 2 /* slot */, TEXT_MAX = 16384, AT_UUID = NATIVE_SLOT, AT_PARAMS = AT_UUID + 16 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static struct {
    struct blk *container;
    unsigned char block[NATIVE_BLOCK];
    struct native_header header;
} good;

static void make_good(void)
{
    if (secret_start(NULL) < 0)
        abort();
    good.header = container_header();
    container_block(good.block, &good.header);
    good.container = container_open(good.block);
}

static unsigned char *copy(unsigned i)
{
    return blk_memory_bytes(good.container) + (size_t)i * NATIVE_COPY_STEP;
}

/* What encode makes of it says the same. */
static void check_round_trip(const struct key_patch *p)
{
    struct json_object *o = serve_patch_encode(p);
    struct key_patch again;

    if (serve_patch_decode(&again, o, NULL) < 0 || again.what != p->what || again.slot != p->slot ||
        again.force != p->force || again.len != p->len ||
        memcmp(again.bytes, p->bytes, p->len) != 0)
        abort();
    json_object_put(o);
}

static bool opens(const struct key_format *f)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    bool ok;

    container_credential(&cred, "old horse", NULL);
    if (f->open(&ks, good.container, good.container, NULL) < 0)
        return false;
    ok = f->unlock(ks, &cred, USED, &v, NULL) == 0;
    f->close(ks);
    return ok;
}

static int apply(const struct key_format *f, const struct key_patch *p, unsigned choices)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_store *ks = NULL;
    int r;

    container_credential(&cred, "old horse", NULL);
    if (f->open(&ks, good.container, good.container, NULL) < 0 ||
        f->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL) < 0)
        abort();
    f->forget(ks, (choices & FORGET) != 0);
    r = f->apply(ks, p, NULL);
    f->close(ks);
    return r;
}

static void use(struct key_patch *p, unsigned choices)
{
    const struct key_format *f = key_format_named("native");
    int r;

    check_round_trip(p);
    if (choices & FIT && p->len >= AT_PARAMS + sizeof(good.header.params_sha256)) {
        memcpy(p->bytes + AT_UUID, good.header.uuid, sizeof(good.header.uuid));
        memcpy(p->bytes + AT_PARAMS, good.header.params_sha256, sizeof(good.header.params_sha256));
    }
    good.container->read_only = (choices & READ_ONLY) != 0;
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        memcpy(copy(i), good.block, NATIVE_BLOCK);
    r = apply(f, p, choices);
    if (memcmp(copy(0), copy(1), NATIVE_BLOCK) != 0)
        abort();
    if (r < 0 && memcmp(copy(0), good.block, NATIVE_BLOCK) != 0)
        abort();
    if (p->what != KEY_PATCH_ERASE && p->slot != USED && !opens(f))
        abort();
    if (r == 0 && p->what == KEY_PATCH_REMOVE && !p->force)
        abort(); /* it was the last one */
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    static char text[TEXT_MAX];
    struct json_object *request;
    struct key_patch p;

    if (good.container == NULL)
        make_good();
    if (len == 0 || len > sizeof(text))
        return 0;
    memcpy(text, data + 1, len - 1);
    text[len - 1] = '\0';
    request = json_tokener_parse(text);
    if (json_object_get_type(request) == json_type_object &&
        serve_patch_decode(&p, request, NULL) == 0)
        use(&p, data[0]);
    json_object_put(request);
    return 0;
}
