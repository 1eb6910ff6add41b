/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Work of the daemon that may last (suspend, resume, resize): one at a time, in a thread of its
 * own, so that the control socket is answered meanwhile. A request starts it and gets its number;
 * {"request": "job", "id": N} asks how it goes. */

#include "base/progress.h"
#include "base/report.h"

struct json_object;
struct serve_jobs;

struct serve_job {
    const char *name; /* "suspend"; lives as long as the daemon */
    /* In the job's thread. rep's words and progress's steps are for who asked; a step answers
     * -EINTR when the daemon ends or {"request": "job-cancel"} came. */
    int (*run)(void *arg, struct progress *progress, struct report *rep);
    void (*done)(void *arg); /* releases arg, after run and when it could not start; may be NULL */
    void *arg;
};

/* -ENOMEM. */
int serve_jobs_open(struct serve_jobs **ret);
/* Cancel what runs and wait for it. NULL is fine. */
void serve_jobs_close(struct serve_jobs *j);

/* All below in one thread, the control thread. */

/* Start it: the answer for who asked, {"ok": true, "id": N}, or why not: errno EBUSY when another
 * runs. */
struct json_object *serve_job_start(struct serve_jobs *j, const struct serve_job *job);
/* Answer "job": {"ok": true, "job": name, "running": bool, "done": bytes, "total": bytes, "words":
 * [{"level": "warning", "text": ...}, ...]}, and "result", an errno or 0, when it has ended. Of the
 * jobs before, the last few still answer: who asks may be slower than who starts the next. */
struct json_object *serve_job_answer(struct serve_jobs *j, struct json_object *request);
/* Answer "job-cancel". */
struct json_object *serve_job_cancel(struct serve_jobs *j, struct json_object *request);
