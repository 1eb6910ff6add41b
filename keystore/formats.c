/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/format.h"

/* The table of container formats, and what to say about bytes that none of them knows. */

#include "base/bytes.h"
#include "keystore/geli/geli.h"
#include "keystore/native/native.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define LOOK 4096 /* bytes that are looked at, at either end */

const struct key_format *const key_formats[] = {
    &native_format,
    &geli_format,
    NULL,
};

const struct key_format *key_format_named(const char *name)
{
    for (const struct key_format *const *f = key_formats; *f != NULL; f++)
        if (strcmp((*f)->name, name) == 0)
            return *f;
    return NULL;
}

void key_volume_done(struct key_volume *v)
{
    secret_done(&v->rule.prk);
    secret_done(&v->old_rule.prk);
    secret_done(&v->iv_key);
    secret_done(&v->auth.key);
}

/* Read up to LOOK bytes at off, a multiple of LOOK or of a smaller granule; the rest is zeros. */
static int look(struct blk *b, unsigned char buf[LOOK], uint64_t off)
{
    uint64_t len = b->size - off < LOOK ? b->size - off : LOOK;

    memset(buf, 0, LOOK);
    return b->granule <= LOOK ? blk_read(b, buf, (size_t)len, off) : -EINVAL;
}

/* No format knows b: what is it? */
static int explain_unknown(struct blk *b, struct report *rep)
{
    static const unsigned char luks[] = {'L', 'U', 'K', 'S', 0xba, 0xbe};
    unsigned char buf[LOOK] __attribute__((aligned(LOOK)));
    int r;

    if (b->size == 0)
        return report_error(rep, EBADMSG, "not a container: it is empty");
    r = look(b, buf, 0);
    if (r < 0)
        return report_errno(rep, -r, "cannot read the header");
    if (memcmp(buf, luks, sizeof(luks)) == 0)
        return report_error(rep, EOPNOTSUPP, "LUKS containers are not supported by this version");
    if (bytes_are_zero(buf, sizeof(buf)))
        return report_error(rep, EBADMSG,
                            "not a container: it begins with zeros (its header may be in a file of "
                            "its own: --header; or where a GELI container ended before it grew: "
                            "header restore --resize-from find)");
    return report_error(rep, EBADMSG,
                        "not a container (or its header is destroyed, or where a GELI container "
                        "ended before it grew: header restore --resize-from find)");
}

int key_recognise(const struct key_format **ret, struct blk *b, struct report *rep)
{
    for (const struct key_format *const *f = key_formats; *f != NULL; f++) {
        int r = (*f)->recognise(b);

        if (r < 0)
            return report_errno(rep, -r, "cannot read the header");
        if (r > 0) {
            *ret = *f;
            return 0;
        }
    }
    return explain_unknown(b, rep);
}
