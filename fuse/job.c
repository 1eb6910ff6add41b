/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/job.h"

#include "base/auto.h"
#include "fuse/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 16 /* lines kept of one job; later ones push the first out */
#define ENDED 8  /* jobs before the last one whose answers are kept */

struct serve_jobs {
    pthread_mutex_t lock;
    /* all below under the lock, but what is said to be the control thread's */
    struct serve_job job;
    int64_t id;
    bool running, cancel, end;
    int result;
    uint64_t done, total;
    unsigned n_words;
    enum report_level level[WORDS];
    char words[WORDS][REPORT_LINE];
    struct progress progress;
    struct report rep;
    pthread_t thread; /* the control thread's */
    bool started;     /* the control thread's: the thread is to be joined */
    /* The control thread's: what job N would answer, at N % ENDED; who started it may be slower
     * than the next to start one. */
    struct json_object *ended[ENDED];
};

static int step(struct progress *p, uint64_t done, uint64_t total)
{
    struct serve_jobs *j = container_of(p, struct serve_jobs, progress);
    HOLD(&j->lock);

    j->done = done;
    j->total = total;
    return j->cancel || j->end ? -EINTR : 0;
}

static void say(struct report *rep, enum report_level level, const char *text)
{
    struct serve_jobs *j = container_of(rep, struct serve_jobs, rep);
    HOLD(&j->lock);

    j->level[j->n_words % WORDS] = level;
    strcpy(j->words[j->n_words++ % WORDS], text); /* at most REPORT_LINE, as all reports */
}

int serve_jobs_open(struct serve_jobs **ret)
{
    struct serve_jobs *j = calloc(1, sizeof(*j));

    if (j == NULL)
        return -ENOMEM;
    pthread_mutex_init(&j->lock, NULL);
    j->progress.step = step;
    j->rep.say = say;
    *ret = j;
    return 0;
}

static void join(struct serve_jobs *j)
{
    if (j->started)
        pthread_join(j->thread, NULL);
    j->started = false;
}

void serve_jobs_close(struct serve_jobs *j)
{
    if (j == NULL)
        return;
    pthread_mutex_lock(&j->lock);
    j->end = true;
    pthread_mutex_unlock(&j->lock);
    join(j);
    for (unsigned i = 0; i < ENDED; i++)
        json_object_put(j->ended[i]);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static void *run(void *arg)
{
    struct serve_jobs *j = arg;
    struct serve_job job;
    int r;

    pthread_mutex_lock(&j->lock);
    job = j->job;
    pthread_mutex_unlock(&j->lock);
    r = job.run(job.arg, &j->progress, &j->rep);
    if (job.done != NULL)
        job.done(job.arg);
    HOLD(&j->lock);
    j->result = r;
    j->running = false;
    return NULL;
}

static const char *running(struct serve_jobs *j)
{
    HOLD(&j->lock);
    return j->running ? j->job.name : NULL;
}

/* The lock is held in the two below. */
static struct json_object *words_of(const struct serve_jobs *j)
{
    static const char *const names[] = {
        [REPORT_INFO] = "info", [REPORT_WARN] = "warning", [REPORT_ERROR] = "error"};
    struct json_object *all = json_object_new_array();

    for (unsigned i = j->n_words > WORDS ? j->n_words - WORDS : 0; i < j->n_words; i++) {
        struct json_object *o = json_object_new_object();

        json_object_object_add(o, "level", json_object_new_string(names[j->level[i % WORDS]]));
        json_object_object_add(o, "text", json_object_new_string(j->words[i % WORDS]));
        json_object_array_add(all, o);
    }
    return all;
}

/* What to answer about the last job. */
static struct json_object *describe(const struct serve_jobs *j)
{
    struct json_object *o = serve_control_answer(NULL);

    json_object_object_add(o, "job", json_object_new_string(j->job.name));
    json_object_object_add(o, "running", json_object_new_boolean(j->running));
    json_object_object_add(o, "done", json_object_new_uint64(j->done));
    json_object_object_add(o, "total", json_object_new_uint64(j->total));
    json_object_object_add(o, "words", words_of(j));
    if (!j->running)
        json_object_object_add(o, "result", json_object_new_int(-j->result));
    return o;
}

static void reset(struct serve_jobs *j, const struct serve_job *job)
{
    HOLD(&j->lock);
    struct json_object **last = &j->ended[j->id % ENDED];

    json_object_put(*last);
    *last = j->id > 0 ? describe(j) : NULL;
    j->job = *job;
    j->id++;
    j->running = true;
    j->cancel = false;
    j->result = 0;
    j->done = j->total = 0;
    j->n_words = 0;
}

static void give_back(const struct serve_job *job)
{
    if (job->done != NULL)
        job->done(job->arg);
}

struct json_object *serve_job_start(struct serve_jobs *j, const struct serve_job *job)
{
    const char *other = running(j);
    struct json_object *o;
    int r;

    if (other != NULL) {
        char words[128];

        snprintf(words, sizeof(words), "busy: a %s is running (wait for its end)", other);
        give_back(job);
        return serve_control_refuse(EBUSY, words);
    }
    join(j);
    reset(j, job);
    r = pthread_create(&j->thread, NULL, run, j);
    if (r != 0) {
        HOLD(&j->lock);

        j->running = false;
        j->result = -r;
        give_back(job);
        return serve_control_refuse(r, "cannot start a thread");
    }
    j->started = true;
    o = serve_control_answer(NULL);
    json_object_object_add(o, "id", json_object_new_int64(j->id));
    return o;
}

/* The lock is held. */
static bool is_meant(const struct serve_jobs *j, struct json_object *request)
{
    struct json_object *id;

    return j->id > 0 && json_object_object_get_ex(request, "id", &id) &&
           json_object_get_int64(id) == j->id;
}

struct json_object *serve_job_answer(struct serve_jobs *j, struct json_object *request)
{
    HOLD(&j->lock);
    struct json_object *v = NULL;
    int64_t id;

    json_object_object_get_ex(request, "id", &v);
    id = json_object_get_int64(v);
    if (id > 0 && id == j->id)
        return describe(j);
    if (id > 0 && id < j->id && id >= j->id - ENDED)
        return json_object_get(j->ended[id % ENDED]);
    return serve_control_refuse(ENOENT, "no such job");
}

struct json_object *serve_job_cancel(struct serve_jobs *j, struct json_object *request)
{
    HOLD(&j->lock);

    if (!is_meant(j, request))
        return serve_control_refuse(ENOENT, "no such job");
    j->cancel = true;
    return serve_control_answer(NULL);
}
