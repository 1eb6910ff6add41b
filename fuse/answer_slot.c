/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/life.h"

/* A command made and sealed a change of a key slot; the header is ours to write. It is a job,
 * because making a header durable waits for everything else that was written to the container. */

#include "base/auto.h"
#include "fuse/patch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct slot_change {
    struct daemon *d;
    struct key_patch patch;
};

static int run(void *arg, struct progress *progress, struct report *rep)
{
    const struct slot_change *c = arg;
    int r = vol_key_apply(c->d->vol, &c->patch, rep);

    (void)progress;
    if (r == 0 && c->patch.what == KEY_PATCH_FLAGS)
        report_info(&c->d->log, "the flags in the header were changed");
    else if (r == 0)
        report_info(&c->d->log, "the key slots were changed: %s slot %u",
                    serve_patch_word(&c->patch), c->patch.slot);
    return r;
}

/* Keeps the last line for an answer. */
struct reason {
    struct report rep;
    char text[REPORT_LINE];
};

static void reason_say(struct report *rep, enum report_level level, const char *text)
{
    struct reason *why = container_of(rep, struct reason, rep);

    (void)level;
    snprintf(why->text, sizeof(why->text), "%s", text);
}

struct json_object *serve_answer_slot(struct daemon *d, struct json_object *request)
{
    struct reason why = {.rep.say = reason_say};
    AUTO_FREE struct slot_change *c = calloc(1, sizeof(*c));
    struct serve_job job = {.name = "change of key slots", .run = run, .done = free};
    int r;

    if (c == NULL)
        return serve_control_refuse(ENOMEM, "no memory for the change");
    c->d = d;
    r = serve_patch_decode(&c->patch, request, &why.rep);
    if (r < 0)
        return serve_control_refuse(-r, why.text);
    job.arg = TAKE(c);
    return serve_job_start(d->jobs, &job);
}
