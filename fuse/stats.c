/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* Counters of a mount: each thread adds to one of a few shards, so that cores do not fight for a
 * cache line; a snapshot adds the shards up. It is not one instant: requests go on meanwhile.
 *
 * Counting a request is three additions and a look at the longest time so far: the histogram of
 * latencies is also the count of requests. */

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

uint64_t serve_age_ns(const struct serve *s)
{
    return serve_clock() - s->began;
}

static void add(atomic_ullong *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* The largest so far; a loss to another thread's larger one ends it. */
static void raise_to(atomic_ullong *most, uint64_t n)
{
    unsigned long long seen = atomic_load_explicit(most, memory_order_relaxed);

    while (seen < n && !atomic_compare_exchange_weak_explicit(most, &seen, n, memory_order_relaxed,
                                                              memory_order_relaxed))
        ;
}

void serve_count(struct serve *s, enum serve_kind kind, uint64_t bytes, int r, uint64_t began)
{
    struct serve_shard *shard = &s->shards[serve_own_shard()];
    uint64_t ns;

    if (r < 0) {
        add(&shard->errors, 1);
        return;
    }
    ns = serve_clock() - began;
    add(&shard->kind[kind].bytes, bytes);
    add(&shard->kind[kind].ns, ns);
    add(&shard->kind[kind].latency[histogram_bucket(ns)], 1);
    raise_to(&shard->kind[kind].max_ns, ns);
}

static uint64_t get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void put(struct json_object *to, const char *key, uint64_t value)
{
    json_object_object_add(to, key, json_object_new_uint64(value));
}

/* One kind of request over all shards. */
struct sum {
    uint64_t n, bytes, ns, max_ns;
    uint64_t latency[HISTOGRAM_BUCKETS];
};

static void sum_up(struct sum *ret, struct serve *s, enum serve_kind kind)
{
    *ret = (struct sum){0};
    for (unsigned i = 0; i < SERVE_SHARDS; i++) {
        uint64_t max_ns = get(&s->shards[i].kind[kind].max_ns);

        ret->bytes += get(&s->shards[i].kind[kind].bytes);
        ret->ns += get(&s->shards[i].kind[kind].ns);
        ret->max_ns = max_ns > ret->max_ns ? max_ns : ret->max_ns;
        for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++)
            ret->latency[b] += get(&s->shards[i].kind[kind].latency[b]);
    }
    for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++)
        ret->n += ret->latency[b];
}

static void put_us(struct json_object *to, const char *key, uint64_t ns)
{
    put(to, key, (ns + 500) / 1000);
}

/* The middle of the last bucket may lie beyond the longest time. */
static uint64_t percentile(const struct sum *sum, unsigned percent)
{
    uint64_t ns = histogram_percentile(sum->latency, percent);

    return ns < sum->max_ns ? ns : sum->max_ns;
}

static struct json_object *kind_object(struct serve *s, enum serve_kind kind)
{
    struct json_object *o = json_object_new_object();
    struct sum sum;

    sum_up(&sum, s, kind);
    put(o, "requests", sum.n);
    put(o, "bytes", sum.bytes);
    put(o, "ns", sum.ns);
    put_us(o, "p50_us", percentile(&sum, 50));
    put_us(o, "p99_us", percentile(&sum, 99));
    put_us(o, "max_us", sum.max_ns);
    return o;
}

static struct json_object *latency_pairs(struct serve *s, enum serve_kind kind)
{
    struct json_object *pairs = json_object_new_array();
    struct sum sum;

    sum_up(&sum, s, kind);
    for (unsigned b = 0; b < HISTOGRAM_BUCKETS; b++) {
        struct json_object *pair;

        if (sum.latency[b] == 0)
            continue;
        pair = json_object_new_array_ext(2);
        json_object_array_add(pair, json_object_new_uint64(histogram_floor(b)));
        json_object_array_add(pair, json_object_new_uint64(sum.latency[b]));
        json_object_array_add(pairs, pair);
    }
    return pairs;
}

struct json_object *serve_latencies(struct serve *s)
{
    struct json_object *o = json_object_new_object();

    for (unsigned k = 0; k < SERVE_KINDS; k++)
        json_object_object_add(o, kind_names[k], latency_pairs(s, (enum serve_kind)k));
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
    uint64_t errors = 0;

    if (o == NULL)
        return NULL;
    vol_get_stats(s->vol, &v);
    for (unsigned i = 0; i < SERVE_SHARDS; i++)
        errors += get(&s->shards[i].errors);
    json_object_object_add(o, "name", json_object_new_string(s->name));
    put(o, "seconds", serve_age_ns(s) / 1000000000);
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
