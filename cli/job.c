/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/job.h"

#include "cli/progress.h"
#include "fuse/control.h"

#include <errno.h>
#include <json-c/json.h>
#include <poll.h>
#include <string.h>

#define LOOK_FIRST_MS 2
#define LOOK_MAX_MS 200

static struct json_object *member(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;

    json_object_object_get_ex(o, key, &v);
    return v;
}

static int ask(struct json_object **ret, const struct serve_found *f, const char *word, int64_t id,
               struct report *rep)
{
    struct json_object *request = json_object_new_object();

    json_object_object_add(request, "id", json_object_new_int64(id));
    return serve_control_ask(ret, f, word, request, rep);
}

/* At the end: the daemon's words become ours. The last error explains the result. */
static int pass_on(struct json_object *answer, struct report *rep)
{
    struct json_object *words = member(answer, "words");
    int result = json_object_get_int(member(answer, "result"));
    size_t n = json_object_get_type(words) == json_type_array ? json_object_array_length(words) : 0;

    for (size_t i = 0; i < n; i++) {
        struct json_object *line = json_object_array_get_idx(words, i);
        const char *level = json_object_get_string(member(line, "level"));
        const char *text = json_object_get_string(member(line, "text"));

        if (level == NULL || text == NULL)
            continue;
        if (strcmp(level, "error") == 0)
            report_error(rep, result, "%s", text);
        else if (strcmp(level, "warning") == 0)
            report_warn(rep, "%s", text);
        else
            report_info(rep, "%s", text);
    }
    return result > 0 ? -result : 0;
}

/* Asked to stop, the job says itself how it ended: we go on asking. */
static void look(const struct serve_found *f, int64_t id, struct progress *p,
                 struct json_object *answer, bool *cancelled)
{
    struct json_object *ok;

    if (*cancelled || progress_step(p, json_object_get_uint64(member(answer, "done")),
                                    json_object_get_uint64(member(answer, "total"))) == 0)
        return;
    *cancelled = true;
    if (ask(&ok, f, "job-cancel", id, NULL) == 0)
        json_object_put(ok);
}

static int wait_for_end(const struct serve_found *f, int64_t id, struct progress *p,
                        struct report *rep)
{
    bool cancelled = false;
    int ms = LOOK_FIRST_MS;

    for (;;) {
        struct json_object *answer;
        int r = ask(&answer, f, "job", id, rep);

        if (r < 0)
            return r;
        if (!json_object_get_boolean(member(answer, "running"))) {
            r = pass_on(answer, rep);
            json_object_put(answer);
            return r;
        }
        look(f, id, p, answer, &cancelled);
        json_object_put(answer);
        poll(NULL, 0, ms);
        ms = ms * 2 < LOOK_MAX_MS ? ms * 2 : LOOK_MAX_MS;
    }
}

int cmd_job_run(const struct serve_found *f, const struct cmd_job *job, struct report *rep)
{
    struct json_object *answer;
    struct cmd_progress progress;
    int64_t id;
    int r = serve_control_ask_with(&answer, f, job->word, job->more, job->fd, rep);

    if (r < 0)
        return r;
    id = json_object_get_int64(member(answer, "id"));
    json_object_put(answer);
    cmd_progress_start(&progress, job->doing);
    r = wait_for_end(f, id, &progress.progress, rep);
    cmd_progress_end(&progress, r);
    return r;
}
