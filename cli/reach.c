/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/reach.h"

/* The lock is asked first and the registry second: who has the lock knows that nobody else writes,
 * whatever the records say. A record is found by the identity of the file, not by its path.
 *
 * A header is read while its owner may be writing it. One of its two copies is whole at every
 * moment, so a copy that seems damaged is looked at again before anybody hears of it. */

#include "base/auto.h"
#include "base/report_held.h"
#include "cli/command.h"
#include "cli/job.h"
#include "fuse/patch.h"
#include "keystore/change.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define LOOKS 10
#define LOOK_AGAIN_MS 20
#define TRIES 100
#define TRY_AGAIN_MS 100

void cmd_reach_done(struct cmd_reach *at)
{
    key_container_done(&at->c);
    serve_found_done(&at->mount);
}

/* Notes that something was said. */
struct heard {
    struct report rep;
    bool any;
};

static void heard_say(struct report *rep, enum report_level level, const char *text)
{
    (void)level;
    (void)text;
    container_of(rep, struct heard, rep)->any = true;
}

static struct blk_file_spec spec_to_look(const char *container)
{
    return (struct blk_file_spec){
        .path = container, .read_only = true, .direct = BLK_DIRECT_OFF, .lock = BLK_LOCK_NONE};
}

static int look(struct key_container *ret, const char *container, const char *header,
                struct report *rep)
{
    const struct blk_file_spec spec = spec_to_look(container);

    for (unsigned n = 1; n < LOOKS; n++) {
        AUTO_KEY_CONTAINER struct key_container c = {0};
        struct heard heard = {.rep.say = heard_say};
        int r = key_container_open(&c, &spec, header, NULL, &heard.rep);

        if (r == 0 && !heard.any) {
            *ret = c;
            c = (struct key_container){0};
            return 0;
        }
        if (r < 0 && r != -EBADMSG)
            break;
        poll(NULL, 0, LOOK_AGAIN_MS);
    }
    return key_container_open(ret, &spec, header, NULL, rep);
}

static bool same_file(const char *a, const char *b)
{
    struct stat sa, sb;

    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

/* The mount that has this container, if it is one to talk to: a record is its owner's word, so root
 * believes a user only about files that are this user's anyway. */
static int find_mount(struct serve_found *ret, const char *container)
{
    struct stat st;
    int r;

    if (stat(container, &st) < 0)
        return -ENOENT;
    r = serve_registry_find_container(ret, st.st_dev, st.st_ino);
    if (r < 0)
        return r;
    return ret->folder.owner == geteuid() || ret->folder.owner == st.st_uid ? 0 : -ENOENT;
}

/* The file that a mount has its header in, if it is detached; NULL also for a path that a user
 * tells root: it is not to be opened. */
static const char *header_of_mount(const struct serve_found *f)
{
    return f->folder.owner == geteuid() ? f->record.header : NULL;
}

int cmd_reach_look(struct key_container *ret, const char *container, const char *header,
                   struct report *rep)
{
    AUTO_FOUND struct serve_found mount = {0};

    if (header == NULL && find_mount(&mount, container) == 0)
        header = header_of_mount(&mount);
    return look(ret, container, header, rep);
}

int cmd_reach_look_files(struct key_container *ret, const char *container, const char *header,
                         struct report *rep)
{
    const struct blk_file_spec spec = spec_to_look(container);
    AUTO_FOUND struct serve_found mount = {0};

    if (header == NULL && find_mount(&mount, container) == 0)
        header = header_of_mount(&mount);
    return key_container_open_files(ret, &spec, header, NULL, rep);
}

/* *header becomes the file that the mount has it in. */
static int check_mount(const struct serve_found *f, const char **header, struct report *rep)
{
    const char *own = f->record.header;

    if (f->record.read_only)
        return report_error(rep, EBUSY,
                            "it is mounted read-only at %s (\"hushvol umount %s\" ends that)",
                            f->record.mountpoint, f->record.name);
    if (*header == NULL)
        *header = header_of_mount(f);
    if (own == NULL ? *header != NULL
                    : *header == NULL || (*header != own && !same_file(*header, own)))
        return report_error(rep, EBUSY, "it is mounted with %s %s, and that is the one to change",
                            own == NULL ? "the header that is in" : "its header in",
                            own == NULL ? f->record.container : own);
    return 0;
}

static int look_through_mount(struct cmd_reach *at, const char *container, const char *header,
                              struct report *rep)
{
    int r = check_mount(&at->mount, &header, rep);

    at->mounted = true;
    return r < 0 ? r : look(&at->c, container, header, rep);
}

int cmd_reach_open(struct cmd_reach *ret, const char *container, const char *header,
                   struct report *rep)
{
    const struct blk_file_spec spec = {.path = container, .direct = BLK_DIRECT_OFF};
    AUTO_REACH struct cmd_reach at = {.unlocked = KEY_SLOT_ANY};
    pid_t holder = 0;
    int r = key_container_open(&at.c, &spec, header, &holder, rep);

    if (r == -EBUSY) {
        if (find_mount(&at.mount, container) < 0)
            return cmd_busy(container, header, holder, rep);
        r = look_through_mount(&at, container, header, rep);
    }
    if (r < 0)
        return r;
    *ret = at;
    at = (struct cmd_reach){0};
    return 0;
}

/* What the daemon refused, it said; when it did not answer, nobody knows. */
static bool is_answer(int r)
{
    switch (-r) {
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPROTO:
    case EPIPE:
        return false;
    default:
        return true;
    }
}

/* Another job of the daemon is waited for: most are short. */
static int ask_mount(struct cmd_reach *at, const struct key_patch *p, struct report *rep)
{
    struct report_held held;
    char text[24];
    const char *changed = p->what == KEY_PATCH_ERASE   ? "the slots"
                          : p->what == KEY_PATCH_FLAGS ? "the flags"
                                                       : text;
    int r = -EBUSY;

    report_held_init(&held, rep);
    for (unsigned n = 0; r == -EBUSY && n < TRIES; n++) {
        const struct cmd_job job = {
            .word = "slot", .more = serve_patch_encode(p), .fd = -1, .doing = "writing the header"};

        if (n > 0)
            poll(NULL, 0, TRY_AGAIN_MS);
        report_held_forget(&held);
        r = cmd_job_run(&at->mount, &job, &held.rep);
    }
    report_held_say(&held);
    snprintf(text, sizeof(text), "slot %u", p->slot);
    if (!is_answer(r))
        report_warn(rep, "%s may have been changed all the same: \"hushvol %s\" shows it", changed,
                    p->what == KEY_PATCH_FLAGS ? "header dump" : "key list");
    return r;
}

int cmd_reach_possible(const struct cmd_reach *at, enum key_patch_what what, struct report *rep)
{
    return at->mounted ? key_change_possible_mounted(at->c.format, what, rep)
                       : key_change_possible(at->c.format, what, rep);
}

int cmd_reach_unlock(struct cmd_reach *at, const struct credential_source *key, int slot,
                     struct key_volume *ret, struct report *rep)
{
    int r;

    secret_lock_memory(NULL);
    r = key_unlock_with(&at->c, key, slot, ret, rep);
    if (r == 0)
        at->unlocked = (int)ret->slot;
    if (r == 0 && !at->mounted && at->c.format->repair != NULL)
        r = at->c.format->repair(at->c.store, rep);
    return r;
}

static int put_mounted(struct cmd_reach *at, enum key_patch_what what,
                       const struct credential *cred, int slot, const char *label,
                       const struct kdf_request *kdf, struct report *rep)
{
    struct key_patch patch;
    int r = at->c.format->seal(at->c.store, what, cred, slot, label, kdf, &patch, rep);

    if (r == 0)
        r = ask_mount(at, &patch, rep);
    if (r == -EEXIST && slot == KEY_SLOT_ANY)
        report_warn(rep, "another command took that slot meanwhile: try again");
    return r < 0 ? r : (int)patch.slot;
}

int cmd_reach_put(struct cmd_reach *at, enum key_patch_what what, const struct credential *cred,
                  int slot, const char *label, const struct kdf_request *kdf, struct report *rep)
{
    int r;

    if (at->mounted)
        return put_mounted(at, what, cred, slot, label, kdf, rep);
    if (what == KEY_PATCH_ADD)
        return key_change_add(&at->c, cred, slot, label, kdf, rep);
    r = key_change_change(&at->c, cred, slot, label, kdf, rep);
    return r < 0 ? r : slot;
}

int cmd_reach_remove(struct cmd_reach *at, int slot, bool force, struct report *rep)
{
    struct key_patch patch = {.what = KEY_PATCH_REMOVE, .slot = (unsigned)slot};
    int r = 0;

    if (!at->mounted)
        return key_change_remove(&at->c, slot, force, rep);
    if (slot == at->unlocked && at->c.format->seal != NULL)
        r = at->c.format->seal(at->c.store, KEY_PATCH_REMOVE, NULL, slot, NULL, NULL, &patch, rep);
    patch.force = force;
    return r < 0 ? r : ask_mount(at, &patch, rep);
}

int cmd_reach_erase(struct cmd_reach *at, struct report *rep)
{
    const struct key_patch patch = {.what = KEY_PATCH_ERASE, .force = true};
    struct blk *header = key_container_header(&at->c);

    if (at->mounted)
        return ask_mount(at, &patch, rep);
    return key_change_erase(at->c.format, header, at->c.blk, rep);
}

int cmd_reach_flags(struct cmd_reach *at, const char *words, struct report *rep)
{
    struct key_patch patch = {.what = KEY_PATCH_FLAGS, .len = strlen(words)};
    int r = cmd_reach_possible(at, KEY_PATCH_FLAGS, rep);

    if (r < 0)
        return r;
    if (!at->mounted)
        return at->c.format->set_flags(at->c.store, words, rep);
    if (patch.len > sizeof(patch.bytes))
        return report_error(rep, EINVAL, "that are too many words");
    memcpy(patch.bytes, words, patch.len);
    return ask_mount(at, &patch, rep);
}
