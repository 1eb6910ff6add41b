/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/resize.h"

/* Only growing: what a file system above has in the part that would go, nobody here can know. Room
 * is made while requests run; they are held for the moment in which the stack changes. */

#include "fuse/control.h"
#include "fuse/life.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>

struct resize {
    struct daemon *d;
    uint64_t size;
};

/* Is there something to do? *size becomes what the disk would have. */
static int check(struct daemon *d, uint64_t *size, const struct vol_info *now, struct report *rep)
{
    int r = *size == 0 ? vol_device_room(d->vol, size, rep) : 0;

    if (r == 0)
        r = vol_resize_check(d->vol, size, rep);
    if (r == 0 && *size < now->size)
        r = report_error(rep, EBUSY,
                         "a mounted disk can only grow, to %" PRIu64
                         " bytes it would shrink (\"hushvol umount %s\" first)",
                         *size, d->result.name);
    return r;
}

/* In the job's thread. */
static int run(void *arg, struct progress *progress, struct report *rep)
{
    const struct resize *q = arg;
    uint64_t size = q->size;
    struct vol_info now;
    int r;

    vol_get_info(q->d->vol, &now);
    r = check(q->d, &size, &now, rep);
    if (r == 0)
        r = vol_make_room(q->d->vol, size, progress, rep);
    if (r == 0 && size > now.size)
        r = serve_grow(q->d->serve, size, rep);
    if (r < 0 && size > now.size)
        vol_make_room(q->d->vol, now.size, NULL, NULL); /* nobody uses it: it is given back */
    return r;
}

struct json_object *serve_resize_answer(struct daemon *d, struct json_object *request)
{
    struct serve_job job = {.name = "resize", .run = run, .done = free};
    struct resize *q = calloc(1, sizeof(*q));
    struct json_object *v;

    if (q == NULL)
        return serve_control_refuse(ENOMEM, "out of memory");
    q->d = d;
    if (json_object_object_get_ex(request, "size", &v) && json_object_get_int64(v) > 0)
        q->size = (uint64_t)json_object_get_int64(v);
    job.arg = q;
    return serve_job_start(d->jobs, &job);
}
