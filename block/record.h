/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include "block/blk.h"

/* A layer that passes everything on and keeps a log of what changed the device below, so that a
 * test can build what a crash at any point may have left. */
enum blk_record_op { BLK_RECORD_WRITE, BLK_RECORD_ZERO, BLK_RECORD_FLUSH };

struct blk_record_entry {
    enum blk_record_op op;
    uint64_t off, len;
    size_t n_durable;     /* FLUSH: how long the log was when it was called; covers these */
    unsigned char *bytes; /* WRITE: len bytes, owned by the layer */
};

/* Owns below if it succeeds; keeps a copy of its present content as the state before the log.
 * -ENOMEM, or what reading that gave. */
int blk_record_open(struct blk **ret, struct blk *below);
/* The log so far, in order of completion; flush entries stand where the flush returned. A write
 * that failed is there with what it left on the device. Not while requests are running. */
const struct blk_record_entry *blk_record_log(struct blk *b, size_t *n_entries);
/* The device as a crash may leave it: of the first n_entries, those that a flush among them covers
 * (n_durable) are all there; of the rest, each 4096-byte piece is there or not by the next number
 * of a random sequence from seed (density 0..256 of 256 are; 256: all of them, the plain prefix).
 * image holds size bytes. */
void blk_record_replay(struct blk *b, unsigned char *image, size_t n_entries, uint64_t seed,
                       unsigned density);
