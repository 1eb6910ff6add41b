/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/job.c: one job at a time, whose words, steps and result are there to be asked for,
 * and which hears that it is to end. */

#include "fuse/job.h"
#include "lib/test.h"

#include <errno.h>
#include <json-c/json.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static atomic_uint n_run, n_done;
static sem_t go_on;

static int setup(void **state)
{
    (void)state;
    atomic_store(&n_run, 0);
    atomic_store(&n_done, 0);
    return sem_init(&go_on, 0, 0);
}

/* One step, then wait to be let on, then fail with words. */
static int fail_in_the_end(void *arg, struct progress *progress, struct report *rep)
{
    (void)arg;
    atomic_fetch_add(&n_run, 1);
    progress_step(progress, 30, 100);
    sem_wait(&go_on);
    report_warn(rep, "this first");
    return report_error(rep, EKEYREJECTED, "then that");
}

static int until_cancelled(void *arg, struct progress *progress, struct report *rep)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    (void)arg;
    (void)rep;
    while (progress_step(progress, 1, 2) == 0)
        nanosleep(&moment, NULL);
    atomic_fetch_add(&n_run, 1);
    return -EINTR;
}

static void done(void *arg)
{
    (void)arg;
    atomic_fetch_add(&n_done, 1);
}

static int64_t number(struct json_object *o, const char *key)
{
    struct json_object *v = NULL;

    return json_object_object_get_ex(o, key, &v) ? json_object_get_int64(v) : -1;
}

static int64_t start(struct serve_jobs *j, const struct serve_job *job)
{
    struct json_object *answer = serve_job_start(j, job);
    int64_t id = number(answer, "id");

    json_object_put(answer);
    return id;
}

static struct json_object *ask(struct serve_jobs *j, int64_t id)
{
    struct json_object *request = json_object_new_object(), *answer;

    json_object_object_add(request, "id", json_object_new_int64(id));
    answer = serve_job_answer(j, request);
    json_object_put(request);
    return answer;
}

static struct json_object *wait_until(struct serve_jobs *j, int64_t id, const char *key, int64_t v)
{
    const struct timespec moment = {.tv_nsec = 1000000};

    for (;;) {
        struct json_object *answer = ask(j, id);

        if (number(answer, key) == v)
            return answer;
        json_object_put(answer);
        nanosleep(&moment, NULL);
    }
}

static void it_tells_how_it_went(void **state)
{
    const struct serve_job job = {.name = "test", .run = fail_in_the_end, .done = done};
    struct json_object *answer, *words, *text;
    struct serve_jobs *j;
    int64_t id;

    (void)state;
    assert_int_equal(serve_jobs_open(&j), 0);
    id = start(j, &job);
    answer = wait_until(j, id, "done", 30);
    assert_int_equal(number(answer, "total"), 100);
    assert_int_equal(number(answer, "running"), 1);
    assert_int_equal(number(answer, "result"), -1);
    json_object_put(answer);
    sem_post(&go_on);
    answer = wait_until(j, id, "running", 0);
    assert_int_equal(number(answer, "result"), EKEYREJECTED);
    assert_true(json_object_object_get_ex(answer, "words", &words));
    assert_int_equal(json_object_array_length(words), 2);
    assert_true(json_object_object_get_ex(json_object_array_get_idx(words, 1), "text", &text));
    assert_string_equal(json_object_get_string(text), "then that");
    json_object_put(answer);
    assert_int_equal(atomic_load(&n_done), 1);
    serve_jobs_close(j);
}

static void a_second_one_is_refused(void **state)
{
    const struct serve_job job = {.name = "test", .run = fail_in_the_end, .done = done};
    struct json_object *answer;
    struct serve_jobs *j;
    int64_t id;

    (void)state;
    assert_int_equal(serve_jobs_open(&j), 0);
    id = start(j, &job);
    answer = serve_job_start(j, &job);
    assert_int_equal(number(answer, "errno"), EBUSY);
    json_object_put(answer);
    assert_int_equal(atomic_load(&n_done), 1); /* what the second one had is released */
    sem_post(&go_on);
    json_object_put(wait_until(j, id, "running", 0));
    sem_post(&go_on);
    assert_int_equal(start(j, &job), id + 1);
    answer = ask(j, id + 2);
    assert_int_equal(number(answer, "errno"), ENOENT);
    json_object_put(answer);
    serve_jobs_close(j);
    assert_int_equal(atomic_load(&n_run), 2);
    assert_int_equal(atomic_load(&n_done), 3);
}

static int count(void *arg, struct progress *progress, struct report *rep)
{
    (void)arg;
    (void)progress;
    return report_error(rep, (int)atomic_fetch_add(&n_run, 1) + 1, "this one's");
}

static void one_that_ended_answers_when_others_have_started(void **state)
{
    const struct serve_job job = {.name = "test", .run = count};
    struct json_object *answer, *words;
    struct serve_jobs *j;

    (void)state;
    assert_int_equal(serve_jobs_open(&j), 0);
    for (int64_t id = 1; id <= 20; id++) {
        assert_int_equal(start(j, &job), id);
        json_object_put(wait_until(j, id, "running", 0));
        for (int64_t old = id > 4 ? id - 4 : 1; old <= id; old++) {
            answer = ask(j, old);
            assert_int_equal(number(answer, "running"), 0);
            assert_int_equal(number(answer, "result"), old);
            assert_true(json_object_object_get_ex(answer, "words", &words));
            assert_int_equal(json_object_array_length(words), 1);
            json_object_put(answer);
        }
    }
    for (int64_t id = -1; id <= 21; id += id == 1 ? 20 : 1) { /* long ago, and never */
        answer = ask(j, id);
        assert_int_equal(number(answer, "errno"), ENOENT);
        json_object_put(answer);
    }
    serve_jobs_close(j);
}

static void cancel_and_close_are_heard(void **state)
{
    const struct serve_job job = {.name = "test", .run = until_cancelled};
    struct json_object *request = json_object_new_object();
    struct serve_jobs *j;
    int64_t id;

    (void)state;
    assert_int_equal(serve_jobs_open(&j), 0);
    id = start(j, &job);
    json_object_object_add(request, "id", json_object_new_int64(id));
    json_object_put(serve_job_cancel(j, request));
    json_object_put(request);
    json_object_put(wait_until(j, id, "running", 0));
    assert_int_equal(start(j, &job), id + 1);
    serve_jobs_close(j);
    assert_int_equal(atomic_load(&n_run), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(it_tells_how_it_went, setup),
        cmocka_unit_test_setup(a_second_one_is_refused, setup),
        cmocka_unit_test_setup(one_that_ended_answers_when_others_have_started, setup),
        cmocka_unit_test_setup(cancel_and_close_are_heard, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
