/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/unlock.h"

/* The order is the point: file, format, header, and only then a question to the user; nobody types
 * a passphrase to learn that the file is not a container. */

#include "base/report_held.h"

#include <errno.h>
#include <sys/stat.h>

/* Two devices are compared by what they are, whatever their names. */
static bool is_same_file(int fd, const char *path)
{
    struct stat a, b;

    if (fstat(fd, &a) < 0 || stat(path, &b) < 0)
        return false;
    return (a.st_dev == b.st_dev && a.st_ino == b.st_ino) ||
           (S_ISBLK(a.st_mode) && S_ISBLK(b.st_mode) && a.st_rdev == b.st_rdev);
}

static int open_detached(struct key_container *c, const struct blk_file_spec *spec,
                         const char *detached, pid_t *holder, struct report *rep)
{
    struct blk_file_spec header = *spec;

    header.path = detached;
    header.direct = BLK_DIRECT_OFF;
    if (is_same_file(blk_file_fd(c->blk), detached))
        return report_error(rep, EINVAL, "the header %s is the container itself (leave it out)",
                            detached);
    return blk_file_open(&c->header, &header, holder, rep);
}

int key_container_open_files(struct key_container *ret, const struct blk_file_spec *spec,
                             const char *detached, pid_t *holder, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    int r;

    r = blk_file_open(&c.blk, spec, holder, rep);
    if (r == 0 && detached != NULL)
        r = open_detached(&c, spec, detached, holder, rep);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct key_container){0};
    return 0;
}

struct blk *key_container_header(const struct key_container *c)
{
    return c->header != NULL ? c->header : c->blk;
}

/* A container that has a whole header of its own is not detached: a header that does not agree with
 * that one is an old backup or another container's, and what is written through it would be lost.
 */
static int check_own_header(const struct key_container *c, const char *detached, struct report *rep)
{
    const struct key_format *own = NULL;
    struct key_store *ks = NULL;
    int r;

    if (key_recognise(&own, c->blk, NULL) < 0 || own->open(&ks, c->blk, c->blk, NULL) < 0)
        return 0;
    r = own != c->format || own->restore_check == NULL ? -EPERM
                                                       : own->restore_check(c->store, ks, NULL);
    own->close(ks);
    return r == 0 ? 0
                  : report_error(rep, EINVAL,
                                 "the container has a header of its own, which has another volume "
                                 "key or size than the one in %s (leave that out)",
                                 detached);
}

int key_container_open(struct key_container *ret, const struct blk_file_spec *spec,
                       const char *detached, pid_t *holder, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    int r = key_container_open_files(&c, spec, detached, holder, rep);

    if (r == 0)
        r = key_recognise(&c.format, key_container_header(&c), rep);
    if (r == 0 && detached != NULL && !c.format->detachable)
        r = report_error(rep, EOPNOTSUPP, "a detached header is not possible in the %s format",
                         c.format->name);
    if (r == 0)
        r = c.format->open(&c.store, key_container_header(&c), c.blk, rep);
    if (r == 0 && detached != NULL)
        r = check_own_header(&c, detached, rep);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct key_container){0};
    return 0;
}

void key_container_done(struct key_container *c)
{
    if (c->store != NULL)
        c->format->close(c->store);
    blk_close(c->header);
    blk_close(c->blk);
    *c = (struct key_container){0};
}

/* Notes that the format named something in the slots that it does not know. */
struct unknown {
    struct report rep;
    bool found;
};

static void unknown_say(struct report *rep, enum report_level level, const char *text)
{
    (void)level;
    (void)text;
    container_of(rep, struct unknown, rep)->found = true;
}

/* Is there anything that a credential could open? What is in the slots but unknown here is left to
 * the format, which names it when it unlocks. */
static int check_slots(struct key_container *c, int slot, struct report *rep)
{
    struct unknown unknown = {.rep.say = unknown_say};
    struct key_slot_info used[KEY_SLOTS_MAX];
    int n = -EOPNOTSUPP;

    if (c->format->slots != NULL)
        n = c->format->slots(c->store, used, KEY_SLOTS_MAX, &unknown.rep);
    if (n < 0)
        return 0;
    if (n == 0)
        return report_error(rep, EKEYREJECTED,
                            "the container was erased: it has no key slot any more");
    for (int i = 0; i < n; i++)
        if (slot == KEY_SLOT_ANY || used[i].index == (unsigned)slot)
            return 0;
    if (unknown.found) /* it may be this one */
        return 0;
    return report_error(rep, EKEYREJECTED, "there is no key in slot %d", slot);
}

int key_credential_read(struct credential *ret, const struct credential_source *src,
                        const struct key_format *f, struct report *rep)
{
    struct credential_source s = *src;

    s.lines = f->passphrase_lines;
    return credential_read(ret, &s, rep);
}

/* -EAGAIN: the passphrase was wrong, and typing it again may help; that has been said. */
static int unlock_once(struct key_container *c, const struct credential_source *src, int slot,
                       bool last, struct key_volume *ret, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    struct report_held held;
    int r;

    report_held_init(&held, rep);
    r = key_credential_read(&cred, src, c->format, rep);
    if (r < 0)
        return r;
    r = c->format->unlock(c->store, &cred, slot, ret, &held.rep);
    if (r == -EKEYREJECTED && cred.typed && !last) {
        report_warn(rep, "no key slot opens with this passphrase, try again");
        return -EAGAIN;
    }
    report_held_say(&held);
    return r;
}

int key_unlock_with(struct key_container *c, const struct credential_source *src, int slot,
                    struct key_volume *ret, struct report *rep)
{
    int r = check_slots(c, slot, rep);

    if (r < 0)
        return r;
    r = -EAGAIN;
    for (unsigned n = 1; r == -EAGAIN; n++)
        r = unlock_once(c, src, slot, n == KEY_TRIES, ret, rep);
    return r;
}
