/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Argon2id (RFC 9106, version 0x13, one lane) with limits on what a hostile header may cost:
 * docs/format.md 10.2, 10.3. */

#include "base/report.h"
#include "base/secret.h"

#include <stdbool.h>
#include <stdint.h>

struct kdf_cost {
    uint32_t m_kib; /* memory, KiB */
    uint32_t t;     /* passes */
    uint32_t p;     /* lanes: 1 is all there is */
};

/* None at all: the passphrase is not stretched. Only some formats have that. */
#define KDF_NO_PASSES UINT32_MAX

/* What --kdf-memory, --kdf-time and --kdf-iterations say; zeros mean "not given". */
struct kdf_request {
    uint64_t memory;     /* bytes */
    uint32_t time_ms;    /* calibrate to this */
    uint32_t iterations; /* exact passes, or KDF_NO_PASSES; not together with time_ms */
};

/* Can kdf_choose() meet this, on a machine that has the memory? -EINVAL outside the limits. Nothing
 * is run. */
int kdf_request_check(const struct kdf_request *req, struct report *rep);
/* Choose a cost for a new slot: docs/format.md 10.3 (256 MiB and about 1 s, less on small machines,
 * never below 64 MiB and 3 passes). -EINVAL outside the limits, -ENOMEM more than this machine has.
 */
int kdf_choose(struct kdf_cost *ret, const struct kdf_request *req, struct report *rep);
/* The same for a slot that takes the place of one that costs old: what nobody asked to be cheaper
 * is not, as far as old is within the limits and this machine has the memory. */
int kdf_choose_instead(struct kdf_cost *ret, const struct kdf_request *req,
                       const struct kdf_cost *old, struct report *rep);
/* The memory, and the fewest passes, that a new slot gets by itself where so many bytes are
 * available. */
void kdf_default_cost(struct kdf_cost *ret, uint64_t available);
/* Is this within what the format allows (p, m, t, m*t), on whatever machine? */
bool kdf_allowed(const struct kdf_cost *cost);
/* May a header ask for this here? -EBADMSG outside what the format allows, -ENOMEM
 * when it is more than 75 % of the memory available, naming slot and both figures. Nothing is run.
 */
int kdf_check(const struct kdf_cost *cost, unsigned slot, struct report *rep);
/* out: 32 bytes. One at a time in this process. -ENOMEM. */
int kdf_argon2id(unsigned char out[32], const struct secret *password, const unsigned char salt[16],
                 const struct kdf_cost *cost, struct report *rep);

/* Bytes that a new process could get: MemAvailable, and what the cgroup's limit leaves. */
uint64_t kdf_memory_available(void);
