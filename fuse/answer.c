/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/life.h"

/* What the daemon answers on its control socket. */

#include "base/auto.h"
#include "fuse/resize.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LAYERS_MAX 16

static struct json_object *uuid_text(const unsigned char uuid[16])
{
    char text[37], *out = text;

    for (unsigned i = 0; i < 16; i++) {
        out += sprintf(out, "%02x", uuid[i]);
        if (i == 3 || i == 5 || i == 7 || i == 9)
            *out++ = '-';
    }
    return json_object_new_string_len(text, 36);
}

static void add_info(struct daemon *d, struct json_object *o)
{
    struct vol_info i;

    vol_get_info(d->vol, &i);
    json_object_object_add(o, "label", json_object_new_string(i.label != NULL ? i.label : ""));
    json_object_object_add(o, "uuid", uuid_text(i.uuid));
    json_object_object_add(o, "data_offset", json_object_new_uint64(i.data_offset));
    json_object_object_add(o, "slot", json_object_new_int64(i.slot));
    json_object_object_add(o, "threads", json_object_new_int64(i.threads));
    json_object_object_add(o, "discard", json_object_new_boolean(i.discard));
    json_object_object_add(o, "enospc_wait", json_object_new_boolean(i.enospc_wait));
    json_object_object_add(o, "direct", json_object_new_boolean(i.direct));
    json_object_object_add(o, "cache", json_object_new_boolean(d->spec->serve.cache));
    if (i.reencrypting)
        json_object_object_add(o, "reencrypted", json_object_new_int64((int64_t)i.reencrypted));
    json_object_object_add(o, "suspended", json_object_new_boolean(i.suspended));
    json_object_object_add(o, "poisoned", json_object_new_boolean(i.poisoned));
}

static struct json_object *layers(struct daemon *d)
{
    struct json_object *list = json_object_new_array();
    const char *names[LAYERS_MAX];
    unsigned n = vol_layers(d->vol, names, LAYERS_MAX);

    for (unsigned i = 0; i < n; i++)
        json_object_array_add(list, json_object_new_string(names[i]));
    return list;
}

static struct json_object *encode_record(struct daemon *d)
{
    HOLD(&d->record_lock);

    return serve_record_encode(&d->record);
}

static struct json_object *answer_status(struct daemon *d)
{
    struct json_object *o = encode_record(d);
    struct vol_stats stats;

    vol_get_stats(d->vol, &stats);
    json_object_object_add(o, "ok", json_object_new_boolean(true));
    add_info(d, o);
    json_object_object_add(o, "opens", json_object_new_int64(serve_opens(d->serve)));
    json_object_object_add(o, "held", json_object_new_int64(serve_held(d->serve)));
    json_object_object_add(o, "waiting_for_space", json_object_new_int64(stats.waiting_for_space));
    json_object_object_add(o, "layers", layers(d));
    json_object_object_add(o, "stats", serve_stats(d->serve));
    return o;
}

/* What "hushvol stat" asks again and again: no more than it takes differences of. */
static struct json_object *answer_counters(struct daemon *d)
{
    struct json_object *o = serve_control_answer(NULL);

    json_object_object_add(o, "age_ns", json_object_new_uint64(serve_age_ns(d->serve)));
    json_object_object_add(o, "stats", serve_stats(d->serve));
    json_object_object_add(o, "latencies", serve_latencies(d->serve));
    return o;
}

static void replace_text(char **member, struct json_object *request, const char *key)
{
    struct json_object *v;
    const char *text;

    free(*member);
    *member = NULL;
    if (!json_object_object_get_ex(request, key, &v))
        return;
    text = json_object_get_string(v);
    if (text != NULL && text[0] == '/')
        *member = strdup(text);
}

/* What was attached on top of the image, for list and for the next umount. */
static struct json_object *answer_attached(struct daemon *d, struct json_object *request)
{
    HOLD(&d->record_lock);
    struct json_object *v;

    replace_text(&d->record.filesystem, request, "filesystem");
    replace_text(&d->record.device, request, "device");
    replace_text(&d->record.link, request, "link");
    d->record.made_filesystem =
        json_object_object_get_ex(request, "made_filesystem", &v) && json_object_get_boolean(v);
    return serve_control_answer(
        serve_slot_publish(d->slot, &d->record, &d->log) < 0 ? "cannot write the record" : NULL);
}

/* What a job changed, in the record too. */
static void follow(struct daemon *d)
{
    HOLD(&d->record_lock);
    struct vol_info info;

    vol_get_info(d->vol, &info);
    if (info.size == d->record.size)
        return;
    d->record.size = info.size;
    serve_slot_publish(d->slot, &d->record, &d->log);
    report_info(&d->log, "the disk has %" PRIu64 " bytes now", info.size);
}

static struct json_object *answer(struct daemon *d, struct json_object *request, int *fd)
{
    struct json_object *v = NULL;
    const char *word;

    json_object_object_get_ex(request, "request", &v);
    word = v != NULL ? json_object_get_string(v) : "";
    if (strcmp(word, "status") == 0)
        return answer_status(d);
    if (strcmp(word, "counters") == 0)
        return answer_counters(d);
    if (strcmp(word, "attached") == 0)
        return answer_attached(d, request);
    if (strcmp(word, "slot") == 0)
        return serve_answer_slot(d, request);
    if (strcmp(word, "suspend") == 0)
        return serve_answer_suspend(d);
    if (strcmp(word, "resume") == 0)
        return serve_answer_resume(d, request, fd);
    if (strcmp(word, "resize") == 0)
        return serve_resize_answer(d, request);
    if (strcmp(word, "job") == 0)
        return serve_job_answer(d->jobs, request);
    if (strcmp(word, "job-cancel") == 0)
        return serve_job_cancel(d->jobs, request);
    if (strcmp(word, "give-up-waiting") == 0)
        vol_give_up_waiting(d->vol);
    else if (strcmp(word, "give-up-held") == 0)
        serve_give_up(d->serve, -EIO);
    else if (strcmp(word, "stop") == 0)
        d->stop = true;
    else
        return serve_control_answer("no such request");
    return serve_control_answer(NULL);
}

struct json_object *serve_answer(struct json_object *request, int *fd, void *arg)
{
    struct json_object *o = answer(arg, request, fd);

    follow(arg);
    return o;
}
