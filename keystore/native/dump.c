/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/backup.h"

/* What the bytes claim, in the order in which they lie in the block (docs/format.md 10.1, 10.2):
 * also of a damaged copy, so that somebody can see what is left of it. What a slot wraps, and the
 * tag over that, stay out: a dump gets mailed to people, and with those two a passphrase can be
 * guessed. */

#include "keystore/native/slot.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const char *state_words(int state)
{
    switch (state) {
    case 0:
        return "whole";
    case -EBADMSG:
        return "damaged";
    case -EOPNOTSUPP:
        return "not supported by this version";
    default:
        return "cannot be read";
    }
}

static void dump_uuid(struct key_dump *to, const unsigned char u[16])
{
    char text[40];

    snprintf(text, sizeof(text),
             "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", u[0], u[1],
             u[2], u[3], u[4], u[5], u[6], u[7], u[8], u[9], u[10], u[11], u[12], u[13], u[14],
             u[15]);
    to->text(to, "uuid", text);
}

static void dump_params(struct key_dump *to, const struct native_header *h)
{
    const char *cipher = native_cipher_name(h->cipher);

    to->number(to, "mode", h->mode);
    to->number(to, "cipher", h->cipher);
    to->text(to, "cipher_name", cipher != NULL ? cipher : "unknown");
    to->number(to, "kdf", h->kdf);
    to->number(to, "nodemac", h->nodemac);
    to->number(to, "sector_size", h->unit);
    to->number(to, "logical_block", h->logical_block);
    to->number(to, "chunk_shift", h->chunk_shift);
    to->number(to, "data_offset", h->data_offset);
    to->number(to, "log_offset", h->log_offset);
    to->number(to, "log_blocks", h->log_blocks);
    to->bytes(to, "salt", h->salt, sizeof(h->salt));
    to->bytes(to, "params_sha256", h->params_sha256, sizeof(h->params_sha256));
}

static void dump_header(struct key_dump *to, const struct native_header *h)
{
    char version[16];

    snprintf(version, sizeof(version), "%u.%u", h->major, h->minor);
    to->text(to, "version", version);
    to->number(to, "seq", h->seq);
    dump_uuid(to, h->uuid);
    to->number(to, "incompat", h->incompat);
    to->number(to, "ro_compat", h->ro_compat);
    to->number(to, "compat", h->compat);
    dump_params(to, h);
    to->number(to, "flags", h->flags);
    to->flag(to, "discard", h->flags & NATIVE_FLAG_DISCARD);
    to->number(to, "capacity", h->capacity);
    to->text(to, "label", h->label);
    to->number(to, "slot_seq", h->slot_seq);
}

static void dump_slot(struct key_dump *to, const unsigned char *bytes, unsigned i)
{
    char name[16];
    struct native_slot s;

    native_slot_decode(&s, bytes);
    if (!s.used)
        return;
    snprintf(name, sizeof(name), "slot_%u", i);
    to->begin(to, name);
    to->number(to, "state", s.state);
    to->number(to, "type", s.type);
    to->text(to, "opens_with", native_slot_kind_words(s.type));
    to->number(to, "kdf", s.kdf);
    to->number(to, "wrap", s.wrap);
    to->number(to, "kdf_memory_kib", s.cost.m_kib);
    to->number(to, "kdf_iterations", s.cost.t);
    to->number(to, "kdf_lanes", s.cost.p);
    to->bytes(to, "salt_a", s.salt_a, NATIVE_SLOT_SALT);
    to->bytes(to, "salt_h", s.salt_h, NATIVE_SLOT_SALT);
    to->number(to, "created", s.created);
    to->text(to, "label", s.label);
    to->end(to);
}

static void dump_copy(struct key_dump *to, const struct key_store *ks, unsigned i)
{
    const struct native_copy *c = &ks->copy[i];
    struct native_header h;
    bool same = i > 0 && memcmp(c->block, ks->copy[0].block, NATIVE_BLOCK) == 0;
    char name[16];

    snprintf(name, sizeof(name), "copy_%u", i);
    to->begin(to, name);
    to->number(to, "offset", native_copy_off(i));
    to->text(to, "state", state_words(c->state));
    to->flag(to, "current", i == ks->current);
    to->flag(to, "same_as_copy_0", same || i == 0);
    if (!same && (c->state == 0 || c->state == -EBADMSG || c->state == -EOPNOTSUPP) &&
        native_header_parse(&h, c->block) == 0) {
        dump_header(to, &h);
        for (unsigned slot = 0; slot < NATIVE_SLOTS; slot++)
            dump_slot(to, native_header_slot((unsigned char *)c->block, slot), slot);
    }
    to->end(to);
}

static bool is_reencrypting(const struct key_store *ks)
{
    return ks->copy[ks->current].header.incompat & NATIVE_INCOMPAT_REENCRYPT;
}

/* How far a re-encryption is, as far as can be said without the key: a record may be an old one. */
static void dump_record(struct key_dump *to, struct blk *b, unsigned i)
{
    unsigned char block[NATIVE_BLOCK] __attribute__((aligned(NATIVE_ALIGN)));
    const uint64_t off = NATIVE_RECORD_AT + i * NATIVE_BLOCK;
    struct native_record r;
    char name[16];

    if (blk_read(b, block, NATIVE_BLOCK, off) < 0)
        return;
    native_record_parse(&r, block);
    snprintf(name, sizeof(name), "record_%u", i);
    to->begin(to, name);
    to->number(to, "offset", off);
    to->number(to, "seq", r.seq);
    to->number(to, "done", r.done);
    to->number(to, "zone", r.zone);
    to->end(to);
}

void native_dump(struct key_store *ks, struct key_dump *to)
{
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        dump_copy(to, ks, i);
    for (unsigned i = 0; i < 2 && is_reencrypting(ks); i++)
        dump_record(to, ks->b, i);
}
