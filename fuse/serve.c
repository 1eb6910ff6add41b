/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* One mounted session of libfuse's low-level interface: mount, answer, end. The requests themselves
 * are in ops.c.
 *
 * fuse_session_loop_mt() sleeps until a thread of its own ends, which none does while the file
 * system is mounted and idle; so serve_stop() sets libfuse's flag and interrupts that sleep with a
 * signal whose handler does nothing. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define WAKE SIGUSR1

/* libfuse has one log for the whole process. */
static struct report *_Atomic log_report;

static void log_line(enum fuse_log_level level, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

static void log_line(enum fuse_log_level level, const char *fmt, va_list ap)
{
    char text[REPORT_LINE];

    if (level > FUSE_LOG_WARNING)
        return;
    vsnprintf(text, sizeof(text), fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    report_warn(log_report, "%s", text);
}

void serve_set_report(struct report *rep)
{
    log_report = rep;
}

/* fusermount3 reads only this file, and so only says what we say here sooner and with the remedy.
 */
static bool users_may_allow_other(void)
{
    FILE *f = fopen("/etc/fuse.conf", "re");
    char line[256];
    bool found = false;

    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        char *word = line + strspn(line, " \t");

        word[strcspn(word, " \t\n")] = '\0';
        found = strcmp(word, "user_allow_other") == 0;
    }
    if (f != NULL)
        fclose(f);
    return found;
}

/* A mount point that is mounted already would have to be asked about by us who serve it. */
static int check_machine(const struct serve_spec *spec, struct report *rep)
{
    AUTO_FD int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    struct stat st;

    if (spec->device != 0)
        return 0;
    if (fd < 0)
        return report_error(rep, EOPNOTSUPP, "cannot open /dev/fuse: %s (see \"hushvol doctor\")",
                            strerror(errno));
    if (stat(spec->mountpoint, &st) < 0)
        return report_errno(rep, errno, "mount point %s", spec->mountpoint);
    if (!S_ISDIR(st.st_mode))
        return report_error(rep, ENOTDIR, "mount point %s is not a folder", spec->mountpoint);
    if (geteuid() != 0 && (spec->allow_other || spec->allow_root) && !users_may_allow_other())
        return report_error(rep, EPERM,
                            "allow_other and allow_root need the line user_allow_other in "
                            "/etc/fuse.conf, which root must add");
    return 0;
}

/* One string for -o; commas in the source are escaped. The caller's to free. */
static char *option_list(const struct serve *s, const struct serve_spec *spec)
{
    AUTO_FREE char *source = NULL;
    char *list = NULL;
    int r;

    if (asprintf(&source, "fsname=%s", spec->source) < 0) {
        source = NULL;
        return NULL;
    }
    r = fuse_opt_add_opt(&list, "default_permissions,nosuid,nodev,subtype=hushvol");
    if (r == 0)
        r = fuse_opt_add_opt_escaped(&list, source);
    if (r == 0 && s->read_only)
        r = fuse_opt_add_opt(&list, "ro");
    if (r == 0 && spec->allow_other)
        r = fuse_opt_add_opt(&list, "allow_other");
    if (r == 0 && spec->allow_root)
        r = fuse_opt_add_opt(&list, "allow_root");
    if (r == 0)
        return list;
    free(list);
    return NULL;
}

static int start_session(struct serve *s, const struct serve_spec *spec, struct report *rep)
{
    AUTO_FREE char *list = option_list(s, spec);
    char *argv[] = {(char *)"hushvol", (char *)"-o", list, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    const char *at = spec->mountpoint;
    char device[32];

    if (spec->device != 0) {
        snprintf(device, sizeof(device), "/dev/fd/%d", spec->device);
        at = device;
    }
    if (list == NULL)
        return report_errno(rep, ENOMEM, "cannot mount");
    s->session = fuse_session_new(&args, &serve_ops, sizeof(serve_ops), s);
    fuse_opt_free_args(&args);
    if (s->session == NULL)
        return report_error(rep, EIO, "the FUSE library refuses the mount options");
    if (fuse_session_mount(s->session, at) != 0)
        return report_error(rep, EIO, "cannot mount at %s (see \"hushvol doctor\")",
                            spec->mountpoint);
    s->mounted = true; /* the session closes the device */
    return 0;
}

static void fill(struct serve *s, struct volume *vol, const struct serve_spec *spec)
{
    struct vol_info info;

    vol_get_info(vol, &info);
    s->vol = vol;
    s->top = vol_top(vol);
    s->name = spec->name;
    s->cache = spec->cache;
    s->read_only = info.read_only;
    s->data_offset = info.data_offset;
    s->uid = spec->uid != (uid_t)-1 ? spec->uid : getuid();
    s->gid = spec->gid != (gid_t)-1 ? spec->gid : getgid();
    s->mode = spec->mode != (mode_t)-1 ? spec->mode & 0777 : 0600;
    if (s->read_only)
        s->mode &= 0555;
    s->began = serve_clock();
    atomic_store(&s->written, time(NULL));
}

static int mount_session(struct serve **ret, struct volume *vol, const struct serve_spec *spec,
                         struct report *rep)
{
    struct serve *s;
    int r = check_machine(spec, rep);

    if (r < 0)
        return r;
    s = aligned_alloc(_Alignof(struct serve), sizeof(*s));
    if (s == NULL)
        return report_errno(rep, ENOMEM, "cannot mount");
    memset(s, 0, sizeof(*s));
    if (serve_hold_open(&s->hold) < 0 || serve_threads_open(s) < 0) {
        serve_hold_close(s->hold);
        free(s);
        return report_errno(rep, EAGAIN, "cannot mount");
    }
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->runner_ended, NULL);
    pthread_rwlock_init(&s->size, NULL);
    fill(s, vol, spec);
    serve_set_report(rep);
    fuse_set_log_func(log_line);
    r = start_session(s, spec, rep);
    if (r < 0) {
        serve_close(s);
        return r;
    }
    *ret = s;
    return 0;
}

int serve_mount(struct serve **ret, struct volume *vol, const struct serve_spec *spec,
                struct report *rep)
{
    int r = mount_session(ret, vol, spec, rep);

    if (r < 0 && spec->device != 0)
        close(spec->device);
    return r;
}

static void wake(int sig)
{
    (void)sig;
}

/* Without SA_RESTART, so that it ends the sleep of the loop; in this thread and those it makes. */
static void allow_wake(void)
{
    struct sigaction action = {.sa_handler = wake};
    sigset_t set;

    sigaction(WAKE, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, WAKE);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

int serve_loop(struct serve *s)
{
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    int r;

    if (config == NULL)
        return -ENOMEM;
    fuse_loop_cfg_set_clone_fd(config, access("/dev/fuse", R_OK | W_OK) == 0); /* root mounted */
    fuse_loop_cfg_set_max_threads(config, SERVE_THREADS);
    fuse_loop_cfg_set_idle_threads(config, SERVE_THREADS);
    allow_wake();
    s->looper = pthread_self();
    atomic_store(&s->looping, true);
    r = fuse_session_loop_mt(s->session, config);
    atomic_store(&s->looping, false);
    fuse_loop_cfg_destroy(config);
    return r < 0 ? -EIO : 0;
}

void serve_stop(struct serve *s)
{
    fuse_session_exit(s->session);
    if (atomic_load(&s->looping))
        pthread_kill(s->looper, WAKE);
}

bool serve_ended(struct serve *s)
{
    return fuse_session_exited(s->session) != 0;
}

void serve_close(struct serve *s)
{
    if (s == NULL)
        return;
    serve_held_end(s);
    if (s->mounted)
        fuse_session_unmount(s->session);
    if (s->session != NULL)
        fuse_session_destroy(s->session);
    serve_threads_close(s);
    pthread_rwlock_destroy(&s->size);
    pthread_cond_destroy(&s->runner_ended);
    pthread_mutex_destroy(&s->lock);
    serve_hold_close(s->hold);
    free(s);
}

/* The kernel believes in the old size until it asks again. It is told that attributes are stale and
 * no more (-1): it drops cached pages by itself when it sees another size, and to drop them here
 * could mean to wait for a request that we have not answered. */
int serve_grow(struct serve *s, uint64_t size, struct report *rep)
{
    int r = serve_hold(s, rep);

    if (r < 0)
        return r;
    pthread_rwlock_wrlock(&s->size);
    r = vol_grow(s->vol, size, rep);
    pthread_rwlock_unlock(&s->size);
    serve_release(s);
    if (r == 0)
        fuse_lowlevel_notify_inval_inode(s->session, SERVE_IMAGE, -1, 0);
    return r;
}

unsigned serve_opens(struct serve *s)
{
    return atomic_load(&s->opens);
}
