/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/file_layer.h"

/* A regular file or a block device at the bottom of a stack, by plain pread and pwrite: the engine
 * above calls from all cores at once, which is all the parallelism that io_uring would add.
 *
 * The lock is an OFD lock: it belongs to this open file, not to the process (a POSIX lock would
 * vanish when any library closed another descriptor of the same file) and survives the fork into
 * the background. Advisory locks mean nothing to the kernel itself, so a device is opened with
 * O_EXCL as well, which keeps mounts, device-mapper and loop devices away. */

#include "base/bytes.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

enum {
    BOUNCE_BUFFERS = 8,
    BOUNCE_SIZE = 128 * 1024,
    BOUNCE_ALIGN = 4096, /* of what base/buf.h hands out */
};

static bool file_must_bounce(const struct file *f, const void *buf)
{
    return f->bounce != NULL && ((uintptr_t)buf & (f->mem_align - 1)) != 0;
}

/* One pread: bytes read, or -errno. */
static ssize_t file_read_some(struct file *f, unsigned char *buf, size_t len, uint64_t off)
{
    AUTO_BUF struct buf *bounce = NULL;
    ssize_t n;

    if (!file_must_bounce(f, buf)) {
        n = pread(f->fd, buf, len, (off_t)off);
        return n < 0 ? -errno : n;
    }
    bounce = buf_take(f->bounce);
    n = pread(f->fd, bounce->bytes, len < bounce->size ? len : bounce->size, (off_t)off);
    if (n < 0)
        return -errno;
    memcpy(buf, bounce->bytes, (size_t)n);
    return n;
}

static ssize_t file_write_some(struct file *f, const unsigned char *buf, size_t len, uint64_t off)
{
    AUTO_BUF struct buf *bounce = NULL;
    ssize_t n;

    if (!file_must_bounce(f, buf)) {
        n = pwrite(f->fd, buf, len, (off_t)off);
        return n < 0 ? -errno : n;
    }
    bounce = buf_take(f->bounce);
    if (len > bounce->size)
        len = bounce->size;
    memcpy(bounce->bytes, buf, len);
    n = pwrite(f->fd, bounce->bytes, len, (off_t)off);
    return n < 0 ? -errno : n;
}

/* Where the next call goes on after one that moved n bytes: O_DIRECT wants it at a whole granule. 0
 * bytes is no progress: the file was cut under us, or the device ends early. */
static int file_progress(const struct file *f, ssize_t n, size_t *done)
{
    if (n == -EINTR)
        n = 0;
    else if (n < 0)
        return (int)n;
    else if ((size_t)n < f->blk.granule)
        return -EIO;
    *done = bytes_round_down((size_t)n, f->blk.granule);
    return 0;
}

/* serve_read → align_read → plain_read → FILE_READ */
static int file_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    struct file *f = container_of(b, struct file, blk);
    unsigned char *p = buf;

    while (len > 0) {
        size_t done;
        int r = file_progress(f, file_read_some(f, p, len, off), &done);

        if (r < 0)
            return r;
        p += done;
        off += done;
        len -= done;
    }
    return 0;
}

int file_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    struct file *f = container_of(b, struct file, blk);
    const unsigned char *p = buf;

    while (len > 0) {
        size_t done;
        int r = file_progress(f, file_write_some(f, p, len, off), &done);

        if (r < 0)
            return r;
        p += done;
        off += done;
        len -= done;
    }
    return 0;
}

static int file_flush(struct blk *b)
{
    struct file *f = container_of(b, struct file, blk);
    int r;

    do
        r = fdatasync(f->fd);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

static int file_stat(struct blk *b, struct blk_stat *ret)
{
    struct file *f = container_of(b, struct file, blk);
    struct stat st;

    if (fstat(f->fd, &st) < 0)
        return -errno;
    ret->allocated = f->device ? b->size : (uint64_t)st.st_blocks * 512;
    return 0;
}

int file_real_size(const struct file *f, uint64_t *ret)
{
    struct stat st;

    if (f->device)
        return ioctl(f->fd, BLKGETSIZE64, ret) < 0 ? -errno : 0;
    if (fstat(f->fd, &st) < 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    return 0;
}

/* The file has that size already (blk_file_extend()), or gets it afterwards (blk_file_shrink()). */
static int file_resize(struct blk *b, uint64_t size)
{
    uint64_t there;
    int r = file_real_size(container_of(b, struct file, blk), &there);

    if (r < 0)
        return r;
    if (size > there)
        return -EINVAL;
    b->size = size;
    return 0;
}

static void file_close(struct blk *b)
{
    struct file *f = container_of(b, struct file, blk);

    file_draft_close(f->draft);
    bufs_close(f->bounce);
    if (f->fd >= 0)
        close(f->fd);
    free(f);
}

static const struct blk_ops file_ops = {
    .name = "file",
    .read = file_read,
    .write = file_write,
    .flush = file_flush,
    .discard = file_discard,
    .write_zeroes = file_write_zeroes,
    .extent = file_extent,
    .stat = file_stat,
    .resize = file_resize,
    .close = file_close,
};

struct file *file_new(void)
{
    struct file *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return NULL;
    f->blk = (struct blk){.ops = &file_ops, .granule = 1};
    f->fd = -1;
    return f;
}

void blk_file_drop_cache(const struct blk *b)
{
    posix_fadvise(blk_file_fd(b), 0, 0, POSIX_FADV_DONTNEED);
}

int blk_file_fd(const struct blk *b)
{
    return container_of(b, const struct file, blk)->fd;
}

int file_check_kind(const struct stat *st, const char *path, struct report *rep)
{
    if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
        return 0;
    return report_error(rep, EINVAL, "%s is a %s, not a file or a block device", path,
                        S_ISDIR(st->st_mode)    ? "folder"
                        : S_ISCHR(st->st_mode)  ? "character device"
                        : S_ISFIFO(st->st_mode) ? "FIFO"
                                                : "socket");
}

/* A device that is set read-only can be opened for writing all the same; only its writes fail. */
static bool file_device_read_only(int fd)
{
    int read_only = 0;

    return ioctl(fd, BLKROGET, &read_only) == 0 && read_only != 0;
}

/* stat comes first because to open some things is to do something (a tape rewinds, a watchdog
 * starts); O_NONBLOCK because what is there may be another thing, a FIFO, by the time of the open.
 */
static int file_open_fd(const struct blk_file_spec *spec, struct report *rep)
{
    int flags = (spec->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    AUTO_FD int fd = -1;
    struct stat st;
    int r;

    if (stat(spec->path, &st) < 0)
        return report_errno(rep, errno, "cannot open %s", spec->path);
    r = file_check_kind(&st, spec->path, rep);
    if (r < 0)
        return r;
    if (S_ISBLK(st.st_mode) && !spec->read_only && spec->lock != BLK_LOCK_NONE)
        flags |= O_EXCL;
    fd = open(spec->path, flags);
    if (fd < 0 && errno == EBUSY)
        return -EBUSY;
    if (fd < 0 || fstat(fd, &st) < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
        return report_errno(rep, errno, "cannot open %s", spec->path);
    r = file_check_kind(&st, spec->path, rep);
    if (r == 0 && S_ISBLK(st.st_mode) && !spec->read_only && file_device_read_only(fd))
        return report_errno(rep, EROFS, "cannot write to %s", spec->path);
    return r < 0 ? r : TAKE_FD(fd);
}

int file_lock(int fd, short type, pid_t *holder, struct report *rep)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};
    struct flock other = all;

    if (fcntl(fd, F_OFD_SETLK, &all) == 0)
        return 0;
    if (errno != EAGAIN && errno != EACCES)
        return report_errno(rep, errno, "cannot lock the container");
    /* The kernel tells who holds a POSIX lock; an OFD lock belongs to nobody in particular, -1. */
    if (holder != NULL && fcntl(fd, F_OFD_GETLK, &other) == 0 && other.l_type != F_UNLCK &&
        other.l_pid > 0)
        *holder = other.l_pid;
    return -EBUSY;
}

/* Somebody may have put a new container in the place of this one between our open and our lock;
 * what we hold has no name then. */
static int file_check_still_there(int fd, const char *path)
{
    struct stat ours, named;

    if (fstat(fd, &ours) < 0)
        return -errno;
    if (stat(path, &named) < 0 || named.st_dev != ours.st_dev || named.st_ino != ours.st_ino)
        return -EBUSY;
    return 0;
}

static int file_find_size(struct file *f, struct report *rep)
{
    struct stat st;
    int r = fstat(f->fd, &st) < 0 ? -errno : 0;

    f->device = r == 0 && S_ISBLK(st.st_mode);
    if (r == 0)
        r = file_real_size(f, &f->blk.size);
    return r < 0 ? report_errno(rep, -r, "cannot find out the size") : 0;
}

/* What O_DIRECT wants of offsets, and of memory in f->mem_align; 0: it is not possible here. */
static uint32_t file_direct_align(struct file *f)
{
    struct statx stx = {0};
    int sector = 4096;

    if (statx(f->fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &stx) == 0 &&
        stx.stx_mask & STATX_DIOALIGN) {
        f->mem_align = stx.stx_dio_mem_align;
        return f->mem_align <= BOUNCE_ALIGN ? stx.stx_dio_offset_align : 0;
    }
    if (f->device && ioctl(f->fd, BLKSSZGET, &sector) < 0)
        return 0;
    f->mem_align = (uint32_t)sector;
    return f->mem_align <= BOUNCE_ALIGN ? (uint32_t)sector : 0;
}

static int file_go_direct(struct file *f, enum blk_direct want, struct report *rep)
{
    uint32_t granule;

    if (want == BLK_DIRECT_OFF || (want == BLK_DIRECT_AUTO && !f->device))
        return 0;
    granule = file_direct_align(f);
    if (granule != 0 && f->blk.size % granule != 0 && want == BLK_DIRECT_AUTO)
        return 0;
    if (granule != 0 && f->blk.size % granule != 0)
        return report_error(rep, EOPNOTSUPP,
                            "direct I/O works in units of %u bytes here and the size is not a "
                            "multiple of them (use direct=off)",
                            granule);
    if (granule == 0 || fcntl(f->fd, F_SETFL, fcntl(f->fd, F_GETFL) | O_DIRECT) < 0) {
        if (want == BLK_DIRECT_AUTO)
            return 0;
        return report_error(rep, EOPNOTSUPP,
                            "direct I/O is not possible on what holds the container (use "
                            "direct=off)");
    }
    f->blk.granule = granule;
    if (bufs_open(&f->bounce, BOUNCE_BUFFERS, BOUNCE_SIZE) < 0)
        return report_errno(rep, ENOMEM, "cannot open the container");
    return 0;
}

void blk_file_leave_direct(struct blk *b)
{
    struct file *f = container_of(b, struct file, blk);

    assert(b->ops == &file_ops);
    if (b->granule == 1)
        return;
    fcntl(f->fd, F_SETFL, fcntl(f->fd, F_GETFL) & ~O_DIRECT);
    bufs_close(TAKE(f->bounce));
    b->granule = 1;
}

int blk_file_open(struct blk **ret, const struct blk_file_spec *spec, pid_t *holder,
                  struct report *rep)
{
    AUTO_BLK struct blk *b = NULL;
    struct file *f = file_new();
    int r = 0;

    if (holder != NULL)
        *holder = 0;
    if (f == NULL)
        return report_errno(rep, ENOMEM, "cannot open the container");
    b = &f->blk;
    b->read_only = spec->read_only;
    f->fd = file_open_fd(spec, rep);
    if (f->fd < 0)
        return f->fd;
    if (spec->lock != BLK_LOCK_NONE)
        r = file_lock(f->fd, spec->read_only ? F_RDLCK : F_WRLCK, holder, rep);
    if (r == 0 && spec->lock != BLK_LOCK_NONE)
        r = file_check_still_there(f->fd, spec->path);
    if (r == 0)
        r = file_find_size(f, rep);
    if (r == 0)
        r = file_go_direct(f, spec->direct, rep);
    if (r < 0)
        return r;
    *ret = TAKE(b);
    return 0;
}
