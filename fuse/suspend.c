/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/life.h"

/* The daemon's part in suspend and resume: requests are held, then the volume forgets its keys; and
 * the other way round. The volume's key comes back through a descriptor, straight into guarded
 * memory, never through the line of the request. */

#include "base/auto.h"
#include "base/secret.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 4096 /* bytes, more than any format's export */
#define KEY_MS 2000  /* for them to come */

static void publish(struct daemon *d, bool suspended)
{
    HOLD(&d->record_lock);

    d->record.suspended = suspended;
    serve_slot_publish(d->slot, &d->record, &d->log);
}

static bool is_suspended(struct daemon *d)
{
    struct vol_info info;

    vol_get_info(d->vol, &info);
    return info.suspended;
}

static int suspend(void *arg, struct progress *progress, struct report *rep)
{
    struct daemon *d = arg;
    int r;

    (void)progress;
    if (is_suspended(d))
        return report_error(rep, EALREADY, "it is suspended already");
    r = serve_hold(d->serve, rep);
    if (r < 0)
        return r;
    r = vol_suspend(d->vol, rep);
    if (r < 0) {
        serve_release(d->serve);
        return r;
    }
    serve_wipe_buffers(d->serve);
    publish(d, true);
    report_info(&d->log, "suspended: the keys are wiped, and requests wait for a resume");
    return 0;
}

struct json_object *serve_answer_suspend(struct daemon *d)
{
    return serve_job_start(d->jobs,
                           &(struct serve_job){.name = "suspend", .run = suspend, .arg = d});
}

struct resume {
    struct daemon *d;
    int fd;
    unsigned slot;
};

static void resume_done(void *arg)
{
    struct resume *q = arg;

    close(q->fd);
    free(q);
}

/* Until the end of the stream; who sends it has no reason to hesitate. */
static int read_key(struct secret *ret, int fd, struct report *rep)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    size_t n = 0;
    int r = secret_make(ret, KEY_MAX);

    while (r == 0 && n < KEY_MAX) {
        ssize_t got = poll(&ready, 1, KEY_MS) == 1 ? read(fd, ret->bytes + n, KEY_MAX - n) : -1;

        if (got < 0)
            return report_error(rep, EIO, "the volume's key did not come");
        if (got == 0)
            break;
        n += (size_t)got;
    }
    ret->len = n;
    return r < 0 ? report_errno(rep, -r, "cannot take the volume's key") : 0;
}

static int resume(void *arg, struct progress *progress, struct report *rep)
{
    struct resume *q = arg;
    AUTO_SECRET struct secret key = {0};
    int r = read_key(&key, q->fd, rep);

    (void)progress;
    if (r == 0)
        r = vol_resume(q->d->vol, &key, q->slot, rep);
    if (r < 0)
        return r;
    publish(q->d, false);
    serve_release(q->d->serve);
    report_info(&q->d->log, "resumed with key slot %u", q->slot);
    return 0;
}

struct json_object *serve_answer_resume(struct daemon *d, struct json_object *request, int *fd)
{
    struct resume *q = calloc(1, sizeof(*q));
    struct json_object *slot = NULL;

    if (q == NULL || *fd < 0) {
        free(q);
        return serve_control_refuse(EINVAL, "a resume needs a descriptor for the key");
    }
    json_object_object_get_ex(request, "slot", &slot);
    *q = (struct resume){.d = d, .fd = TAKE_FD(*fd), .slot = (unsigned)json_object_get_int(slot)};
    return serve_job_start(
        d->jobs,
        &(struct serve_job){.name = "resume", .run = resume, .done = resume_done, .arg = q});
}
