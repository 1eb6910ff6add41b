/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* Requests while the image is held (serve_hold): what libfuse gave us is copied, so that its thread
 * goes on to the next request, and is done later by a few threads made for that.
 *
 * The kernel does not let go of a caller by itself, not even for SIGKILL: it sends FUSE_INTERRUPT
 * and waits for our answer. libfuse calls interrupted() in the thread that reads the interrupt, or
 * within fuse_req_interrupt_func() when the interrupt came first; the request must not be answered
 * there, since libfuse would go on with it. Both find out under the gate's lock who owns the
 * request: while it is kept the interrupt does, before and after it the thread that has it. */

#include "base/auto.h"
#include "base/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RUNNERS 8
#define LOOK_MS 100 /* between looks whether what runs waits for room */

struct held_request {
    struct serve_held held;
    struct serve *serve;
    struct serve_request request;
    char data[];
};

static struct held_request *request_copy(struct serve *s, const struct serve_request *q)
{
    size_t len = q->data != NULL ? q->len : 0;
    struct held_request *r = malloc(sizeof(*r) + len);

    if (r == NULL)
        return NULL;
    *r = (struct held_request){.held.bytes = sizeof(*r) + len, .serve = s, .request = *q};
    if (len > 0) {
        memcpy(r->data, q->data, len);
        r->request.data = r->data;
    }
    return r;
}

static void request_free(struct held_request *r)
{
    secret_wipe(r, r->held.bytes); /* plaintext */
    free(r);
}

static void interrupted(fuse_req_t req, void *arg)
{
    struct held_request *r = arg;

    if (!serve_hold_take(r->serve->hold, &r->held))
        return;
    fuse_reply_err(req, EINTR);
    request_free(r);
}

/* 0: r and its req may be gone already. Else as serve_hold_keep. */
static int keep(struct serve *s, const struct serve_request *q)
{
    struct held_request *r = request_copy(s, q);
    int err;

    if (r == NULL)
        return -ENOMEM;
    fuse_req_interrupt_func(q->req, interrupted, r);
    err = serve_hold_keep(s->hold, &r->held);
    if (err == 0)
        return 0;
    fuse_req_interrupt_func(q->req, NULL, NULL);
    request_free(r);
    return err;
}

void serve_submit(struct serve *s, const struct serve_request *q)
{
    int r = -EAGAIN;

    while (r == -EAGAIN) {
        r = serve_hold_enter(s->hold);
        if (r == 0) {
            serve_do(s, q);
            serve_hold_leave(s->hold);
            return;
        }
        if (r == -EAGAIN) {
            r = keep(s, q);
            if (r == 0)
                return;
        }
    }
    fuse_reply_err(q->req, -r);
}

static void run_kept(struct serve *s)
{
    struct serve_held *held;

    while ((held = serve_hold_next(s->hold)) != NULL) {
        struct held_request *r = container_of(held, struct held_request, held);

        fuse_req_interrupt_func(r->request.req, NULL, NULL); /* waits for one that is at it */
        serve_submit(s, &r->request);
        request_free(r);
    }
}

static void *runner(void *arg)
{
    struct serve *s = arg;

    run_kept(s);
    serve_thread_end(s);
    HOLD(&s->lock);
    s->n_runners--;
    pthread_cond_broadcast(&s->runner_ended);
    return NULL;
}

static bool start_runner(struct serve *s)
{
    HOLD(&s->lock);
    pthread_t thread;

    if (pthread_create(&thread, NULL, runner, s) != 0)
        return false;
    pthread_detach(thread);
    s->n_runners++;
    return true;
}

static bool waits_for_room(struct serve *s)
{
    struct vol_stats stats;

    vol_get_stats(s->vol, &stats);
    return stats.waiting_for_space > 0;
}

int serve_hold(struct serve *s, struct report *rep)
{
    serve_hold_shut(s->hold);
    while (!serve_hold_wait(s->hold, LOOK_MS))
        if (waits_for_room(s)) {
            serve_release(s);
            return report_error(rep, EBUSY,
                                "writes wait for room on the container's file system (make some "
                                "room, or unmount: what was not synced is lost then)");
        }
    return 0;
}

/* Not in this thread, if that can be: a write among them may come to wait for room on the host. */
void serve_release(struct serve *s)
{
    unsigned n = serve_hold_kept(s->hold), started = 0;

    serve_hold_lift(s->hold);
    while (started < n && started < RUNNERS && start_runner(s))
        started++;
    if (started == 0)
        run_kept(s);
}

void serve_give_up(struct serve *s, int err)
{
    serve_hold_fail(s->hold, err);
    run_kept(s);
}

unsigned serve_held(struct serve *s)
{
    return serve_hold_kept(s->hold);
}

void serve_held_end(struct serve *s)
{
    serve_give_up(s, -EIO);
    HOLD(&s->lock);
    while (s->n_runners > 0)
        pthread_cond_wait(&s->runner_ended, &s->lock);
}
