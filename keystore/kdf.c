/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/kdf.h"

/* The default memory does not grow with the machine: containers travel, and a cost taken from a big
 * one is what gets a small one's unlock killed. The header that asks for a cost is not
 * authenticated yet, so what it asks for is compared with the memory at hand before anything is
 * allocated. */

#include "base/auto.h"
#include "base/size.h"
#include "keystore/meminfo.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <time.h>

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* what a new slot may cost */
#define NEW_MEMORY_MIN (64 * MIB)
#define NEW_T_MIN 3
#define NEW_T_MAX 12 /* unless asked for more */
#define NEW_TIME_MS 1000
/* what a header may ask for */
#define MEMORY_MIN_KIB 8 /* Argon2's own, for one lane */
#define MEMORY_MAX (4 * GIB)
#define T_MAX 64
#define WORK_MAX (32 * GIB) /* memory times passes */

uint64_t kdf_memory_available(void)
{
    return meminfo_available("");
}

/* Leave a quarter to everybody else. */
static bool kdf_fits(uint64_t memory, uint64_t available)
{
    return memory <= available / 4 * 3;
}

bool kdf_allowed(const struct kdf_cost *cost)
{
    uint64_t memory = (uint64_t)cost->m_kib * 1024;

    return cost->p == 1 && cost->t >= 1 && cost->t <= T_MAX && cost->m_kib >= MEMORY_MIN_KIB &&
           memory <= MEMORY_MAX && memory * cost->t <= WORK_MAX;
}

int kdf_check(const struct kdf_cost *cost, unsigned slot, struct report *rep)
{
    uint64_t memory = (uint64_t)cost->m_kib * 1024, available;
    char need[SIZE_TEXT], have[SIZE_TEXT];

    if (!kdf_allowed(cost))
        return report_error(rep, EBADMSG,
                            "key slot %u asks for an impossible derivation (%" PRIu32
                            " KiB, %" PRIu32 " passes, %" PRIu32 " lanes)",
                            slot, cost->m_kib, cost->t, cost->p);
    available = kdf_memory_available();
    if (!kdf_fits(memory, available))
        return report_error(rep, ENOMEM,
                            "key slot %u needs %s of memory, more than three quarters of the %s "
                            "available here (close programs, or add a cheaper slot elsewhere)",
                            slot, size_format(need, memory), size_format(have, available));
    return 0;
}

/* One at a time: several at once would each see the memory that all of them then take. */
int kdf_argon2id(unsigned char out[32], const struct secret *password, const unsigned char salt[16],
                 const struct kdf_cost *cost, struct report *rep)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    HOLD(&one_at_a_time);
    char text[SIZE_TEXT];

    if (crypto_pwhash(out, 32, (const char *)password->bytes, password->len, salt, cost->t,
                      (size_t)cost->m_kib * 1024, crypto_pwhash_ALG_ARGON2ID13) == 0)
        return 0;
    return report_error(rep, ENOMEM, "the key derivation did not get its %s of memory",
                        size_format(text, (uint64_t)cost->m_kib * 1024));
}

void kdf_default_cost(struct kdf_cost *ret, uint64_t available)
{
    if (available >= GIB)
        *ret = (struct kdf_cost){256 * 1024, NEW_T_MIN, 1};
    else if (available >= GIB / 2)
        *ret = (struct kdf_cost){128 * 1024, 4, 1};
    else
        *ret = (struct kdf_cost){64 * 1024, 6, 1};
}

int kdf_request_check(const struct kdf_request *req, struct report *rep)
{
    if (req->memory != 0 && (req->memory < NEW_MEMORY_MIN || req->memory > MEMORY_MAX))
        return report_error(rep, EINVAL, "the memory of a key slot is 64 MiB to 4 GiB");
    if (req->iterations != 0 && req->time_ms != 0)
        return report_error(rep, EINVAL, "passes and a time for a key slot exclude each other");
    if (req->iterations != 0 && (req->iterations < NEW_T_MIN || req->iterations > T_MAX))
        return report_error(rep, EINVAL, "the passes of a key slot are %u to %u", NEW_T_MIN, T_MAX);
    if (req->memory != 0 && req->iterations > WORK_MAX / req->memory)
        return report_error(rep, EINVAL, "memory times passes of a key slot is at most 32 GiB");
    return 0;
}

/* Nanoseconds that so many passes over so much memory take this thread. The processor's time and
 * not the clock's: a busy machine must not give a weaker slot. */
static int measure(uint64_t *ret, uint32_t m_kib, uint32_t passes, struct report *rep)
{
    static const unsigned char salt[16];
    const struct kdf_cost cost = {m_kib, passes, 1};
    AUTO_SECRET struct secret password = {0};
    struct timespec from, to;
    unsigned char out[32];
    int r = secret_copy(&password, "calibration", 11);

    if (r < 0)
        return r;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    r = kdf_argon2id(out, &password, salt, &cost, rep);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    *ret = (uint64_t)(to.tv_sec - from.tv_sec) * UINT64_C(1000000000) + (uint64_t)to.tv_nsec -
           (uint64_t)from.tv_nsec;
    return r;
}

/* The passes that take time_ms, between cost->t and t_max. The first one also gets the memory from
 * the kernel and takes up to twice as long as another; what is measured wrong must not make that
 * more than three times. */
static int calibrate(struct kdf_cost *cost, uint32_t time_ms, uint32_t t_max, struct report *rep)
{
    uint64_t one = 0, two = 0, more, wanted = (uint64_t)time_ms * 1000000, passes = 1;
    int r = measure(&one, cost->m_kib, 1, rep);

    if (r == 0)
        r = measure(&two, cost->m_kib, 2, rep);
    if (r < 0)
        return r;
    more = two > one + one / 3 ? two - one : one / 3 + 1;
    if (wanted > one)
        passes += (wanted - one) / more;
    if (passes > t_max)
        passes = t_max;
    if (passes > cost->t)
        cost->t = (uint32_t)passes;
    return 0;
}

int kdf_choose(struct kdf_cost *ret, const struct kdf_request *req, struct report *rep)
{
    uint64_t available = kdf_memory_available(), memory;
    uint32_t t_max = req->time_ms != 0 ? T_MAX : NEW_T_MAX;
    char need[SIZE_TEXT], have[SIZE_TEXT];
    int r = kdf_request_check(req, rep);

    if (r < 0)
        return r;
    kdf_default_cost(ret, available);
    if (req->memory != 0) {
        ret->m_kib = (uint32_t)(req->memory / 1024);
        ret->t = NEW_T_MIN;
    }
    memory = (uint64_t)ret->m_kib * 1024;
    if (!kdf_fits(memory, available))
        return report_error(rep, ENOMEM,
                            "a key slot needs %s of memory, more than three quarters of the %s "
                            "available here (close programs%s)",
                            size_format(need, memory), size_format(have, available),
                            req->memory > NEW_MEMORY_MIN ? ", or ask for less" : "");
    if (t_max > WORK_MAX / memory)
        t_max = (uint32_t)(WORK_MAX / memory);
    if (req->iterations != 0) {
        ret->t = req->iterations;
        return 0;
    }
    return calibrate(ret, req->time_ms != 0 ? req->time_ms : NEW_TIME_MS, t_max, rep);
}

int kdf_choose_instead(struct kdf_cost *ret, const struct kdf_request *req,
                       const struct kdf_cost *old, struct report *rep)
{
    uint64_t available = kdf_memory_available(), memory = (uint64_t)old->m_kib * 1024;
    bool asked = req->memory != 0 || req->time_ms != 0 || req->iterations != 0;
    struct kdf_request at_least = *req;
    struct kdf_cost usual;
    int r;

    if (asked || !kdf_allowed(old) || !kdf_fits(memory, available))
        return kdf_choose(ret, req, rep);
    kdf_default_cost(&usual, available);
    if (old->m_kib > usual.m_kib)
        at_least.memory = memory;
    r = kdf_choose(ret, &at_least, rep);
    if (r == 0 && ret->m_kib == old->m_kib && old->t > ret->t)
        ret->t = old->t;
    return r;
}
