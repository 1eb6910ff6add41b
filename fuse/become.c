/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/become.h"

/* What setuid(2) alone leaves behind, and what the user's programs (a passphrase command) could do
 * with it:
 *
 *   groups            read what root's groups may read
 *   capabilities      where SECBIT_NO_SETUID_FIXUP is set, or as inheritable ones
 *   session keyring   whoever possesses root's reads the keys in it
 *   environment       PATH, LD_*, XDG_*: root's places and programs
 *   the terminal      TIOCSTI types into it as if root did, and a shell of root's reads that later
 *
 * The last is a filter of system calls and not a session of its own, because the user's process
 * asks for the passphrase on that terminal: Ctrl-C and Ctrl-Z shall work there as ever. */

#include "base/auto.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <pwd.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define TTY_TYPE 0x5412  /* TIOCSTI */
#define TTY_PASTE 0x541c /* TIOCLINUX */
#define MASK 022

void serve_become_done(struct serve_become *b)
{
    free(b->name);
    free(b->home);
    free(b->shell);
    free(b->groups);
    *b = (struct serve_become){0};
}

/* getgrouplist() tells how many there are when there is no room for them. */
static int find_groups(struct serve_become *b)
{
    int room = 32;

    for (;;) {
        gid_t *groups = realloc(b->groups, (size_t)room * sizeof(*groups));

        if (groups == NULL)
            return -ENOMEM;
        b->groups = groups;
        b->n_groups = room;
        if (getgrouplist(b->name, b->gid, groups, &b->n_groups) >= 0)
            return 0;
        room = b->n_groups > room ? b->n_groups : 2 * room;
    }
}

int serve_become_find(struct serve_become *ret, const char *name, struct report *rep)
{
    AUTO_BECOME struct serve_become b = {0};
    const struct passwd *p = getpwnam(name);

    if (p == NULL)
        return report_error(rep, ENOENT, "there is no user %s", name);
    b.uid = p->pw_uid;
    b.gid = p->pw_gid;
    b.name = strdup(p->pw_name);
    b.home = strdup(p->pw_dir);
    b.shell = strdup(p->pw_shell[0] != '\0' ? p->pw_shell : "/bin/sh");
    if (b.name == NULL || b.home == NULL || b.shell == NULL || find_groups(&b) < 0)
        return report_errno(rep, ENOMEM, "cannot look up the user %s", name);
    *ret = b;
    b = (struct serve_become){0};
    return 0;
}

/* A kernel without keyrings, or a container that keeps them away, has nothing to leave behind. */
static int leave_keyring(void)
{
    if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) >= 0)
        return 0;
    return errno == ENOSYS || errno == EPERM || errno == EOPNOTSUPP ? 0 : -errno;
}

static int forbid_typing(void)
{
    static const unsigned long ioctls[] = {TTY_TYPE, TTY_PASTE};
    scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
    int r;

    if (ctx == NULL)
        return -ENOMEM;
    /* Root needs no promise to gain no privileges; fusermount3 still has to be able to. */
    r = seccomp_attr_set(ctx, SCMP_FLTATR_CTL_NNP, 0);
    for (size_t i = 0; r == 0 && i < sizeof(ioctls) / sizeof(ioctls[0]); i++)
        r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                             SCMP_A1(SCMP_CMP_MASKED_EQ, 0xffffffff, ioctls[i]));
    if (r == 0)
        r = seccomp_load(ctx);
    seccomp_release(ctx);
    return r;
}

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); /* gone with the others, too */
    return syscall(SYS_capset, &header, none) < 0 ? -errno : 0;
}

/* Those in force, and with all also those that could be. */
static bool has_capabilities(bool all)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) < 0)
        return true;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        if (data[i].effective != 0 || (all && (data[i].permitted | data[i].inheritable) != 0))
            return true;
    return false;
}

/* Not what the calls answered counts, but what holds. */
static bool is_user(const struct serve_become *b)
{
    uid_t uid, euid, suid;
    gid_t gid, egid, sgid;

    return getresuid(&uid, &euid, &suid) == 0 && getresgid(&gid, &egid, &sgid) == 0 &&
           uid == b->uid && euid == b->uid && suid == b->uid && gid == b->gid && egid == b->gid &&
           sgid == b->gid && getgroups(0, NULL) == b->n_groups && !has_capabilities(true) &&
           setuid(0) < 0;
}

static bool is_folder_of(const char *path, uid_t uid)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid;
}

static int set_environment(const struct serve_become *b)
{
    static const char *const kept[] = {"LANG", "LC_ALL", "LC_CTYPE", "LC_MESSAGES", "TERM"};
    char *values[sizeof(kept) / sizeof(kept[0])] = {NULL};
    char runtime[32];
    int r = 0;

    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        const char *value = getenv(kept[i]);

        values[i] = value != NULL ? strdup(value) : NULL;
    }
    clearenv();
    for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
        if (values[i] != NULL)
            r |= setenv(kept[i], values[i], 1);
        free(values[i]);
    }
    r |= setenv("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin", 1);
    r |= setenv("HOME", b->home, 1) | setenv("SHELL", b->shell, 1);
    r |= setenv("USER", b->name, 1) | setenv("LOGNAME", b->name, 1);
    snprintf(runtime, sizeof(runtime), "/run/user/%u", (unsigned)b->uid);
    if (is_folder_of(runtime, b->uid))
        r |= setenv("XDG_RUNTIME_DIR", runtime, 1);
    return r != 0 ? -ENOMEM : 0;
}

int serve_become(const struct serve_become *b, struct report *rep)
{
    int r = leave_keyring();

    if (r < 0)
        return report_errno(rep, -r, "cannot leave root's keyring");
    r = forbid_typing();
    if (r < 0)
        report_warn(rep, "programs of %s can type into this terminal: %s", b->name, strerror(-r));
    if (setgroups((size_t)b->n_groups, b->groups) < 0 || setresgid(b->gid, b->gid, b->gid) < 0 ||
        setresuid(b->uid, b->uid, b->uid) < 0)
        return report_errno(rep, errno, "cannot become the user %s", b->name);
    r = drop_capabilities();
    if (r < 0 || !is_user(b))
        return report_error(rep, EPERM, "cannot become the user %s: something of root's is left",
                            b->name);
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0) /* a change of ids puts it back */
        return report_errno(rep, errno, "cannot turn core dumps off");
    r = set_environment(b);
    umask(MASK);
    return r < 0 ? report_errno(rep, -r, "cannot become the user %s", b->name) : 0;
}

/* With the effective id the kernel takes the effective capabilities away, and gives them back. */
int serve_become_begin(const struct serve_become *b)
{
    if (setgroups((size_t)b->n_groups, b->groups) < 0 || setegid(b->gid) < 0 || seteuid(b->uid) < 0)
        return -errno;
    return has_capabilities(false) ? -EPERM : 0;
}

int serve_become_end(void)
{
    if (seteuid(0) < 0 || setegid(0) < 0 || setgroups(0, NULL) < 0)
        return -errno;
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}
