/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/stat_sample.h"

/* Percentiles of an interval come from the difference of two histograms; the daemon's own are since
 * the mount. The daemon may be another version than this program, so ranges of latencies travel
 * with where they begin and are put into ours. */

#include <errno.h>
#include <stdio.h>

static int get(uint64_t *ret, struct json_object *from, const char *key)
{
    struct json_object *v;

    if (!json_object_object_get_ex(from, key, &v) || json_object_get_type(v) != json_type_int)
        return -EBADMSG;
    *ret = json_object_get_uint64(v);
    return 0;
}

/* NULL when there is none of that name and type. */
static struct json_object *member(struct json_object *from, const char *key, enum json_type type)
{
    struct json_object *v = NULL;

    json_object_object_get_ex(from, key, &v);
    return json_object_get_type(v) == type ? v : NULL;
}

static int decode_latency(struct stat_kind *ret, struct json_object *pairs)
{
    size_t n = json_object_array_length(pairs);

    for (size_t i = 0; i < n; i++) {
        struct json_object *pair = json_object_array_get_idx(pairs, i);

        if (json_object_get_type(pair) != json_type_array || json_object_array_length(pair) != 2)
            return -EBADMSG;
        ret->latency[histogram_bucket(
            json_object_get_uint64(json_object_array_get_idx(pair, 0)))] +=
            json_object_get_uint64(json_object_array_get_idx(pair, 1));
    }
    return 0;
}

static int decode_kind(struct stat_kind *ret, struct json_object *stats,
                       struct json_object *latencies, const char *name)
{
    struct json_object *kind = member(stats, name, json_type_object);
    struct json_object *pairs = member(latencies, name, json_type_array);

    if (kind == NULL || pairs == NULL || get(&ret->n, kind, "requests") < 0 ||
        get(&ret->bytes, kind, "bytes") < 0 || get(&ret->ns, kind, "ns") < 0)
        return -EBADMSG;
    return decode_latency(ret, pairs);
}

int stat_sample_decode(struct stat_sample *ret, struct json_object *answer, pid_t pid)
{
    struct stat_sample s = {.pid = pid};
    struct json_object *stats = member(answer, "stats", json_type_object);
    struct json_object *latencies = member(answer, "latencies", json_type_object);
    const struct {
        uint64_t *to;
        const char *in, *key; /* in: a member of stats, or NULL for stats itself */
    } counters[] = {
        {&s.flushes, "flush", "requests"},
        {&s.errors, NULL, "errors"},
        {&s.waiting_for_space, NULL, "waiting_for_space"},
        {&s.cipher_ns, "cipher", "ns"},
        {&s.pieces, "pool", "pieces"},
        {&s.pieces_by_workers, "pool", "pieces_by_workers"},
        {&s.readahead_prepared, "readahead", "bytes_prepared"},
        {&s.readahead_used, "readahead", "bytes_used"},
        {&s.readahead_wasted, "readahead", "bytes_wasted"},
    };

    if (stats == NULL || latencies == NULL || get(&s.age_ns, answer, "age_ns") < 0 ||
        decode_kind(&s.read, stats, latencies, "read") < 0 ||
        decode_kind(&s.write, stats, latencies, "write") < 0)
        return -EBADMSG;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
        struct json_object *in =
            counters[i].in != NULL ? member(stats, counters[i].in, json_type_object) : stats;

        if (in == NULL || get(counters[i].to, in, counters[i].key) < 0)
            return -EBADMSG;
    }
    *ret = s;
    return 0;
}

/* A snapshot is not one instant, so a counter may seem to go back a little; that is nothing. */
static uint64_t gain(uint64_t before, uint64_t now)
{
    return now > before ? now - before : 0;
}

static double share(uint64_t part, uint64_t whole)
{
    if (whole == 0)
        return -1;
    return part < whole ? (double)part / (double)whole : 1;
}

static struct stat_flow flow(const struct stat_kind *before, const struct stat_kind *now,
                             double seconds)
{
    struct stat_flow f = {.n = gain(before->n, now->n), .bytes = gain(before->bytes, now->bytes)};
    uint64_t latency[HISTOGRAM_BUCKETS];

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        latency[i] = gain(before->latency[i], now->latency[i]);
    f.n_per_s = (double)f.n / seconds;
    f.mb_per_s = (double)f.bytes / seconds / 1e6;
    f.avg_us = f.n > 0 ? (double)gain(before->ns, now->ns) / (double)f.n / 1e3 : 0;
    f.p50_us = (double)histogram_percentile(latency, 50) / 1e3;
    f.p99_us = (double)histogram_percentile(latency, 99) / 1e3;
    return f;
}

void stat_difference(struct stat_interval *ret, const struct stat_sample *before,
                     const struct stat_sample *now)
{
    static const struct stat_sample nothing;
    bool anew = before == NULL || before->pid != now->pid || before->age_ns > now->age_ns;
    const struct stat_sample *b = anew ? &nothing : before;
    uint64_t ns = now->age_ns - b->age_ns;
    double seconds = (double)(ns > 0 ? ns : 1) / 1e9;

    *ret = (struct stat_interval){
        .since_mount = anew,
        .seconds = seconds,
        .read = flow(&b->read, &now->read, seconds),
        .write = flow(&b->write, &now->write, seconds),
        .flushes = gain(b->flushes, now->flushes),
        .errors = gain(b->errors, now->errors),
        .flushes_per_s = (double)gain(b->flushes, now->flushes) / seconds,
        .cipher_cores = (double)gain(b->cipher_ns, now->cipher_ns) / 1e9 / seconds,
        .readahead_hit = share(gain(b->readahead_used, now->readahead_used),
                               gain(b->read.bytes, now->read.bytes)),
        .readahead_waste = share(gain(b->readahead_wasted, now->readahead_wasted),
                                 gain(b->readahead_prepared, now->readahead_prepared)),
        .by_workers =
            share(gain(b->pieces_by_workers, now->pieces_by_workers), gain(b->pieces, now->pieces)),
        .waiting_for_space = now->waiting_for_space,
    };
}

/* What is printed of a double, and not its 17 digits. */
static void put(struct json_object *to, const char *key, double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.3f", value);
    json_object_object_add(to, key, value < 0 ? NULL : json_object_new_double_s(value, text));
}

static void put_count(struct json_object *to, const char *key, uint64_t value)
{
    json_object_object_add(to, key, json_object_new_uint64(value));
}

static struct json_object *flow_json(const struct stat_flow *f)
{
    struct json_object *o = json_object_new_object();

    put_count(o, "requests", f->n);
    put_count(o, "bytes", f->bytes);
    put(o, "per_s", f->n_per_s);
    put(o, "mb_per_s", f->mb_per_s);
    put(o, "avg_us", f->avg_us);
    put(o, "p50_us", f->p50_us);
    put(o, "p99_us", f->p99_us);
    return o;
}

struct json_object *stat_interval_json(const struct stat_interval *i)
{
    struct json_object *o = json_object_new_object();

    json_object_object_add(o, "since_mount", json_object_new_boolean(i->since_mount));
    put(o, "seconds", i->seconds);
    json_object_object_add(o, "read", flow_json(&i->read));
    json_object_object_add(o, "write", flow_json(&i->write));
    put_count(o, "flushes", i->flushes);
    put(o, "flushes_per_s", i->flushes_per_s);
    put_count(o, "errors", i->errors);
    put(o, "readahead_hit", i->readahead_hit);
    put(o, "readahead_waste", i->readahead_waste);
    put(o, "cipher_cores", i->cipher_cores);
    put(o, "by_workers", i->by_workers);
    put_count(o, "waiting_for_space", i->waiting_for_space);
    return o;
}
