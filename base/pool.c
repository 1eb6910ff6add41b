/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pool.h"

/* A batch lives on its caller's stack and is linked into the pool's queue while it has pieces to
 * start. Pieces are given out by an atomic counter; the mutex guards only the queue and the count
 * of threads inside a batch, so it is taken twice a batch by the caller and twice by each worker
 * that joins, never for a piece. Batches below the threshold of the engine never come here at all.
 *
 * Invariants:
 *  1. A worker touches a batch only between n_inside++ and n_inside--, both under the lock.
 *  2. The caller returns only when every piece is finished and n_inside is 0.
 *  3. A batch leaves the queue when its last piece was started, by whoever notices first.
 *
 * Who has to wait for another's last piece does a job meanwhile, when there is one: the other is
 * done by then, and no core was idle.
 *
 * Waking a sleeper costs 5 to 50 us in a virtual machine, so both sides spin a moment before they
 * sleep: as long as a piece of 64 KiB takes, no longer, for on few cores spinning takes time from
 * those who work. */

#include "base/auto.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#define SPINS 400 /* about 10 us of pause instructions */

struct batch {
    pool_fn *fn;
    void *arg;
    unsigned n_pieces;
    atomic_uint next; /* the next piece to start */
    atomic_uint
        inside; /* workers inside; changed under the pool's lock, read by a spinning caller */
    atomic_uint failed;   /* lowest piece that failed so far, or UINT_MAX */
    int error;            /* of that piece; under the lock */
    bool queued;          /* under the lock */
    struct batch *after;  /* under the lock */
    pthread_cond_t alone; /* nobody inside any more */
};

struct pool {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct batch *first, **last;
    struct pool_job *first_job, *last_job;
    atomic_uint n_queued; /* batches and jobs, for spinning workers */
    unsigned n_asleep;
    bool stop;
    unsigned n_threads;
    atomic_ullong n_batches, n_pieces, n_pieces_worker;
    unsigned n_workers;
    pthread_t workers[];
};

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Run pieces until none is left to start; returns how many. */
static unsigned work_on(struct pool *p, struct batch *b)
{
    unsigned done = 0;
    unsigned piece;

    while (atomic_load_explicit(&b->failed, memory_order_relaxed) == UINT_MAX &&
           (piece = atomic_fetch_add(&b->next, 1)) < b->n_pieces) {
        int r = b->fn(b->arg, piece);

        done++;
        if (r < 0) {
            HOLD(&p->lock);
            if (piece < atomic_load(&b->failed)) {
                atomic_store(&b->failed, piece);
                b->error = r;
            }
        }
    }
    return done;
}

/* The lock is held. */
static void enqueue(struct pool *p, struct batch *b)
{
    b->queued = true;
    b->after = NULL;
    *p->last = b;
    p->last = &b->after;
    atomic_fetch_add(&p->n_queued, 1);
}

/* The lock is held. */
static void dequeue(struct pool *p, struct batch *b)
{
    struct batch **at = &p->first;

    if (!b->queued)
        return;
    while (*at != b)
        at = &(*at)->after;
    *at = b->after;
    if (p->last == &b->after)
        p->last = at;
    b->queued = false;
    atomic_fetch_sub(&p->n_queued, 1);
}

/* The lock is held; it is let go while working. */
static void join(struct pool *p, struct batch *b)
{
    unsigned done;

    atomic_fetch_add(&b->inside, 1);
    pthread_mutex_unlock(&p->lock);
    done = work_on(p, b);
    atomic_fetch_add_explicit(&p->n_pieces_worker, done, memory_order_relaxed);
    pthread_mutex_lock(&p->lock);
    dequeue(p, b);
    if (atomic_fetch_sub(&b->inside, 1) == 1)
        pthread_cond_signal(&b->alone);
}

/* The lock is held. */
static void job_dequeue(struct pool *p, struct pool_job *job)
{
    if (job->before != NULL)
        job->before->after = job->after;
    else
        p->first_job = job->after;
    if (job->after != NULL)
        job->after->before = job->before;
    else
        p->last_job = job->before;
    job->queued = false;
    atomic_fetch_sub(&p->n_queued, 1);
}

/* The lock is held; it is let go while working. */
static void run_job(struct pool *p, struct pool_job *job)
{
    void (*fn)(void *) = job->fn;
    void *arg = job->arg;

    job_dequeue(p, job);
    pthread_mutex_unlock(&p->lock);
    fn(arg);
    pthread_mutex_lock(&p->lock);
}

void pool_submit(struct pool *p, struct pool_job *job)
{
    HOLD(&p->lock);
    job->before = p->last_job;
    job->after = NULL;
    if (p->last_job != NULL)
        p->last_job->after = job;
    else
        p->first_job = job;
    p->last_job = job;
    job->queued = true;
    atomic_fetch_add(&p->n_queued, 1);
    if (p->n_asleep > 0)
        pthread_cond_signal(&p->work);
}

bool pool_cancel(struct pool *p, struct pool_job *job)
{
    HOLD(&p->lock);
    if (!job->queued)
        return false;
    job_dequeue(p, job);
    return true;
}

bool pool_help(struct pool *p)
{
    if (atomic_load(&p->n_queued) == 0)
        return false;
    HOLD(&p->lock);
    if (p->first_job == NULL)
        return false;
    run_job(p, p->first_job);
    return true;
}

static void spin_for_work(struct pool *p)
{
    for (unsigned i = 0; i < SPINS && atomic_load_explicit(&p->n_queued, memory_order_relaxed) == 0;
         i++)
        relax();
}

static void *worker(void *arg)
{
    struct pool *p = arg;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        if (p->first != NULL || p->first_job != NULL) {
            if (p->first != NULL)
                join(p, p->first);
            else
                run_job(p, p->first_job);
            pthread_mutex_unlock(&p->lock);
            spin_for_work(p);
            pthread_mutex_lock(&p->lock);
        } else {
            p->n_asleep++;
            pthread_cond_wait(&p->work, &p->lock);
            p->n_asleep--;
        }
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Wait until no worker is inside b, which is no longer in the queue when this returns. */
static void wait_alone(struct pool *p, struct batch *b)
{
    pthread_mutex_lock(&p->lock);
    dequeue(p, b);
    pthread_mutex_unlock(&p->lock);
    if (atomic_load(&b->inside) != 0)
        pool_help(p); /* once: a worker may be waiting for this very core */
    for (unsigned i = 0; i < SPINS && atomic_load(&b->inside) != 0; i++)
        relax();
    HOLD(&p->lock);
    while (atomic_load(&b->inside) != 0)
        pthread_cond_wait(&b->alone, &p->lock);
}

static int run_alone(pool_fn *fn, void *arg, unsigned n_pieces)
{
    for (unsigned i = 0; i < n_pieces; i++) {
        int r = fn(arg, i);

        if (r < 0)
            return r;
    }
    return 0;
}

int pool_run(struct pool *p, pool_fn *fn, void *arg, unsigned n_pieces)
{
    struct batch b = {.fn = fn, .arg = arg, .n_pieces = n_pieces, .failed = UINT_MAX};

    if (p == NULL || n_pieces < 2)
        return run_alone(fn, arg, n_pieces);
    pthread_cond_init(&b.alone, NULL);
    pthread_mutex_lock(&p->lock);
    enqueue(p, &b);
    for (unsigned i = 0; i < p->n_asleep && i < n_pieces - 1; i++)
        pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);

    work_on(p, &b);
    wait_alone(p, &b);
    pthread_cond_destroy(&b.alone);
    atomic_fetch_add_explicit(&p->n_batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&p->n_pieces, n_pieces, memory_order_relaxed);
    return atomic_load(&b.failed) == UINT_MAX ? 0 : b.error;
}

/* Signals are for the thread that asked for them: a worker takes none. */
static int start_worker(pthread_t *ret, struct pool *p)
{
    sigset_t all, old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    r = pthread_create(ret, NULL, worker, p);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return r;
}

int pool_open(struct pool **ret, unsigned n_threads, struct report *rep)
{
    unsigned n_workers = n_threads > 1 ? n_threads - 1 : 0;
    struct pool *p;

    if (n_workers == 0) {
        *ret = NULL;
        return 0;
    }
    p = calloc(1, sizeof(*p) + n_workers * sizeof(pthread_t));
    if (p == NULL)
        return -ENOMEM;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    p->last = &p->first;
    p->n_threads = n_threads;
    for (; p->n_workers < n_workers; p->n_workers++) {
        int r = start_worker(&p->workers[p->n_workers], p);

        if (r != 0) {
            pool_close(p);
            return report_errno(rep, r, "cannot start worker thread %u of %u", p->n_workers + 1,
                                n_workers);
        }
    }
    *ret = p;
    return 0;
}

void pool_close(struct pool *p)
{
    if (p == NULL)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->n_workers; i++)
        pthread_join(p->workers[i], NULL);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void pool_get_stats(struct pool *p, struct pool_stats *ret)
{
    *ret = (struct pool_stats){.n_threads = 1};
    if (p == NULL)
        return;
    ret->n_threads = p->n_threads;
    ret->n_batches = atomic_load(&p->n_batches);
    ret->n_pieces = atomic_load(&p->n_pieces);
    ret->n_pieces_worker = atomic_load(&p->n_pieces_worker);
}
