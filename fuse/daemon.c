/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/daemon.h"

/* The life of a mount, in order:
 *
 *   take a name in the runtime folder            its lock tells everybody that we live
 *   start the guard                              before any key is read, while we are one thread
 *   lock the memory                              what is read and derived from here on is secret
 *   open the volume                              may ask for a passphrase on the user's terminal
 *   mount, write the record, open the socket
 *   leave the terminal, give up privileges       from here on words go to syslog
 *   tell the waiting command                     it returns to the user's shell
 *   answer requests                              until it is unmounted, or a signal or "stop" comes
 *   close the volume: the last flush, keys wiped
 *   give the name back
 *
 * Everything above the line "tell" reports to the user's terminal, and its error becomes the
 * command's exit status. One thread beside the FUSE threads has the signals and the socket. */

#include "base/auto.h"
#include "base/secret.h"
#include "fuse/broker.h"
#include "fuse/life.h"
#include "fuse/mounts.h"
#include "fuse/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <time.h>

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57
#endif

#define LOOK_MS 2000     /* between looks whether the kernel ended the session by itself */
#define STOP_AGAIN_MS 50 /* between calls of serve_stop(), which may come too early once */

/* Lines name the volume: one syslog holds those of all. */
static void log_say(struct report *rep, enum report_level level, const char *text)
{
    static const int priority[] = {
        [REPORT_INFO] = LOG_INFO, [REPORT_WARN] = LOG_WARNING, [REPORT_ERROR] = LOG_ERR};
    struct daemon *d = container_of(rep, struct daemon, log);

    if (d->spec->foreground)
        d->rep->say(d->rep, level, text);
    else
        syslog(LOG_DAEMON | priority[level], "%s: %s", d->result.name, text);
}

static struct report *report_of(struct daemon *d)
{
    return d->log.say != NULL ? &d->log : d->rep;
}

static int make_default_mountpoint(struct daemon *d)
{
    AUTO_FD int mnt = -1;
    char path[PATH_MAX];

    if (snprintf(path, PATH_MAX, "%s/mnt", d->folder.path) >= PATH_MAX ||
        snprintf(d->result.mountpoint, PATH_MAX, "%s/mnt/%s", d->folder.path, d->result.name) >=
            PATH_MAX)
        return report_errno(d->rep, ENAMETOOLONG, "%s", d->folder.path);
    mnt = serve_folder_make(path);
    if (mnt < 0)
        return report_errno(d->rep, -mnt, "cannot make the folder %s", path);
    if (mkdirat(mnt, d->result.name, 0700) < 0 && errno != EEXIST)
        return report_errno(d->rep, errno, "cannot make the folder %s", d->result.mountpoint);
    d->made_mountpoint = true;
    return 0;
}

static int choose_mountpoint(struct daemon *d)
{
    const char *wanted = d->spec->serve.mountpoint;
    struct serve_mount_id there;

    if (wanted == NULL)
        return make_default_mountpoint(d);
    if (realpath(wanted, d->result.mountpoint) == NULL)
        return report_error(d->rep, errno, "mount point %s: %s%s", wanted, strerror(errno),
                            errno == ENOENT ? " (make it first, or leave it out)" : "");
    if (serve_mounts_at(&there, d->result.mountpoint) == 0 && there.ours)
        return report_error(d->rep, EBUSY,
                            "a volume is mounted at %s already (\"hushvol umount\" ends that)",
                            d->result.mountpoint);
    return 0;
}

static int open_volume(struct daemon *d)
{
    struct vol_spec spec = d->spec->vol;
    pid_t holder = 0;
    int r;

    spec.callers = SERVE_THREADS;
    spec.credential.name = d->result.name;
    /* Memory that our own requests free must not wait for our own answers; threads inherit it. Not
     * allowed in many containers, where nobody else's memory is cleaned through us either. */
    prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0);
    r = vol_open(&d->vol, &spec, &holder, d->rep);
    return r == -EBUSY ? d->spec->busy(spec.container, spec.header, holder, d->rep) : r;
}

/* Blocked in this thread, and so in all that are made from now on. */
static int take_signals(struct daemon *d)
{
    sigset_t set;

    signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is an EFBIG like any other error */
    if (!d->spec->foreground)
        signal(SIGHUP, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (d->spec->foreground)
        sigaddset(&set, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    d->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    d->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (d->signals < 0 || d->wake < 0)
        return report_errno(d->rep, errno, "cannot wait for signals");
    return 0;
}

/* The socket is among what was open before us, and closed with that (serve_detach_leave). */
static int ask_broker(struct daemon *d)
{
    struct vol_info info;
    struct serve_broker_mount m = {
        .point = d->result.mountpoint,
        .source = d->spec->vol.container,
        .allow_other = d->serve_spec.allow_other || d->serve_spec.allow_root,
    };
    int fd;

    vol_get_info(d->vol, &info);
    m.read_only = info.read_only;
    fd = serve_broker_ask(d->spec->broker, &m, d->rep);
    if (fd < 0)
        return fd;
    d->serve_spec.device = fd;
    return 0;
}

static int mount_volume(struct daemon *d)
{
    int r = 0;

    d->serve_spec = d->spec->serve;
    d->serve_spec.name = d->result.name;
    d->serve_spec.source = d->spec->vol.container;
    d->serve_spec.mountpoint = d->result.mountpoint;
    if (d->spec->broker != 0)
        r = ask_broker(d);
    if (r == 0)
        r = serve_mount(&d->serve, d->vol, &d->serve_spec, d->rep);
    if (r == 0)
        r = serve_guard_watch(d->guard, d->result.mountpoint, d->rep);
    return r;
}

static int write_record(struct daemon *d)
{
    struct serve_record *rec = &d->record;
    struct vol_info info;

    vol_get_info(d->vol, &info);
    strcpy(rec->name, d->result.name);
    rec->pid = getpid();
    rec->container = strdup(d->spec->vol.container);
    rec->mountpoint = strdup(d->result.mountpoint);
    if (d->spec->vol.header != NULL)
        rec->header = strdup(d->spec->vol.header);
    if (rec->container == NULL || rec->mountpoint == NULL ||
        (d->spec->vol.header != NULL && rec->header == NULL))
        return report_errno(d->rep, ENOMEM, "cannot write down the mount");
    snprintf(rec->format, sizeof(rec->format), "%s", info.format);
    snprintf(rec->cipher, sizeof(rec->cipher), "%s", info.cipher);
    snprintf(rec->integrity, sizeof(rec->integrity), "%s", info.integrity);
    rec->sector_size = info.sector_size;
    rec->size = info.size;
    rec->read_only = info.read_only;
    rec->suspended = info.suspended;
    rec->made_mountpoint = d->made_mountpoint;
    rec->container_dev = info.container_dev;
    rec->container_ino = info.container_ino;
    rec->since = time(NULL);
    return serve_slot_publish(d->slot, rec, d->rep);
}

/* Unmount properly; who still has the image open sees it vanish. Requests that wait for room, or
 * for the end of a suspend, would keep us waiting for them. */
static void stop(struct daemon *d)
{
    struct vol_info info;
    int r;

    vol_give_up_waiting(d->vol);
    vol_get_info(d->vol, &info);
    if (info.suspended || serve_held(d->serve) > 0)
        serve_give_up(d->serve, -EIO);
    r = serve_guard_unmount(d->guard);
    d->was_busy = r == 1;
    if (d->was_busy)
        report_warn(&d->log, "stopped while the image was in use");
    else if (r < 0)
        report_errno(&d->log, -r, "cannot unmount %s", d->result.mountpoint);
}

static void read_signals(struct daemon *d)
{
    struct signalfd_siginfo info;

    while (read(d->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
        d->stop = true;
}

static void *control_thread(void *arg)
{
    struct daemon *d = arg;
    struct pollfd fds[SERVE_CONTROL_FDS + 2];
    bool stopped = false;

    for (;;) {
        int timeout = serve_control_prepare(d->control, fds + 2);

        fds[0] = (struct pollfd){.fd = d->wake, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = d->signals, .events = POLLIN};
        if (timeout < 0 || timeout > LOOK_MS)
            timeout = LOOK_MS;
        poll(fds, SERVE_CONTROL_FDS + 2, stopped ? STOP_AGAIN_MS : timeout);
        if (fds[0].revents != 0)
            return NULL;
        read_signals(d);
        serve_control_turn(d->control, fds + 2);
        if (d->stop && !stopped)
            stop(d);
        stopped = d->stop;
        if (stopped)
            serve_stop(d->serve);
        if (serve_ended(d->serve))
            vol_give_up_waiting(d->vol); /* nobody is left who could hear that there is room */
    }
}

static int start_control(struct daemon *d)
{
    int r = serve_jobs_open(&d->jobs);

    if (r < 0)
        return report_errno(d->rep, -r, "cannot start");
    r = serve_control_open(&d->control, d->slot, serve_answer, d, d->rep);
    if (r < 0)
        return r;
    r = pthread_create(&d->controller, NULL, control_thread, d);
    if (r != 0)
        return report_errno(d->rep, r, "cannot start a thread");
    d->controlling = true;
    return 0;
}

static void stop_control(struct daemon *d)
{
    if (d->controlling) {
        eventfd_write(d->wake, 1);
        pthread_join(d->controller, NULL);
    }
    serve_control_close(d->control);
    serve_jobs_close(d->jobs);
}

/* From the user's terminal to nowhere, and from what a command may do to what serving needs. The
 * filter covers the threads that are there already. */
static void settle(struct daemon *d)
{
    serve_detach_leave(d->detach);
    openlog("hushvol", LOG_PID | LOG_NDELAY, LOG_DAEMON);
    d->log.say = log_say;
    vol_set_report(d->vol, &d->log);
    serve_set_report(&d->log);
    serve_sandbox(&d->log);
}

static int prepare(struct daemon *d)
{
    int r = serve_folder_own(&d->folder, d->rep);

    if (r == 0)
        r = serve_slot_take(&d->slot, &d->folder, d->spec->serve.name, d->spec->vol.container,
                            d->rep);
    if (r < 0)
        return r;
    strcpy(d->result.name, serve_slot_name(d->slot));
    r = choose_mountpoint(d);
    if (r == 0)
        r = serve_guard_start(&d->guard, d->rep);
    if (r < 0)
        return r;
    secret_lock_memory(d->rep);
    r = open_volume(d);
    if (r == 0)
        r = take_signals(d);
    if (r == 0)
        r = mount_volume(d);
    if (r == 0)
        r = write_record(d);
    if (r == 0)
        r = start_control(d);
    return r;
}

/* Without its guard the daemon cannot unmount: it gave that right away. */
static bool is_still_mounted(const struct daemon *d)
{
    struct serve_mount_id there;

    return serve_mounts_at(&there, d->result.mountpoint) == 0 && there.ours;
}

/* A mount that is still there goes now, whoever looks into it. */
static void unmount(struct daemon *d)
{
    int r = d->serve != NULL ? serve_guard_unmount(d->guard) : 0;

    if (d->serve != NULL)
        vol_give_up_waiting(d->vol); /* requests that were held may be at it now */
    if (r < 0 && is_still_mounted(d)) {
        report_warn(report_of(d), "cannot unmount %s", d->result.mountpoint);
        d->left_mounted = true;
    }
    if (r == 1)
        d->was_busy = true;
    serve_close(d->serve);
}

/* What was attached on top and did not go first is left without its disk; its record stays, so that
 * "umount" can find and clean it, and so does that of a mount that we could not take down. The same
 * for a volume whose last changes may be lost: whoever waits for our end has to hear of it. */
static void release_name(struct daemon *d, bool lost)
{
    bool stays = (d->was_busy && d->record.filesystem != NULL) || d->left_mounted;

    if (d->made_mountpoint)
        rmdir(d->result.mountpoint); /* fails when it is not empty, as it should */
    if (lost && d->record.pid != 0) {
        d->record.lost = true;
        stays = serve_slot_publish(d->slot, &d->record, report_of(d)) == 0 || stays;
    }
    serve_record_done(&d->record);
    if (stays)
        serve_slot_leave(d->slot);
    else
        serve_slot_drop(d->slot);
}

/* Also after half of prepare(). */
static int finish(struct daemon *d)
{
    int r;

    stop_control(d);
    unmount(d);
    r = vol_close(d->vol);
    if (r < 0)
        report_errno(report_of(d), -r, "the last changes may not have reached the container");
    serve_guard_done(d->guard);
    release_name(d, r < 0);
    if (d->signals >= 0)
        close(d->signals);
    if (d->wake >= 0)
        close(d->wake);
    return r;
}

static int live(const struct serve_daemon_spec *spec, struct serve_detach *detach,
                serve_daemon_ready *ready, void *arg, struct report *rep)
{
    struct daemon d = {.spec = spec, .detach = detach, .rep = rep, .signals = -1, .wake = -1};
    int r, end;

    pthread_mutex_init(&d.record_lock, NULL);
    r = prepare(&d);

    if (r == 0) {
        settle(&d);
        if (spec->foreground && ready != NULL)
            ready(&d.result, arg);
        serve_detach_tell(detach, 0, &d.result, sizeof(d.result));
        r = serve_loop(d.serve);
        if (r < 0)
            report_errno(&d.log, -r, "the FUSE connection broke");
    }
    end = finish(&d);
    serve_detach_tell(detach, r, NULL, 0);
    return r < 0 ? r : end;
}

int serve_daemon(const struct serve_daemon_spec *spec, serve_daemon_ready *ready, void *arg,
                 bool *in_daemon, struct report *rep)
{
    struct serve_daemon_result result = {0};
    struct serve_detach detach;
    int r;

    fflush(NULL); /* or both processes would print what is waiting */
    *in_daemon = spec->foreground;
    r = serve_detach_start(&detach, !spec->foreground, rep);
    if (r < 0)
        return r;
    *in_daemon = !detach.is_command;
    if (detach.is_command) {
        r = serve_detach_wait(&detach, &result, sizeof(result), rep);
        if (r == 0 && ready != NULL)
            ready(&result, arg);
    } else {
        r = live(spec, &detach, ready, arg, rep);
    }
    serve_detach_done(&detach);
    return r;
}
