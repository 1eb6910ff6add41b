/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/udisks.h"

/* Through its command udisksctl: it opens the image as the user and hands over the descriptor.
 * What it prints is translated, so results are read from the kernel: the device's name is the only
 * word taken from it, and believed when the kernel has the image behind that device. */

#include "base/run.h"
#include "fuse/mounts.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define PROGRAM "udisksctl"
#define UNATTENDED "--no-user-interaction"
#define PROBE_TRIES 30 /* for udisks2 to hear from udev what is on a new device */
#define GONE_TRIES 40
#define WAIT_MS 100

/* The last line is the reason; before it are complaints, such as that there is no terminal. */
static void keep_reason(char said[REPORT_LINE], int status)
{
    size_t len = strlen(said);
    const char *line;

    while (len > 0 && said[len - 1] == '\n')
        said[--len] = '\0';
    line = strrchr(said, '\n');
    if (line != NULL)
        memmove(said, line + 1, strlen(line));
    if (said[0] == '\0')
        snprintf(said, REPORT_LINE, PROGRAM " ended with status %d", status);
}

/* Run it, its words in said. 0; -ENOENT it is not there; -EIO it failed, the reason is in said. */
static int ask(const char *const argv[], char said[REPORT_LINE])
{
    int r = run_read(argv, said, REPORT_LINE, NULL);

    if (r == -ENOENT)
        snprintf(said, REPORT_LINE, "udisks2 is not installed");
    else if (r < 0)
        snprintf(said, REPORT_LINE, "cannot run " PROGRAM);
    else if (r > 0)
        keep_reason(said, r);
    return r > 0 ? -EIO : r;
}

int cmd_udisks_answers(char reason[REPORT_LINE])
{
    const char *const argv[] = {PROGRAM, "status", NULL};
    int r = ask(argv, reason);

    return r < 0 && r != -ENOENT ? -EOPNOTSUPP : r;
}

/* The last "/dev/loopN" in the text: the image's path comes before it, or after in some language,
 * and then the kernel's word is missing. */
static bool find_device(char device[CMD_LOOP_NAME], const char *text)
{
    const char *found = NULL;

    for (const char *at = text; (at = strstr(at, "/dev/loop")) != NULL; at++)
        found = at;
    return found != NULL && sscanf(found, "%31[/a-z0-9]", device) == 1;
}

int cmd_udisks_loop(char device[CMD_LOOP_NAME], const struct cmd_loop_spec *spec,
                    char reason[REPORT_LINE])
{
    char off[24], len[24];
    const char *argv[12] = {PROGRAM, "loop-setup", UNATTENDED, "--file", spec->image};
    unsigned n = 5;
    int r;

    if (spec->read_only)
        argv[n++] = "--read-only";
    if (spec->off != 0) {
        snprintf(off, sizeof(off), "%" PRIu64, spec->off);
        argv[n++] = "--offset";
        argv[n++] = off;
    }
    if (spec->len != 0) {
        snprintf(len, sizeof(len), "%" PRIu64, spec->len);
        argv[n++] = "--size";
        argv[n++] = len;
    }
    r = ask(argv, reason);
    if (r < 0)
        return -EOPNOTSUPP;
    if (find_device(device, reason) && cmd_loop_is_on(device, spec->image))
        return 0;
    snprintf(reason, REPORT_LINE, PROGRAM " does not say which loop device it made");
    return -EOPNOTSUPP;
}

struct where {
    const char *device;
    char *point; /* PATH_MAX bytes */
};

static int look(const struct serve_mounted *m, void *arg)
{
    const struct where *w = arg;

    if (strcmp(m->source, w->device) != 0)
        return 0;
    snprintf(w->point, PATH_MAX, "%s", m->point);
    return 1;
}

static bool find_mounted(char point[PATH_MAX], const char *device)
{
    struct where w = {.device = device, .point = point};

    return serve_mounts_each(look, &w) == 1;
}

/* A desktop may mount a new device by itself, at once: then ours fails, and all is well. */
int cmd_udisks_mount(char point[PATH_MAX], const char *device, bool read_only,
                     char reason[REPORT_LINE])
{
    const char *const argv[] = {
        PROGRAM, "mount", UNATTENDED, "--block-device", device, read_only ? "-o" : NULL,
        "ro",    NULL};
    int r = -EIO;

    for (int i = 0; r < 0 && i < PROBE_TRIES; i++) {
        if (i > 0)
            poll(NULL, 0, WAIT_MS);
        r = ask(argv, reason);
        if (find_mounted(point, device))
            return 0;
        if (r < 0 && strstr(reason, "not a mountable filesystem") == NULL)
            break;
    }
    if (r == 0)
        snprintf(reason, REPORT_LINE, PROGRAM " mounted %s where we cannot see it", device);
    return -EOPNOTSUPP;
}

int cmd_udisks_unmount(const char *device, bool force, struct report *rep)
{
    const char *const argv[] = {
        PROGRAM, "unmount", UNATTENDED, "--block-device", device, force ? "--force" : NULL, NULL};
    char said[REPORT_LINE], point[PATH_MAX];
    int r = ask(argv, said);

    if (!find_mounted(point, device))
        return 0;
    if (r == 0 || strstr(said, "DeviceBusy") != NULL)
        return -EBUSY;
    return report_error(rep, EIO, "udisks2 cannot unmount %s: %s", point, said);
}

int cmd_udisks_delete(const char *device, const char *image, struct report *rep)
{
    const char *const argv[] = {PROGRAM, "loop-delete", UNATTENDED, "--block-device", device, NULL};
    char said[REPORT_LINE];
    int r;

    if (!cmd_loop_is_on(device, image)) /* it goes by itself when udisks2 unmounts the last of it */
        return 0;
    if (serve_mounts_has(NULL, device))
        return -EBUSY;
    r = ask(argv, said);
    for (int i = 0; i < GONE_TRIES; i++) {
        if (!cmd_loop_is_on(device, image))
            return 0;
        if (r < 0)
            break;
        poll(NULL, 0, WAIT_MS);
    }
    return r < 0 ? report_error(rep, EIO, "udisks2 cannot take %s down: %s", device, said) : -EBUSY;
}
