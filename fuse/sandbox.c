/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/sandbox.h"

/* A list of what is allowed; everything else answers ENOSYS. That is the answer that a libc expects
 * from an older kernel and has an older way for, so a call that this list forgets (a newer libc may
 * make one) costs that call and never the volume. clone3 is among those on purpose: its flags lie
 * in memory where a filter cannot look, and libc goes on with clone, where it can. */

#include <errno.h>
#include <linux/fs.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#ifndef HUSHVOL_SANITIZED

#define FUSE_CLONE _IOR(229, 0, unsigned) /* FUSE_DEV_IOC_CLONE, which linux/fuse.h may lack */
#define TTY_GET 0x5401                    /* TCGETS: isatty() */

/* clang-format off */
static const int allowed[] = {
    /* the data path */
    SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(readv), SCMP_SYS(writev), SCMP_SYS(pread64),
    SCMP_SYS(pwrite64), SCMP_SYS(preadv), SCMP_SYS(pwritev), SCMP_SYS(preadv2), SCMP_SYS(pwritev2),
    SCMP_SYS(lseek), SCMP_SYS(_llseek), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
    SCMP_SYS(sync_file_range), SCMP_SYS(fallocate), SCMP_SYS(fadvise64), SCMP_SYS(readahead),
    SCMP_SYS(fcntl), SCMP_SYS(fcntl64), SCMP_SYS(fstat), SCMP_SYS(fstat64), SCMP_SYS(newfstatat),
    SCMP_SYS(fstatat64), SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(statx), SCMP_SYS(fstatfs),
    SCMP_SYS(statfs),
    /* files: the runtime folder, /proc, /dev/fuse for another thread */
    SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(close), SCMP_SYS(close_range), SCMP_SYS(dup),
    SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2),
    SCMP_SYS(getdents64), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(unlink),
    SCMP_SYS(unlinkat), SCMP_SYS(rmdir), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2),
    SCMP_SYS(ftruncate), SCMP_SYS(umask), SCMP_SYS(chdir), SCMP_SYS(getcwd),
    /* memory */
    SCMP_SYS(brk), SCMP_SYS(mmap), SCMP_SYS(mmap2), SCMP_SYS(munmap), SCMP_SYS(mremap),
    SCMP_SYS(mprotect), SCMP_SYS(madvise), SCMP_SYS(mlock), SCMP_SYS(mlock2), SCMP_SYS(munlock),
    SCMP_SYS(mlockall), SCMP_SYS(munlockall), SCMP_SYS(mincore),
    /* threads */
    SCMP_SYS(futex), SCMP_SYS(futex_time64), SCMP_SYS(set_robust_list), SCMP_SYS(get_robust_list),
    SCMP_SYS(rseq), SCMP_SYS(membarrier), SCMP_SYS(set_tid_address), SCMP_SYS(arch_prctl),
    SCMP_SYS(gettid), SCMP_SYS(exit), SCMP_SYS(exit_group), SCMP_SYS(sched_yield),
    SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_getparam),
    SCMP_SYS(sched_getscheduler), SCMP_SYS(sched_get_priority_max),
    SCMP_SYS(sched_get_priority_min), SCMP_SYS(getcpu),
    /* signals and waiting; kill is left out, tgkill serves our own threads */
    SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigreturn), SCMP_SYS(sigreturn),
    SCMP_SYS(rt_sigtimedwait), SCMP_SYS(rt_sigsuspend), SCMP_SYS(sigaltstack),
    SCMP_SYS(restart_syscall), SCMP_SYS(tgkill), SCMP_SYS(wait4), SCMP_SYS(waitid), SCMP_SYS(poll),
    SCMP_SYS(ppoll), SCMP_SYS(ppoll_time64), SCMP_SYS(select), SCMP_SYS(pselect6),
    SCMP_SYS(eventfd2), SCMP_SYS(signalfd4), SCMP_SYS(pipe2), SCMP_SYS(nanosleep),
    SCMP_SYS(clock_nanosleep), SCMP_SYS(clock_nanosleep_time64), SCMP_SYS(clock_gettime),
    SCMP_SYS(clock_gettime64), SCMP_SYS(clock_getres), SCMP_SYS(gettimeofday), SCMP_SYS(time),
    /* sockets: the control socket and syslog; socket() itself below */
    SCMP_SYS(connect), SCMP_SYS(accept), SCMP_SYS(accept4), SCMP_SYS(sendto), SCMP_SYS(sendmsg),
    SCMP_SYS(recvfrom), SCMP_SYS(recvmsg), SCMP_SYS(getsockopt), SCMP_SYS(setsockopt),
    SCMP_SYS(getsockname), SCMP_SYS(getpeername), SCMP_SYS(shutdown),
    /* who and what we are */
    SCMP_SYS(getpid), SCMP_SYS(getppid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getgid),
    SCMP_SYS(getegid), SCMP_SYS(getuid32), SCMP_SYS(geteuid32), SCMP_SYS(getgid32),
    SCMP_SYS(getegid32), SCMP_SYS(getrusage), SCMP_SYS(getrlimit), SCMP_SYS(ugetrlimit),
    SCMP_SYS(prlimit64), SCMP_SYS(sysinfo), SCMP_SYS(uname), SCMP_SYS(getrandom),
};

static const unsigned long ioctls[] = {
    FUSE_CLONE, TTY_GET, BLKGETSIZE64, BLKSSZGET, BLKPBSZGET, BLKBSZGET, BLKROGET, BLKDISCARD,
    BLKZEROOUT, BLKFLSBUF, BLKALIGNOFF, BLKIOMIN, BLKIOOPT, BLKDISCARDZEROES,
};
/* clang-format on */

/* Names that this machine's kernel never had are no failure. */
static int allow(scmp_filter_ctx ctx, int call)
{
    int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 0);

    return r == -EDOM || r == -EINVAL ? 0 : r;
}

static int fill(scmp_filter_ctx ctx)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < sizeof(allowed) / sizeof(allowed[0]); i++)
        r = allow(ctx, allowed[i]);
    for (size_t i = 0; r == 0 && i < sizeof(ioctls) / sizeof(ioctls[0]); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, ioctls[i]));
    if (r == 0) /* a thread is; a process is not */
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1,
                             SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0));
    if (r == 0)
        r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1,
                             SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME, 0));
    return r;
}

static int install(void)
{
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
    int r;

    if (ctx == NULL)
        return -ENOMEM;
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_TSYNC, 1); /* the pool's threads run already */
    if (r == 0)
        r = fill(ctx);
    if (r == 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    return r;
}

void serve_sandbox(struct report *rep)
{
    int r = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : install();

    if (r < 0)
        report_warn(rep, "the process runs without a system call filter: %s", strerror(-r));
}

#else

void serve_sandbox(struct report *rep)
{
    (void)rep;
}

#endif
