/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/file_layer.h"

/* Room for a container: all that a new one will need, and more or less for one that is there.
 *
 * A file that grows is larger, durably, before anybody relies on it, and one that shrinks is cut
 * when nobody relies on the rest any more; the layer's own size changes in between, by
 * blk_resize(). So whatever stops this half-way leaves a file that is at least as large as its
 * header says. */

#include "base/bytes.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/vfs.h>

#define PIECE_ALLOCATED (UINT64_C(1) << 30) /* bytes between two looks at the progress */
#define PIECE_WRITTEN (UINT64_C(32) << 20)

/* What cannot fit is known without trying: to try would fill the host's disk (or memory, on a
 * tmpfs) to the last block, for a moment, under everybody else. Blocks kept for root count as room.
 */
static int file_check_room(const struct file *f, uint64_t len)
{
    struct statfs fs;

    if (fstatfs(f->fd, &fs) < 0 || fs.f_blocks == 0) /* some file systems do not tell */
        return 0;
    return len / (uint64_t)fs.f_bsize > fs.f_bfree ? -ENOSPC : 0;
}

/* In pieces, so that whoever waits can see it grow, or stop it. */
int file_preallocate(struct file *f, uint64_t off, uint64_t size, struct progress *progress)
{
    uint64_t from = off, total = size - off;
    bool fallocates = true;
    int r = file_check_room(f, total);

    while (r == 0 && off < size) {
        uint64_t piece = fallocates ? PIECE_ALLOCATED : PIECE_WRITTEN;
        uint64_t n = size - off < piece ? size - off : piece;

        r = progress_step(progress, off - from, total);
        if (r == 0 && fallocates)
            r = file_fallocate(f, 0, n, off);
        else if (r == 0)
            r = file_write_out_zeros(f, n, off);
        if (fallocates && (r == -EOPNOTSUPP || r == -ENOSYS)) {
            fallocates = false;
            r = 0;
            continue;
        }
        off += n;
    }
    return r;
}

static int file_cut(struct file *f, uint64_t size)
{
    int r;

    do
        r = ftruncate(f->fd, (off_t)size);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

static int file_sync(struct file *f)
{
    int r;

    do
        r = fsync(f->fd);
    while (r < 0 && errno == EINTR);
    return r < 0 ? -errno : 0;
}

static int file_grow(struct file *f, uint64_t end, uint64_t size, bool preallocate,
                     struct progress *progress)
{
    int r = file_cut(f, end);

    if (r == 0 && preallocate)
        r = file_preallocate(f, end, size, progress);
    if (r == 0)
        r = file_cut(f, size); /* also when all was preallocated: some file systems keep the size */
    return r == 0 ? file_sync(f) : r;
}

static int device_check(const struct file *f, uint64_t size, struct report *rep)
{
    char has[SIZE_TEXT], needs[SIZE_TEXT];
    uint64_t there;
    int r = file_real_size(f, &there);

    if (r < 0)
        return report_errno(rep, -r, "cannot find out the size of the device");
    if (size > there)
        return report_error(rep, ENOSPC, "the device has %s, the container needs %s",
                            size_format(has, there), size_format(needs, size));
    return 0;
}

int blk_file_extend(struct blk *b, uint64_t end, uint64_t size, bool preallocate,
                    struct progress *progress, struct report *rep)
{
    struct file *f = container_of(b, struct file, blk);
    char text[SIZE_TEXT];
    int r;

    if (f->device)
        return device_check(f, size, rep);
    if (size > INT64_MAX)
        return report_errno(rep, EFBIG, "cannot make the container larger");
    r = file_grow(f, end, size, preallocate, progress);
    if (r < 0)
        file_cut(f, end);
    if (r == 0 || r == -EINTR) /* they know, they asked for it */
        return r;
    return report_errno(rep, -r, "cannot make the container %s large", size_format(text, size));
}

int blk_file_shrink(struct blk *b, uint64_t size, struct report *rep)
{
    struct file *f = container_of(b, struct file, blk);
    int r = 0;

    if (!f->device)
        r = file_cut(f, size);
    if (r == 0 && !f->device)
        r = file_sync(f);
    return r < 0 ? report_errno(rep, -r, "cannot give back the end of the container") : 0;
}

int blk_file_real_size(const struct blk *b, uint64_t *ret)
{
    return file_real_size(container_of(b, const struct file, blk), ret);
}

bool blk_file_is_device(const struct blk *b)
{
    return container_of(b, const struct file, blk)->device;
}
