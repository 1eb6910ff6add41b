/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* Counters of a mount: each thread adds to one of a few shards, so that cores do not fight for a
 * cache line; a snapshot adds the shards up. It is not one instant: requests go on meanwhile. */

static const char *const kind_names[SERVE_KINDS] = {
    [SERVE_READ] = "read",       [SERVE_WRITE] = "write", [SERVE_FLUSH] = "flush",
    [SERVE_DISCARD] = "discard", [SERVE_ZERO] = "zero",
};

uint64_t serve_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct serve_shard *own_shard(struct serve *s)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned mine; /* 0: not numbered yet */

    if (mine == 0)
        mine = atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) % SERVE_SHARDS + 1;
    return &s->shards[mine - 1];
}

static void add(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

void serve_count(struct serve *s, enum serve_kind kind, uint64_t bytes, int r, uint64_t began)
{
    struct serve_shard *shard = own_shard(s);

    if (r < 0) {
        add(&shard->errors, 1);
        return;
    }
    add(&shard->kind[kind].n, 1);
    add(&shard->kind[kind].bytes, bytes);
    add(&shard->kind[kind].ns, serve_clock() - began);
}

static uint64_t get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put(struct json_object *to, const char *key, uint64_t value)
{
    json_object_object_add(to, key, json_object_new_uint64(value));
}

static struct json_object *kind_object(struct serve *s, enum serve_kind kind)
{
    struct json_object *o = json_object_new_object();
    uint64_t n = 0, bytes = 0, ns = 0;

    for (unsigned i = 0; i < SERVE_SHARDS; i++) {
        n += get(&s->shards[i].kind[kind].n);
        bytes += get(&s->shards[i].kind[kind].bytes);
        ns += get(&s->shards[i].kind[kind].ns);
    }
    put(o, "requests", n);
    put(o, "bytes", bytes);
    put(o, "ns", ns);
    return o;
}

static struct json_object *cipher_object(const struct vol_stats *v)
{
    struct json_object *o = json_object_new_object();

    put(o, "ns", v->cipher_ns);
    put(o, "bytes_enciphered", v->bytes_enciphered);
    put(o, "bytes_deciphered", v->bytes_deciphered);
    return o;
}

static struct json_object *pool_object(const struct vol_stats *v)
{
    struct json_object *o = json_object_new_object();

    put(o, "batches", v->pool_batches);
    put(o, "pieces", v->pool_pieces);
    put(o, "pieces_by_workers", v->pool_pieces_worker);
    return o;
}

static struct json_object *readahead_object(const struct vol_stats *v)
{
    struct json_object *o = json_object_new_object();

    put(o, "bytes_prepared", v->readahead_prepared);
    put(o, "bytes_used", v->readahead_used);
    put(o, "bytes_wasted", v->readahead_wasted);
    return o;
}

struct json_object *serve_stats(struct serve *s)
{
    struct json_object *o = json_object_new_object();
    struct vol_stats v = {0};
    struct timespec now;
    uint64_t errors = 0;

    if (o == NULL)
        return NULL;
    vol_get_stats(s->vol, &v);
    clock_gettime(CLOCK_MONOTONIC, &now);
    for (unsigned i = 0; i < SERVE_SHARDS; i++)
        errors += get(&s->shards[i].errors);
    json_object_object_add(o, "name", json_object_new_string(s->name));
    put(o, "seconds", (uint64_t)(now.tv_sec - s->since.tv_sec));
    for (unsigned k = 0; k < SERVE_KINDS; k++)
        json_object_object_add(o, kind_names[k], kind_object(s, (enum serve_kind)k));
    put(o, "errors", errors);
    put(o, "opens", serve_opens(s));
    put(o, "waiting_for_space", v.waiting_for_space);
    json_object_object_add(o, "cipher", cipher_object(&v));
    json_object_object_add(o, "pool", pool_object(&v));
    json_object_object_add(o, "readahead", readahead_object(&v));
    return o;
}
