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
 * A header that lies behind the disk has to move: then the header is told last of all when growing,
 * with nobody in the disk. What is stopped after the file grew and before that has its header where
 * the file ended before; the user is told how to go on from there.
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

/* A header at the end of a device: the disk has all of the device, or did before that grew. */
static bool ends_with_device(const struct volume *v)
{
    return v->format->container_end != NULL && blk_file_is_device(v->stack.container);
}

/* The largest disk on a device that has so many bytes now. */
static uint64_t room_on(const struct volume *v, uint64_t there)
{
    uint64_t start = v->info.data_offset;

    if (ends_with_device(v))
        return v->format->disk_room(v->store, there);
    return there > start ? bytes_round_down(there - start, unit_of(v)) : 0;
}

static int check_on_device(const struct volume *v, uint64_t size, struct report *rep)
{
    uint64_t there;
    int r = blk_file_real_size(v->stack.container, &there);

    if (r < 0)
        return report_errno(rep, -r, "cannot find out the size of the device");
    if (size == v->info.size || size == room_on(v, there))
        return 0;
    return report_error(rep, EINVAL,
                        "the header of this format lies at the end of the device, so that the disk "
                        "has all of it, which is %" PRIu64 " bytes now",
                        room_on(v, there));
}

/* Rounds *size up. */
static int check_size(const struct volume *v, uint64_t *size, struct report *rep)
{
    uint64_t unit = unit_of(v);

    if (ends_with_device(v))
        return check_on_device(v, *size, rep);
    if (*size == 0 || *size > INT64_MAX - v->info.data_offset - unit)
        return report_error(rep, EINVAL, "a disk of %" PRIu64 " bytes is not possible", *size);
    *size = bytes_round_up(*size, unit);
    return 0;
}

/* Where the container ends whose disk has size. */
static uint64_t end_of(const struct volume *v, uint64_t size)
{
    uint64_t there;

    if (v->format->container_end == NULL)
        return v->info.data_offset + size;
    if (ends_with_device(v) && size > v->info.size &&
        blk_file_real_size(v->stack.container, &there) == 0)
        return there;
    return v->format->container_end(v->store, size);
}

/* The layer above the file lets it end with the disk; what lies behind is needed too. */
static int set_end(struct volume *v, uint64_t end, struct report *rep)
{
    int r = v->format->container_end != NULL ? blk_resize(v->stack.container, end) : 0;

    return r < 0 ? report_errno(rep, -r, "cannot reach the end of the container") : 0;
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
    uint64_t there, end = end_of(v, v->promised);

    if (blk_file_is_device(v->stack.container) ||
        blk_file_real_size(v->stack.container, &there) < 0 || there <= end)
        return 0;
    report_info(rep, "gives back %" PRIu64 " bytes behind the end of the disk", there - end);
    return blk_file_shrink(v->stack.container, end, rep);
}

int vol_make_room(struct volume *v, uint64_t size, struct progress *progress, struct report *rep)
{
    int r = vol_resize_check(v, &size, rep);

    if (r == 0 && size < v->info.size)
        r = report_error(rep, EINVAL, "the disk has more than that already");
    if (r == 0 && size > v->promised)
        r = blk_file_extend(v->stack.container, end_of(v, v->promised), end_of(v, size), !v->sparse,
                            progress, rep);
    if (r == 0 && v->format->container_end != NULL && size > v->promised)
        return 0;
    if (r == 0)
        r = tell_header(v, size, rep);
    return r < 0 ? r : cut_rest(v, rep);
}

/* Sectors with MACs read as errors until they are written. */
static int write_new(struct volume *v, uint64_t from, struct report *rep)
{
    struct blk *top = v->stack.top;
    int r = v->integrity[0] != '\0' ? blk_write_zeroes(top, top->size - from, from) : 0;

    if (r == 0)
        r = blk_flush(top);
    return r < 0 ? report_errno(rep, -r, "cannot write the new sectors of the disk") : 0;
}

static int move_header_and_grow(struct volume *v, uint64_t size, struct report *rep)
{
    uint64_t before = v->info.size, old_end = end_of(v, before), end = end_of(v, size);
    int r = set_end(v, end, rep);

    if (r == 0)
        r = tell_header(v, size, rep);
    if (r < 0) {
        report_warn(rep,
                    "should the container not open any more: \"hushvol header restore CONTAINER "
                    "--resize-from %" PRIu64 "\"",
                    old_end);
        return r;
    }
    r = blk_resize(v->stack.top, size);
    if (r < 0)
        return report_errno(rep, -r, "the disk keeps its size until it is opened again");
    r = set_end(v, end, rep);
    tell_info(v, size);
    return r < 0 ? r : write_new(v, before, rep);
}

int vol_grow(struct volume *v, uint64_t size, struct report *rep)
{
    int r = vol_resize_check(v, &size, rep);

    if (r < 0)
        return r;
    if (v->format->container_end != NULL && size > v->promised)
        return move_header_and_grow(v, size, rep);
    r = blk_resize(v->stack.top, size);
    if (r < 0)
        return report_errno(rep, -r, "the disk keeps its size until it is opened again");
    r = set_end(v, end_of(v, size), rep);
    tell_info(v, size);
    return r;
}

int vol_shrink(struct volume *v, uint64_t size, struct report *rep)
{
    int r = vol_resize_check(v, &size, rep);
    uint64_t old_end = end_of(v, v->info.size);

    if (r == 0 && size > v->info.size)
        r = report_error(rep, EINVAL, "the disk has less than that already");
    if (r < 0)
        return r;
    r = blk_resize(v->stack.top, size);
    if (r < 0)
        return report_errno(rep, -r, "cannot shrink the disk");
    r = set_end(v, old_end, rep);
    tell_info(v, size);
    if (r == 0)
        r = tell_header(v, size, rep);
    if (r == 0)
        r = set_end(v, end_of(v, size), rep);
    return r < 0 ? r : cut_rest(v, rep);
}

int vol_device_room(struct volume *v, uint64_t *ret, struct report *rep)
{
    uint64_t there;
    int r;

    if (!blk_file_is_device(v->stack.container))
        return report_error(rep, EINVAL, "a size is needed: the container is a file");
    r = blk_file_real_size(v->stack.container, &there);
    if (r < 0)
        return report_errno(rep, -r, "cannot find out the size of the device");
    *ret = room_on(v, there);
    return 0;
}
