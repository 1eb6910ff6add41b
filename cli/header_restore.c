/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header restore. In this order, and nothing is written before the last two:
 *
 *   lock the container, open the backup and check it against the container's size
 *   is it this container's, with this volume key?     or refuse, or ask
 *   copy what stands in the header's place to a file  whatever it is: it is the way back
 *   put the backup there
 */

#include "base/bytes.h"
#include "block/file.h"
#include "keystore/unlock.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header restore CONTAINER FILE [OPTION...]\n"
    "       hushvol header restore CONTAINER --resize-from OLDSIZE|find\n"
    "\n"
    "Puts the backup in FILE in the place of the container's header. The container has to be\n"
    "unmounted. The keys of the time of the backup open it again, and only those: a key that was\n"
    "changed or removed since comes back, one that was added is gone. What stood in the header's\n"
    "place is copied beside FILE first, and can be restored in the same way.\n"
    "\n"
    "Asks when the header that is there is another container's, or can not be read; refuses when it\n"
    "is of the same container with another volume key or size, since then the backup is older than\n"
    "what was written with those.\n"
    "\n"
    "With --resize-from no backup is needed: something made a GELI container larger, and its header\n"
    "still lies where it ended when it had OLDSIZE bytes. It moves to the end, and the disk is larger.\n"
    "With \"find\" it is looked for, in all of the container if need be, and you are asked.\n"
    "\n"
    CMD_YES_USAGE
    "  --force                  even when the volume key or the size of the disk changed since:\n"
    "                           what was written since is lost\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol header restore photos.hv /media/stick/photos.header\n"
    "  hushvol header restore bsd.img --resize-from 10G\n"
    "\n"
    "Exit status: 0 restored, 1 failed or not confirmed, 2 wrong words or nobody to ask, 4 FILE is\n"
    "no backup, is damaged, or the container is cut short, 5 mounted, in use or being re-encrypted,\n"
    "6 not possible in this format, 7 no such file.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_YES_OPTION,
    {"force", no_argument, NULL, HEADER_OPT_FORCE},
    {"resize-from", required_argument, NULL, HEADER_OPT_RESIZE_FROM},
    CMD_HEADER_OPTION,
    {0},
};

struct restore {
    const struct header_words *words;
    struct key_container at;     /* locked; format and store only when its header opens */
    struct key_container backup; /* at.blk holds its data */
    struct report *rep;          /* about the container */
    struct report about_backup;
    char kept[PATH_MAX]; /* where the old header is; "" there was none */
};

static void restore_done(struct restore *q)
{
    key_container_done(&q->backup);
    key_container_done(&q->at);
}
#define AUTO_RESTORE __attribute__((cleanup(restore_done)))

/* Without a word when the header is damaged: this is why we are here. */
static int open_container(struct restore *q)
{
    const struct blk_file_spec spec = {.path = q->words->container, .direct = BLK_DIRECT_OFF};
    pid_t holder = 0;
    int r = key_container_open_files(&q->at, &spec, q->words->header, &holder, q->rep);

    if (r == -EBUSY)
        return cmd_busy(q->words->container, q->words->header, holder, q->rep);
    if (r < 0)
        return r;
    if (key_recognise(&q->at.format, key_container_header(&q->at), NULL) < 0)
        return 0;
    r = q->at.format->open(&q->at.store, key_container_header(&q->at), q->at.blk, NULL);
    if (r != -EOPNOTSUPP || q->words->force)
        return r == -ENOMEM ? r : 0;
    /* of a later version: nobody here can tell what would be lost */
    r = q->at.format->open(&q->at.store, key_container_header(&q->at), q->at.blk, q->rep);
    report_warn(q->rep, "nothing was changed; --force restores the backup all the same");
    return r;
}

static int open_backup(struct restore *q)
{
    const struct blk_file_spec spec = {
        .path = q->words->file, .read_only = true, .direct = BLK_DIRECT_OFF};
    struct report *rep = &q->about_backup;
    int r = key_container_open_files(&q->backup, &spec, NULL, NULL, rep);

    if (r == -EBUSY)
        return report_error(rep, EBUSY, "in use (is it the container itself?)");
    if (r == 0)
        r = key_recognise(&q->backup.format, q->backup.blk, rep);
    if (r < 0)
        return r;
    if (q->backup.format->restore == NULL)
        return report_error(rep, EOPNOTSUPP, "restoring a header is not possible in the %s format",
                            q->backup.format->name);
    return q->backup.format->open(&q->backup.store, q->backup.blk, q->at.blk, rep);
}

static bool has_slots(const struct key_format *f, struct key_store *ks)
{
    struct key_slot_info used[KEY_SLOTS_MAX];

    return f->slots == NULL || f->slots(ks, used, KEY_SLOTS_MAX, NULL) != 0;
}

static int check_has_slots(struct restore *q)
{
    if (q->words->force || has_slots(q->backup.format, q->backup.store))
        return 0;
    return report_error(&q->about_backup, EPERM,
                        "it is the header of an erased container, which no key opens (--force "
                        "restores it all the same)");
}

static bool same_container(const struct restore *q)
{
    unsigned char ours[16], theirs[16];

    if (q->at.format != q->backup.format || q->at.format->uuid == NULL)
        return false;
    q->at.format->uuid(q->at.store, ours);
    q->backup.format->uuid(q->backup.store, theirs);
    return memcmp(ours, theirs, sizeof(ours)) == 0;
}

/* A header of the same container: is the volume key still the same? */
static int check_key(struct restore *q)
{
    const struct key_format *f = q->backup.format;
    int r = f->restore_check(q->backup.store, q->at.store, NULL);

    if (r == 0 || (r == -EPERM && q->words->force))
        return 0;
    r = f->restore_check(q->backup.store, q->at.store, q->rep);
    if (r == -EPERM)
        report_warn(q->rep, "nothing was changed; --force restores it all the same");
    if (r == -EBUSY && !has_slots(q->at.format, q->at.store))
        report_warn(q->rep, "but no key slot is left to go on with: it was erased half-way, and no "
                            "other header fits its data");
    return r;
}

/* Half of the data has a key that only the header there knows. */
static bool is_being_reencrypted(const struct restore *q)
{
    return q->at.format == q->backup.format &&
           q->backup.format->restore_check(q->backup.store, q->at.store, NULL) == -EBUSY;
}

/* Whatever header is there: is the backup one of a container like this? */
static int check_fits(struct restore *q)
{
    int r = q->backup.format->restore_check(q->backup.store, NULL, q->words->force ? NULL : q->rep);

    if (r == -EPERM && q->words->force)
        return 0;
    if (r == -EPERM)
        report_warn(q->rep, "nothing was changed; --force restores it all the same");
    return r;
}

/* May the backup take this place? */
static int check_place(struct restore *q)
{
    const struct header_words *w = q->words;
    char question[REPORT_LINE];

    int r;

    if (q->at.store != NULL && (same_container(q) || is_being_reencrypted(q)))
        return check_key(q);
    r = check_fits(q);
    if (r < 0)
        return r;
    if (q->at.store != NULL)
        snprintf(question, sizeof(question),
                 "The header in %s is another container's than the one in %s: after this the data "
                 "that is there now cannot be read.",
                 w->header != NULL ? w->header : w->container, w->file);
    else
        snprintf(question, sizeof(question),
                 "There is no header in %s that can be read, so nobody can tell whether %s is a "
                 "backup of it.",
                 w->header != NULL ? w->header : w->container, w->file);
    return cmd_confirm(w->yes, question, "yes", q->rep);
}

/* What stands in the header's place, and is as long as the backup's header. */
static int read_old(struct restore *q, unsigned char **ret, size_t *len)
{
    struct blk *b = key_container_header(&q->at);
    const struct key_format *f = q->backup.format;
    uint64_t size = f->header_size(q->backup.store), place = 0;
    AUTO_FREE unsigned char *bytes = NULL;
    int r;

    *len = size < b->size ? size : b->size;
    bytes = malloc(*len + 1);
    if (f->header_place != NULL)
        place = f->header_place(q->backup.store, b);
    r = bytes != NULL ? blk_read(b, bytes, *len, place) : -ENOMEM;
    if (r < 0)
        return report_errno(q->rep, -r, "cannot read what the backup would replace");
    *ret = TAKE(bytes);
    return 0;
}

/* "FILE.replaced", "FILE.replaced-2", ...: the first that nobody has. */
static int choose_name(char name[PATH_MAX], const char *file)
{
    struct stat st;

    for (unsigned n = 1; n < 1000; n++) {
        char tail[16] = "";

        if (n > 1)
            snprintf(tail, sizeof(tail), "-%u", n);
        if (snprintf(name, PATH_MAX, "%s.replaced%s", file, tail) >= PATH_MAX)
            return -ENAMETOOLONG;
        if (lstat(name, &st) < 0)
            return errno == ENOENT ? 0 : -errno;
    }
    return -EEXIST;
}

static int keep_as(const char *file, char name[PATH_MAX], const unsigned char *bytes, size_t len,
                   struct report *rep)
{
    struct blk_file_create spec = {.path = name, .size = len};
    AUTO_BLK struct blk *b = NULL;
    int r = choose_name(name, file);

    if (r < 0)
        return report_errno(rep, -r, "cannot find a name beside %s", file);
    r = blk_file_create(&b, &spec, rep);
    if (r < 0)
        return r;
    r = blk_write(b, bytes, len, 0);
    if (r < 0)
        return report_errno(rep, -r, "cannot write %s", name);
    return blk_file_commit(b, rep);
}

/* Beside the backup; where that is on something read-only, beside the container. */
static int keep_old(struct restore *q)
{
    const char *container = q->words->header != NULL ? q->words->header : q->words->container;
    AUTO_FREE unsigned char *bytes = NULL;
    struct stat st;
    size_t len;
    int r = read_old(q, &bytes, &len);

    if (r < 0 || bytes_are_zero(bytes, len))
        return r;
    r = keep_as(q->words->file, q->kept, bytes, len, NULL);
    if (r < 0 && stat(container, &st) == 0 && S_ISREG(st.st_mode))
        r = keep_as(container, q->kept, bytes, len, q->rep);
    else if (r < 0)
        r = keep_as(q->words->file, q->kept, bytes, len, q->rep);
    if (r < 0)
        return r;
    printf("the header from before is in %s\n", CMD_SHOWN(q->kept));
    fflush(stdout);
    return 0;
}

static int put_back(struct restore *q)
{
    struct blk *b = key_container_header(&q->at);
    const struct key_format *f = q->backup.format;
    int r = f->restore(q->backup.store, b, q->rep);

    if (r == 0 && f->check != NULL && f->check(b, q->at.blk, NULL) == -EBADMSG)
        r = report_error(q->rep, EIO, "the restored header does not read back as it was written");
    if (r < 0 && q->kept[0] != '\0')
        report_warn(q->rep, "the header from before is in %s", q->kept);
    return r;
}

static int restore(struct restore *q)
{
    int r = open_container(q);

    if (r == 0)
        r = open_backup(q);
    if (r == 0)
        r = check_has_slots(q);
    if (r == 0)
        r = check_place(q);
    if (r == 0)
        r = keep_old(q);
    if (r == 0)
        r = put_back(q);
    return r;
}

static int header_restore(int argc, char **argv)
{
    struct header_words w;
    struct report rep;
    AUTO_RESTORE struct restore q = {.words = &w, .rep = &rep};
    int r = header_take_words(&w, &cmd_header_restore, options, "holds the backup", argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_header_restore);
    report_stderr_init(&rep, "header restore", w.container);
    report_stderr_init(&q.about_backup, "header restore", w.file);
    rep.silent_infos = q.about_backup.silent_infos = !w.verbose;
    if (w.resize_from != 0 || w.resize_find)
        return header_move(&w, &rep);
    r = restore(&q);
    if (r < 0)
        return r;
    printf("the header of %s is the one from %s again\n", CMD_SHOWN(w.container),
           CMD_SHOWN(w.file));
    return 0;
}

const struct command cmd_header_restore = {
    .name = "header restore",
    .summary = "put a backup in the place of the header",
    .usage = usage,
    .run = header_restore,
};
