/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/secret.h"

#include <errno.h>
#include <linux/capability.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

int secret_make(struct secret *s, size_t len)
{
    unsigned char *bytes = sodium_malloc(len > 0 ? len : 1);

    if (bytes == NULL)
        return -ENOMEM;
    sodium_memzero(bytes, len);
    secret_done(s);
    s->bytes = bytes;
    s->len = len;
    return 0;
}

int secret_copy(struct secret *s, const void *from, size_t len)
{
    struct secret copy = {0};
    int r = secret_make(&copy, len);

    if (r < 0)
        return r;
    if (len > 0)
        memcpy(copy.bytes, from, len);
    secret_done(s);
    *s = copy;
    return 0;
}

void secret_done(struct secret *s)
{
    sodium_free(s->bytes); /* wipes; NULL is fine */
    *s = (struct secret){0};
}

void secret_wipe(void *p, size_t len)
{
    sodium_memzero(p, len);
}

bool secret_equal(const void *a, const void *b, size_t len)
{
    return sodium_memcmp(a, b, len) == 0;
}

void secret_random(void *p, size_t len)
{
    randombytes_buf(p, len);
}

int secret_start(struct report *rep)
{
    const struct rlimit none = {0, 0};

    if (sodium_init() < 0)
        return report_error(rep, ENOSYS, "libsodium cannot start (no source of random numbers?)");
    if (setrlimit(RLIMIT_CORE, &none) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
        return report_errno(rep, errno, "cannot turn core dumps off");
    return 0;
}

/* CAP_IPC_LOCK: the limit does not apply to us. */
static bool may_lock_anything(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &header, data) == 0 &&
           data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK);
}

/* sodium_malloc hides a failed mlock, and OpenSSL keeps key schedules on the ordinary heap, so the
 * whole process is locked; where that is not allowed the user hears it once. A finite limit is
 * never used for this, even when today's memory fits: tomorrow's thread stack would not, and its
 * mmap would fail. MCL_ONFAULT: only what is touched becomes resident. */
void secret_lock_memory(struct report *rep)
{
    struct rlimit limit = {0, 0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if ((limit.rlim_cur == RLIM_INFINITY || may_lock_anything()) &&
        mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0)
        return;
    report_warn(rep,
                "keys may be swapped to disk: the limit for locked memory is %llu KiB (raise it "
                "with \"ulimit -l unlimited\" or memlock in /etc/security/limits.conf, or use "
                "encrypted swap)",
                (unsigned long long)limit.rlim_cur / 1024);
}
