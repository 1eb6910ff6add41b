/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/teardown.h"

/* Root takes down users' mounts too, but their records are their own words. So before anything is
 * unmounted, the kernel's table must confirm that it is FUSE and that the folder's owner mounted
 * it; loop devices are touched only for records of our own or on an image so confirmed, folders
 * only for records of our own.
 *
 * fuse2fs writes its last blocks after its file system is gone from the mount table: so we wait
 * until the image is not open any more. */

#include "base/auto.h"
#include "cli/holders.h"
#include "cli/loop.h"
#include "cli/udisks.h"
#include "cli/waiting.h"
#include "fuse/control.h"
#include "fuse/mounts.h"
#include "fuse/unmount.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TRY_MS 50
#define BUSY_TRIES 20   /* the kernel closes files a moment after their owners do */
#define OPEN_TRIES 1200 /* a minute for fuse2fs to write what it holds */
#define CLOSE_MS 2000   /* for closing; what takes longer is looked into */
#define OTHERS_MS 60000 /* for a user's daemon: root does not wait for ever on a user's word */
#define END_MS 5000     /* for a process that has nothing left to do */
#define FUSE2FS "fuse2fs"

static bool is_own(const struct serve_found *f)
{
    return f->folder.owner == geteuid();
}

bool cmd_teardown_has_image(const struct serve_found *f)
{
    struct serve_mount_id there;

    return serve_mounts_at(&there, f->record.mountpoint) == 0 && there.ours &&
           there.user_id == (long)f->folder.owner;
}

/* The same for the file system: on our loop device, or FUSE and the owner's. */
bool cmd_teardown_has_filesystem(const struct serve_found *f)
{
    const struct serve_record *rec = &f->record;
    struct serve_mount_id there;

    if (rec->filesystem == NULL || serve_mounts_at(&there, rec->filesystem) < 0)
        return false;
    if (rec->device != NULL)
        return is_own(f) && serve_mounts_has(rec->filesystem, rec->device);
    return there.fuse && !there.ours && there.user_id == (long)f->folder.owner;
}

/* -EBUSY without words. */
static int unmount(const char *point, bool force, struct report *rep)
{
    int r = -EBUSY;

    for (int i = 0; r == -EBUSY && i < BUSY_TRIES; i++) {
        if (i > 0)
            poll(NULL, 0, TRY_MS);
        r = serve_unmount(point, false, rep);
        if (force && r == -EBUSY)
            r = serve_unmount(point, true, rep);
    }
    return r == -ENOENT ? 0 : r;
}

static int say_busy(const char *point, const struct cmd_holders_except *except, struct report *rep)
{
    int r = cmd_holders_say(point, except, rep);

    return r < 0 ? r : report_error(rep, EBUSY, "busy: somebody uses %s", point);
}

static const char *image_path(const struct serve_found *f, char out[PATH_MAX])
{
    snprintf(out, PATH_MAX, "%s/image", f->record.mountpoint);
    return out;
}

/* Before anything goes: who would stand in the way of the file system, and after it of the image?
 * Where nothing is attached the kernel itself tells before anything has happened. */
static int check_free(const struct serve_found *f, struct report *rep)
{
    const struct serve_record *rec = &f->record;
    const struct cmd_holders_except except = {.program = rec->device == NULL ? FUSE2FS : NULL,
                                              .device = rec->device};
    int r = 0;

    if (cmd_teardown_has_filesystem(f))
        r = cmd_holders_say(rec->filesystem, NULL, rep);
    if (r == 0 && rec->filesystem != NULL)
        r = cmd_holders_say(rec->mountpoint, &except, rep);
    return r;
}

/* What a user has on a loop device is from udisks2, whose it is to unmount. */
static bool is_by_udisks(const struct serve_found *f)
{
    return geteuid() != 0 && is_own(f) && f->record.device != NULL;
}

static int unmount_filesystem(const struct serve_found *f, bool force, struct report *rep)
{
    const char *point = f->record.filesystem;
    int r;

    if (!cmd_teardown_has_filesystem(f))
        return 0;
    r = is_by_udisks(f) ? cmd_udisks_unmount(f->record.device, force, rep)
                        : unmount(point, force, rep);
    return r == -EBUSY ? say_busy(point, NULL, rep) : r;
}

static int detach_loops(const struct serve_found *f, bool force, struct report *rep)
{
    char image[PATH_MAX];
    int r = 0;

    image_path(f, image);
    if (is_by_udisks(f))
        r = cmd_udisks_delete(f->record.device, image, rep);
    else if (geteuid() != 0)
        return 0;
    else if (f->record.device != NULL && is_own(f))
        r = cmd_loop_detach(f->record.device, image, rep);
    if (geteuid() == 0 && (is_own(f) || cmd_teardown_has_image(f))) /* else only a user's word */
        cmd_loop_detach_unused(f->record.mountpoint, image, f->record.device, rep);
    if (r != -EBUSY || force)
        return force ? 0 : r;
    r = cmd_holders_elsewhere(f->record.device, f->record.pid, rep);
    return r < 0 ? r : report_error(rep, EBUSY, "busy: %s is in use", f->record.device);
}

/* The number at member ("/stats/errors") of its answer; 0 when there is none. */
static int64_t ask_number(const struct serve_found *f, const char *request, const char *member)
{
    struct json_object *answer, *v;
    int64_t n = 0;

    if (serve_control_ask(&answer, f, request, NULL, NULL) < 0)
        return 0;
    if (json_pointer_get(answer, member, &v) == 0)
        n = json_object_get_int64(v);
    json_object_put(answer);
    return n;
}

static int64_t ask_opens(const struct serve_found *f)
{
    return ask_number(f, "status", "/opens");
}

static void wait_for_fuse2fs(const struct serve_found *f)
{
    if (f->record.filesystem == NULL || f->record.device != NULL)
        return;
    for (int i = 0; i < OPEN_TRIES && ask_opens(f) > 0; i++) {
        if (!cmd_holders_has(f->record.mountpoint, FUSE2FS) && i > BUSY_TRIES)
            return; /* it is somebody else's, who will be named */
        poll(NULL, 0, TRY_MS);
    }
}

/* Where our mount table is not the daemon's (another namespace), the daemon does it itself. */
static int unmount_image(const struct serve_found *f, bool force, struct cmd_waiting *w,
                         struct report *rep)
{
    const char *point = f->record.mountpoint;
    struct json_object *answer;
    int r;

    if (cmd_teardown_has_image(f)) {
        r = unmount(point, force, rep);
        if (r == -EBUSY && cmd_waiting_give_up(w)) /* whose writer may be what keeps it busy */
            r = unmount(point, force, rep);
        if (r == -EBUSY)
            return say_busy(point, NULL, rep);
        if (r < 0 || (!force && !cmd_holders_is_elsewhere(f->record.pid)))
            return r;
    }
    r = force ? 0 : cmd_holders_elsewhere(f->record.container, f->record.pid, rep);
    if (r < 0)
        return r;
    if (serve_control_ask(&answer, f, "stop", NULL, NULL) == 0)
        json_object_put(answer);
    return 0;
}

/* Did the daemon leave word that its last flush failed? That word has done its work then. One that
 * was killed meanwhile leaves its record, too. */
static int check_lost(const struct serve_found *f, struct report *rep)
{
    AUTO_FOUND struct serve_found now = {0};

    if (serve_registry_again(&now, f) < 0 || now.alive)
        return 0;
    cmd_teardown_dead(&now, now.record.lost ? NULL : rep);
    if (!now.record.lost)
        return 0;
    return report_error(rep, EIO,
                        "it is unmounted, but what was written since the last successful sync may "
                        "not have reached the container (check the disk below; the system log has "
                        "the error)");
}

/* Somebody who copied the mount table before has the mount still, and so the daemon does not end. A
 * large container on a slow disk may also just have much to write. */
static int wait_given_back(const struct serve_found *f, struct report *rep)
{
    unsigned waited_ms = 0;
    int r;

    for (; (r = serve_registry_wait(f, CLOSE_MS)) == -ETIMEDOUT; waited_ms += CLOSE_MS) {
        r = cmd_holders_elsewhere(f->record.container, f->record.pid, rep);
        if (r < 0)
            return r;
        if (waited_ms == 0)
            report_info(rep, "waiting for process %d to close the container", (int)f->record.pid);
        if (!is_own(f) && waited_ms >= OTHERS_MS)
            return report_error(rep, ETIMEDOUT, "it is unmounted, but process %d has not closed it",
                                (int)f->record.pid);
    }
    return r;
}

/* The daemon's last act before its end is to give the name back; a script that goes on when we
 * return may look for the process. */
static int wait_closed(const struct serve_found *f, int process, struct report *rep)
{
    struct pollfd ended = {.fd = process, .events = POLLIN};
    int r = wait_given_back(f, rep);

    if (r == 0 && process >= 0)
        poll(&ended, 1, END_MS);
    return r < 0 ? r : check_lost(f, rep);
}

/* What attach made where the file system is seen: the folder, or a link if it still is that. */
static void remove_folder(const struct serve_found *f)
{
    const struct serve_record *rec = &f->record;
    char to[PATH_MAX];
    ssize_t n;

    if (!is_own(f) || rec->filesystem == NULL)
        return;
    if (rec->made_filesystem)
        rmdir(rec->filesystem);
    n = rec->link != NULL ? readlink(rec->link, to, sizeof(to) - 1) : -1;
    if (n < 0)
        return;
    to[n] = '\0';
    if (strcmp(to, rec->filesystem) == 0)
        unlink(rec->link);
}

static int take_down(const struct serve_found *f, bool force, struct cmd_waiting *w,
                     struct report *rep)
{
    AUTO_FD int process = (int)syscall(SYS_pidfd_open, f->record.pid, 0);
    int r = unmount_filesystem(f, force, rep);
    int64_t n_errors = 0;

    if (r == 0)
        r = detach_loops(f, force, rep);
    if (r < 0)
        return r;
    wait_for_fuse2fs(f);
    /* Who uses the image itself has heard of errors, a file system may have swallowed them. Without
     * one a daemon that was stopped, and cannot answer, must not delay the unmount. */
    if (f->record.filesystem != NULL)
        n_errors = ask_number(f, "counters", "/stats/errors");
    r = unmount_image(f, force, w, rep);
    if (r == 0)
        r = wait_closed(f, process, rep);
    if (r == 0 && n_errors > 0)
        report_warn(rep,
                    "%" PRId64 " request%s to its disk failed while it was mounted: what was "
                    "written last may be missing (the system log says why; check the file system "
                    "before you use it)",
                    n_errors, n_errors == 1 ? "" : "s");
    if (r == 0)
        remove_folder(f);
    return r;
}

/* A file system writes as it is unmounted, and that would wait for a resume. By force its writes
 * fail instead, and so does all that waits now. */
static int end_suspend(const struct serve_found *f, bool force, struct report *rep)
{
    struct json_object *answer;

    if (!f->record.suspended)
        return 0;
    if (!force && cmd_teardown_has_filesystem(f))
        return report_error(rep, EBUSY,
                            "it is suspended, and the file system on it cannot write (\"hushvol "
                            "resume %s\" first; --force gives up what is not written)",
                            f->record.name);
    if (force && serve_control_ask(&answer, f, "give-up-held", NULL, rep) == 0)
        json_object_put(answer);
    return 0;
}

int cmd_teardown(const struct serve_found *f, bool force, struct report *rep)
{
    struct cmd_waiting *w = NULL;
    int r = end_suspend(f, force, rep);

    if (r == 0 && !force)
        r = check_free(f, rep);

    if (r == 0)
        r = cmd_waiting_start(&w, f, rep);
    if (r == 0)
        r = take_down(f, force, w, rep);
    cmd_waiting_stop(w);
    return r;
}

/* Somebody else may live at the same folder by now. */
static bool is_taken_over(const char *point)
{
    struct serve_found *list;
    unsigned n;
    bool found = false;

    if (serve_registry_list(&list, &n) == 0)
        for (unsigned i = 0; i < n; i++)
            found = found || (list[i].alive && strcmp(list[i].record.mountpoint, point) == 0);
    serve_registry_list_done(list, n);
    return found;
}

int cmd_teardown_dead(const struct serve_found *f, struct report *rep)
{
    const struct serve_record *rec = &f->record;
    int r = unmount_filesystem(f, true, rep);

    if (r == 0)
        r = detach_loops(f, true, rep);
    if (r == 0 && cmd_teardown_has_image(f) && !is_taken_over(rec->mountpoint))
        r = unmount(rec->mountpoint, true, rep);
    if (r == 0)
        r = serve_registry_remove(f);
    if (r < 0)
        return r;
    if (geteuid() == 0)
        cmd_loop_detach_dead(rep);
    if (rec->made_mountpoint && is_own(f))
        rmdir(rec->mountpoint);
    remove_folder(f);
    report_info(rep, "cleaned up what %s left behind when its process %d died", rec->name,
                (int)rec->pid);
    return 0;
}
