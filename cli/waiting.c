/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/waiting.h"

#include "base/auto.h"
#include "fuse/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <time.h>

#define LOOK_MS 500 /* and the second look must see it too: it may be over in a moment */

struct cmd_waiting {
    const struct serve_found *found;
    struct report *rep;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stop;    /* under the lock */
    bool gave_up; /* under the lock */
};

static bool stopped_after_a_while(struct cmd_waiting *w)
{
    HOLD(&w->lock);
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    while (!w->stop && pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0)
        ;
    return w->stop;
}

static bool somebody_waits(const struct serve_found *f)
{
    struct json_object *answer, *v;
    bool waits;

    if (serve_control_ask(&answer, f, "status", NULL, NULL) < 0)
        return false;
    waits =
        json_object_object_get_ex(answer, "waiting_for_space", &v) && json_object_get_int64(v) > 0;
    json_object_put(answer);
    return waits;
}

bool cmd_waiting_give_up(struct cmd_waiting *w)
{
    HOLD(&w->lock);
    struct json_object *answer;

    if (w->gave_up || !somebody_waits(w->found))
        return w->gave_up;
    w->gave_up = true;
    report_warn(w->rep, "writes wait for room on the host: they are given up, and what was never "
                        "synced is lost");
    if (serve_control_ask(&answer, w->found, "give-up-waiting", NULL, w->rep) == 0)
        json_object_put(answer);
    return true;
}

static void *watch(void *arg)
{
    struct cmd_waiting *w = arg;
    unsigned seen = 0;

    while (seen < 2) {
        seen = somebody_waits(w->found) ? seen + 1 : 0;
        if (stopped_after_a_while(w))
            return NULL;
    }
    cmd_waiting_give_up(w);
    return NULL;
}

int cmd_waiting_start(struct cmd_waiting **ret, const struct serve_found *f, struct report *rep)
{
    struct cmd_waiting *w = calloc(1, sizeof(*w));
    int r;

    if (w == NULL)
        return report_errno(rep, ENOMEM, "cannot unmount");
    w->found = f;
    w->rep = rep;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    r = pthread_create(&w->thread, NULL, watch, w);
    if (r != 0) {
        free(w);
        return report_errno(rep, r, "cannot unmount");
    }
    *ret = w;
    return 0;
}

void cmd_waiting_stop(struct cmd_waiting *w)
{
    if (w == NULL)
        return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
