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
 * -ENOMEM, or what reading that gave. It can grow, by bytes that were zeros before the log, but not
 * shrink (-EOPNOTSUPP): the log is of all of it. */
int blk_record_open(struct blk **ret, struct blk *below);
/* The log so far, in order of completion; flush entries stand where the flush returned. A write
 * that failed is there with what it left on the device. Not while requests are running. */
const struct blk_record_entry *blk_record_log(struct blk *b, size_t *n_entries);
/* What of the log reached the medium when a crash came. */
struct blk_record_crash {
    size_t n_entries; /* it came after these; what a flush among them covers (n_durable) is there */
    /* Of the rest, each piece between two multiples of so many bytes is there or not as a whole:
     * 512, what no medium tears, or 4096. A power of two. */
    uint32_t piece;
    /* How many of 256 pieces are there, by the next number of a random sequence from seed; 256: all
     * of them, the plain prefix. Or BLK_RECORD_BITS: bit i of seed says it of piece i. */
    unsigned density;
    uint64_t seed;
};
#define BLK_RECORD_ALL 256
#define BLK_RECORD_BITS 257

/* The device after crash, in image, which holds size bytes. */
void blk_record_replay_crash(struct blk *b, unsigned char *image,
                             const struct blk_record_crash *crash);
/* The same with pieces of 4096 bytes. */
void blk_record_replay(struct blk *b, unsigned char *image, size_t n_entries, uint64_t seed,
                       unsigned density);
/* How many pieces the first n_entries have that no flush among them covers: those that a crash may
 * take. */
size_t blk_record_open_pieces(struct blk *b, size_t n_entries, uint32_t piece);
