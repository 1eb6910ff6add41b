/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/loop.h"

/* By ioctl (loop(4)) instead of losetup(8): block size and direct mode are part of one atomic step,
 * and its errors are ours to explain. */

#include "base/auto.h"
#include "fuse/mounts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/loop.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#define RACES 32      /* somebody else may take the device that the kernel named to us */
#define GONE_TRIES 20 /* looks whether the kernel has let go */
#define GONE_MS 50

int cmd_loop_possible(void)
{
    AUTO_FD int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);

    return control < 0 ? -EOPNOTSUPP : 0;
}

static int configure(int loop, int image, const struct cmd_loop_spec *spec)
{
    struct loop_config config = {
        .fd = (uint32_t)image,
        .block_size = spec->block_size,
        .info = {.lo_offset = spec->off,
                 .lo_sizelimit = spec->len,
                 .lo_flags = LO_FLAGS_DIRECT_IO | (spec->read_only ? LO_FLAGS_READ_ONLY : 0)},
    };

    snprintf((char *)config.info.lo_file_name, sizeof(config.info.lo_file_name), "%s", spec->image);
    return ioctl(loop, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
}

static bool is_direct(int loop)
{
    struct loop_info64 info = {0};

    return ioctl(loop, LOOP_GET_STATUS64, &info) == 0 && info.lo_flags & LO_FLAGS_DIRECT_IO;
}

static int attach_free(char device[CMD_LOOP_NAME], int control, int image,
                       const struct cmd_loop_spec *spec, struct report *rep)
{
    AUTO_FD int loop = -1;
    int n = ioctl(control, LOOP_CTL_GET_FREE);
    int r;

    if (n < 0)
        return report_errno(rep, errno, "no free loop device");
    snprintf(device, CMD_LOOP_NAME, "/dev/loop%d", n);
    loop = open(device, (spec->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (loop < 0)
        return report_errno(rep, errno, "cannot open %s", device);
    r = configure(loop, image, spec);
    if (r < 0 && r != -EBUSY)
        return report_errno(rep, -r, "cannot set up %s", device);
    if (r == 0 && !is_direct(loop))
        report_warn(rep, "%s is not in direct I/O mode: it will be slow (needs Linux 4.10)",
                    device);
    return r;
}

int cmd_loop_attach(char device[CMD_LOOP_NAME], const struct cmd_loop_spec *spec,
                    struct report *rep)
{
    AUTO_FD int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    AUTO_FD int image = -1;
    int r = -EBUSY;

    if (control < 0)
        return report_error(rep, EOPNOTSUPP, "no loop devices here: /dev/loop-control: %s",
                            strerror(errno));
    image = open(spec->image, (spec->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
    if (image < 0)
        return report_errno(rep, errno, "cannot open %s", spec->image);
    for (int i = 0; r == -EBUSY && i < RACES; i++)
        r = attach_free(device, control, image, spec, rep);
    return r == -EBUSY ? report_error(rep, EBUSY, "no free loop device") : r;
}

static bool read_backing(char out[PATH_MAX], const char *device)
{
    char path[PATH_MAX];
    const char *name = strrchr(device, '/');
    bool found;
    FILE *f;

    snprintf(path, sizeof(path), "/sys/block/%.64s/loop/backing_file", name ? name + 1 : device);
    f = fopen(path, "re");
    if (f == NULL)
        return false;
    found = fgets(out, PATH_MAX, f) != NULL;
    fclose(f);
    if (found)
        out[strcspn(out, "\n")] = '\0';
    return found;
}

bool cmd_loop_is_on(const char *device, const char *image)
{
    char backing[PATH_MAX];

    return read_backing(backing, device) &&
           (strcmp(backing, image) == 0 || strcmp(backing, "/image") == 0);
}

/* Clearing a device that is open elsewhere succeeds and happens later, with the last close; so look
 * whether it has happened. Udev may look into it for a moment. O_EXCL finds those whose device must
 * not go even then: device-mapper, swap, a mount in another namespace. */
int cmd_loop_detach(const char *device, const char *image, struct report *rep)
{
    AUTO_FD int loop = -1;

    if (!cmd_loop_is_on(device, image))
        return 0;
    if (serve_mounts_has(NULL, device))
        return -EBUSY;
    loop = open(device, O_RDONLY | O_EXCL | O_CLOEXEC);
    if (loop < 0 && errno == EBUSY)
        return -EBUSY;
    if (loop < 0 || (ioctl(loop, LOOP_CLR_FD) < 0 && errno != ENXIO))
        return report_errno(rep, errno, "cannot detach %s", device);
    close(TAKE_FD(loop));
    for (int i = 0; i < GONE_TRIES; i++) {
        if (!cmd_loop_is_on(device, image))
            return 0;
        poll(NULL, 0, GONE_MS);
    }
    return -EBUSY;
}

int cmd_loop_set_capacity(const char *device, struct report *rep)
{
    AUTO_FD int loop = open(device, O_RDONLY | O_CLOEXEC);

    if (loop < 0 || ioctl(loop, LOOP_SET_CAPACITY) < 0)
        return report_errno(rep, errno, "cannot tell %s its new size (\"losetup -c %s\" does)",
                            device, device);
    return 0;
}

void cmd_loop_each(void (*fn)(const char *device, const char *backing, void *arg), void *arg)
{
    DIR *block = opendir("/sys/block");
    struct dirent *e;

    while (block != NULL && (e = readdir(block)) != NULL) {
        char device[CMD_LOOP_NAME], backing[PATH_MAX];

        snprintf(device, sizeof(device), "/dev/%.20s", e->d_name);
        if (strncmp(e->d_name, "loop", 4) == 0 && read_backing(backing, device))
            fn(device, backing, arg);
    }
    if (block != NULL)
        closedir(block);
}

bool cmd_loop_on_mount(const char *device, const struct serve_mount_id *mount)
{
    AUTO_FD int loop = open(device, O_RDONLY | O_CLOEXEC);
    struct loop_info64 info;

    if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) < 0)
        return true;
    return info.lo_device == makedev(mount->major, mount->minor);
}

struct others {
    const char *image, *except;
    struct serve_mount_id mount;
    struct report *rep;
};

static void detach_other(const char *device, const char *backing, void *arg)
{
    const struct others *o = arg;

    if (strcmp(backing, o->image) != 0 || (o->except != NULL && strcmp(device, o->except) == 0))
        return;
    if (!serve_mounts_has(NULL, device) && cmd_loop_on_mount(device, &o->mount) &&
        cmd_loop_detach(device, o->image, NULL) == 0)
        report_info(o->rep, "detached %s", device);
}

void cmd_loop_detach_unused(const char *mountpoint, const char *image, const char *except,
                            struct report *rep)
{
    struct others o = {.image = image, .except = except, .rep = rep};

    if (serve_mounts_at(&o.mount, mountpoint) == 0)
        cmd_loop_each(detach_other, &o);
}

/* Once the image is unmounted the kernel shows its path from there, as "/image"; and it cannot tell
 * the status of a device without asking the file, which is how we know that nobody answers. */
static void detach_dead(const char *device, const char *backing, void *arg)
{
    AUTO_FD int loop = -1;
    struct loop_info64 info;

    if (strcmp(backing, "/image") != 0 || serve_mounts_has(NULL, device))
        return;
    loop = open(device, O_RDONLY | O_CLOEXEC);
    if (loop < 0 || ioctl(loop, LOOP_GET_STATUS64, &info) == 0 || errno != ENOTCONN)
        return;
    if (ioctl(loop, LOOP_CLR_FD) < 0)
        return;
    close(TAKE_FD(loop));
    if (!cmd_loop_is_on(device, "/image")) /* else it goes with its last user */
        report_info(arg, "detached %s", device);
}

void cmd_loop_detach_dead(struct report *rep)
{
    cmd_loop_each(detach_dead, rep);
}
