/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What daemon.c and the answers on its socket share: one mount and all that belongs to it. */

#include "fuse/control.h"
#include "fuse/daemon.h"
#include "fuse/detach.h"
#include "fuse/guard.h"
#include "fuse/job.h"
#include "fuse/registry.h"

#include <pthread.h>

struct daemon {
    const struct serve_daemon_spec *spec;
    struct serve_spec serve_spec;
    struct serve_detach *detach;
    struct report *rep; /* the user's, until the terminal is left */
    struct report log;  /* syslog, or stderr in the foreground */
    struct serve_folder folder;
    struct serve_slot *slot;
    struct serve_guard *guard;
    struct volume *vol;
    struct serve *serve;
    struct serve_control *control;
    struct serve_jobs *jobs;
    struct serve_record record;
    pthread_mutex_t record_lock; /* once there are threads; never held for long */
    struct serve_daemon_result result;
    bool made_mountpoint;
    int signals, wake; /* signalfd; eventfd that ends the control thread */
    bool stop;         /* the control thread's: a signal or request came */
    bool was_busy;     /* somebody had the image open when we stopped */
    bool left_mounted; /* the guard was gone, and nobody else may unmount */
    pthread_t controller;
    bool controlling;
};

/* {"request": "slot", ...} (fuse/patch.h), which starts a job. In the control thread. */
struct json_object *serve_answer_slot(struct daemon *d, struct json_object *request);
/* "suspend" and "resume", which start jobs (fuse/job.h), too. *fd: what the volume's key is read
 * from. */
struct json_object *serve_answer_suspend(struct daemon *d);
struct json_object *serve_answer_resume(struct daemon *d, struct json_object *request, int *fd);

/* Answer a request on the control socket; arg is the struct daemon. In the control thread. */
serve_control_fn serve_answer;
