/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/native/backup.h"

/* Everything that can be said about a header without a key, a line for each thing that is wrong.
 * Opening says only what stands in its way. */

#include "keystore/native/slot.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Says which copy a line is about. */
struct about {
    struct report rep;
    struct report *to;
    unsigned copy;
};

static void about_say(struct report *rep, enum report_level level, const char *text)
{
    const struct about *a = container_of(rep, struct about, rep);

    (void)level;
    report_error(a->to, EBADMSG, "header copy %u: %s", a->copy, text);
}

/* The worst so far: damage before what this version does not know before what cannot be read. */
static int worse(int a, int b)
{
    if (a == -EBADMSG || b == -EBADMSG)
        return -EBADMSG;
    return a != 0 ? a : b;
}

static int check_slot(const unsigned char *bytes, unsigned i, unsigned *n_used, struct report *rep)
{
    struct native_slot s;
    int r;

    native_slot_decode(&s, bytes);
    if (!s.used)
        return 0;
    ++*n_used;
    r = native_slot_check(&s, i, rep);
    if (r == 0)
        r = kdf_check(&s.cost, i, NULL);
    if (r == -ENOMEM) /* of this machine, not of the header */
        return 0;
    return r == -EBADMSG ? kdf_check(&s.cost, i, rep) : r;
}

/* Is a copy that opens an erased container? */
static int check_erased(unsigned n_used, struct report *rep)
{
    return n_used > 0
               ? 0
               : report_error(rep, EKEYREJECTED, "no key slot is in use: the container was erased");
}

static int check_copy(struct native_copy *c, const struct blk *data, struct report *rep)
{
    unsigned n_used = 0;
    int r;

    if (c->state != 0 && c->state != -EBADMSG && c->state != -EOPNOTSUPP)
        return report_errno(rep, -c->state, "cannot read it");
    if (c->state != 0)
        return native_header_decode(&c->header, c->block, rep);
    r = native_store_fits(&c->header, data, rep);
    for (unsigned i = 0; i < NATIVE_SLOTS; i++)
        r = worse(r, check_slot(native_header_slot(c->block, i), i, &n_used, rep));
    return worse(r, check_erased(n_used, rep));
}

/* Two whole copies that differ: what a stopped update leaves. */
static int check_equal(const struct native_copy *c, struct report *rep)
{
    if (c[0].state != 0 || c[1].state != 0 || memcmp(c[0].block, c[1].block, NATIVE_BLOCK) == 0)
        return 0;
    return report_error(rep, EBADMSG,
                        "header copy %u is out of date (a change was interrupted; the next mount "
                        "for writing mends it)",
                        !native_copy_newest(c));
}

int native_check(struct blk *header, struct blk *data, struct report *rep)
{
    AUTO_FREE struct native_copy *c = aligned_alloc(NATIVE_ALIGN, NATIVE_COPIES * sizeof(*c));
    struct about about = {.rep.say = about_say, .to = rep};
    int r = 0;

    if (c == NULL)
        return report_errno(rep, ENOMEM, "cannot check the header");
    for (unsigned i = 0; i < NATIVE_COPIES; i++) {
        native_copy_read(&c[i], header, i);
        about.copy = i;
        r = worse(r, check_copy(&c[i], data, &about.rep));
    }
    return worse(r, check_equal(c, rep));
}
