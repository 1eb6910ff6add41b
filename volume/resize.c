/* SPDX-License-Identifier: BSD-2-Clause */
#include "volume/volume.h"

/* Another size for a disk. Three things know it: the file, the header, the stack. What stops a
 * resize between any two steps must leave a container that opens, with all that lies below the
 * smaller size:
 *
 *     growing     the file is large enough, durably → the header says so → the stack grows
 *     shrinking   the stack is small → the header says so, durably → the file is cut
 *
 * so the file is never smaller than its header says. What a file has behind that, after a resize
 * that was stopped, is cut off by the next one.
 *
 * Only the change of the stack wants the disk for itself, and it takes microseconds; room for a
 * preallocated container is made while requests run. */

#include "base/bytes.h"
#include "volume/opened.h"
#include "volume/poison.h"

#include <errno.h>
#include <inttypes.h>

/* Sectors are whole, and so are the units of direct I/O. */
static uint64_t unit_of(const struct volume *v)
{
    uint32_t granule = v->stack.sectors->granule;

    return v->info.sector_size > granule ? v->info.sector_size : granule;
}

static int check_volume(struct volume *v, struct report *rep)
{
    if (v->format->resize == NULL)
        return report_error(rep, EOPNOTSUPP, "another size is not possible in the %s format",
                            v->info.format);
    if (v->info.read_only)
        return report_error(rep, EROFS, "the volume is open for reading only");
    if (vol_poison_struck(v->stack.poison))
        return report_error(rep, EROFS, "the volume is read-only since its disk failed");
    if (v->info.suspended)
        return report_error(rep, EBUSY, "the volume is suspended (\"hushvol resume\" first)");
    if (v->mixed)
        return report_error(rep, EBUSY,
                            "the container is being re-encrypted (finish that first: \"hushvol "
                            "reencrypt\")");
    return 0;
}

/* Rounds *size up. */
static int check_size(const struct volume *v, uint64_t *size, struct report *rep)
{
    uint64_t unit = unit_of(v);

    if (*size == 0 || *size > INT64_MAX - v->info.data_offset - unit)
        return report_error(rep, EINVAL, "a disk of %" PRIu64 " bytes is not possible", *size);
    *size = bytes_round_up(*size, unit);
    return 0;
}

/* Until it is known that the header says size, it may say either. */
static int tell_header(struct volume *v, uint64_t size, struct report *rep)
{
    HOLD(&v->updates);
    int r;

    if (size > v->promised)
        v->promised = size;
    r = v->format->resize(v->store, size, rep);
    if (r == 0)
        v->told = v->promised = size;
    return r;
}

static void tell_info(struct volume *v, uint64_t size)
{
    HOLD(&v->facts);

    v->info.size = size;
}

int vol_resize_check(struct volume *v, uint64_t *size, struct report *rep)
{
    int r = check_volume(v, rep);

    return r < 0 ? r : check_size(v, size, rep);
}

/* What the file has behind the end of the disk, by a resize that was stopped or taken back. */
static int cut_rest(struct volume *v, struct report *rep)
{
    uint64_t there, end = v->info.data_offset + v->promised;

    if (blk_file_is_device(v->stack.container) ||
        blk_file_real_size(v->stack.container, &there) < 0 || there <= end)
        return 0;
    report_info(rep, "gives back %" PRIu64 " bytes behind the end of the disk", there - end);
    return blk_file_shrink(v->stack.container, end, rep);
}

int vol_make_room(struct volume *v, uint64_t size, struct progress *progress, struct report *rep)
{
    uint64_t start = v->info.data_offset;
    int r = vol_resize_check(v, &size, rep);

    if (r == 0 && size < v->info.size)
        r = report_error(rep, EINVAL, "the disk has more than that already");
    if (r == 0 && size > v->promised)
        r = blk_file_extend(v->stack.container, start + v->promised, start + size, !v->sparse,
                            progress, rep);
    if (r == 0)
        r = tell_header(v, size, rep);
    return r < 0 ? r : cut_rest(v, rep);
}

int vol_grow(struct volume *v, uint64_t size, struct report *rep)
{
    int r = vol_resize_check(v, &size, rep);

    if (r < 0)
        return r;
    r = blk_resize(v->stack.top, size);
    if (r < 0)
        return report_errno(rep, -r, "the disk keeps its size until it is opened again");
    tell_info(v, size);
    return 0;
}

int vol_shrink(struct volume *v, uint64_t size, struct report *rep)
{
    int r = vol_resize_check(v, &size, rep);

    if (r == 0 && size > v->info.size)
        r = report_error(rep, EINVAL, "the disk has less than that already");
    if (r < 0)
        return r;
    r = blk_resize(v->stack.top, size);
    if (r < 0)
        return report_errno(rep, -r, "cannot shrink the disk");
    tell_info(v, size);
    r = tell_header(v, size, rep);
    return r < 0 ? r : cut_rest(v, rep);
}

int vol_device_room(struct volume *v, uint64_t *ret, struct report *rep)
{
    uint64_t there, start = v->info.data_offset;
    int r;

    if (!blk_file_is_device(v->stack.container))
        return report_error(rep, EINVAL, "a size is needed: the container is a file");
    r = blk_file_real_size(v->stack.container, &there);
    if (r < 0)
        return report_errno(rep, -r, "cannot find out the size of the device");
    *ret = there > start ? bytes_round_down(there - start, unit_of(v)) : 0;
    return 0;
}
