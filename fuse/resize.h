/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The answer to {"request": "resize", "size": bytes}: the disk of the mounted volume grows, as a
 * job (fuse/job.h); size 0 is all of the block device that holds the container. Errors of the job:
 * as vol_make_room(); EBUSY for a smaller disk, a suspended volume, or writes that wait for room.
 */

struct daemon;
struct json_object;

struct json_object *serve_resize_answer(struct daemon *d, struct json_object *request);
