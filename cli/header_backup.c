/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/header.h"

/* hushvol header backup. Takes no lock and no key. The file gets its name only when it is complete,
 * on the medium, and was read back: half a backup is found out when it is needed. */

#include "block/file.h"
#include "cli/reach.h"

#include <errno.h>
#include <stdio.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol header backup CONTAINER FILE [--header FILE]\n"
    "\n"
    "Copies the header with all its key slots to FILE, a new one of mode 0600, and reads it back.\n"
    "Needs no key, and the container may be mounted. Keep it elsewhere than the container. Who has\n"
    "it can guess passphrases, and open the container with one that it opens with today, also when\n"
    "that was removed from the container since: when a key must not open it any more, its backups\n"
    "have to go too.\n"
    "\n"
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol header backup photos.hv /media/stick/photos.header\n"
    "  hushvol header restore photos.hv /media/stick/photos.header\n"
    "\n"
    "Exit status: 0 made, 1 failed (FILE exists), 2 wrong words, 3 the container was erased, 4 not a\n"
    "container or damaged, 5 it is being re-encrypted, 6 not possible in this format, 7 no such\n"
    "container or folder.\n";
/* clang-format on */

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    CMD_HEADER_OPTION,
    {0},
};

static int check_possible(const struct key_container *c, struct report *rep)
{
    struct key_slot_info used[KEY_SLOTS_MAX];

    if (c->format->backup == NULL)
        return report_error(rep, EOPNOTSUPP,
                            "a backup of the header is not possible in the %s format",
                            c->format->name);
    if (c->format->slots != NULL && c->format->slots(c->store, used, KEY_SLOTS_MAX, NULL) == 0)
        return report_error(rep, EKEYREJECTED,
                            "the container was erased: a backup of it would open nothing");
    return 0;
}

/* Does what is in the file open as what is in the container? */
static int read_back(const struct key_container *c, struct blk *file, struct report *rep)
{
    struct key_store *backup = NULL;
    int r = c->format->open(&backup, file, c->blk, NULL);

    if (r == 0)
        r = c->format->restore_check(backup, c->store, NULL);
    c->format->close(backup);
    if (r == 0 && c->format->check(file, c->blk, NULL) == -EBADMSG)
        r = -EIO;
    return r < 0 ? report_error(rep, EIO, "what was written does not read back as it was written")
                 : 0;
}

static int write_file(const struct key_container *c, const char *path, struct report *rep)
{
    const struct blk_file_create spec = {
        .path = path,
        .size = c->format->header_size(c->store),
        .if_exists = "a backup takes no other file's place: choose another name",
    };
    AUTO_BLK struct blk *file = NULL;
    int r = blk_file_create(&file, &spec, rep);

    if (r == 0)
        r = c->format->backup(c->store, file, rep);
    if (r == 0)
        r = read_back(c, file, rep);
    if (r == 0)
        r = blk_file_commit(file, rep);
    return r;
}

static int header_backup(int argc, char **argv)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    struct header_words w;
    struct report rep;
    int r = header_take_words(&w, &cmd_header_backup, options, "gets the backup", argc, argv);

    if (r < 0)
        return r;
    if (w.help)
        return cmd_help(&cmd_header_backup);
    report_stderr_init(&rep, "header backup", w.container);
    rep.silent_infos = !w.verbose;
    r = cmd_reach_look(&c, w.container, w.header, &rep);
    if (r == 0)
        r = check_possible(&c, &rep);
    if (r == 0)
        r = write_file(&c, w.file, &rep);
    if (r < 0)
        return r;
    printf("the header of %s is in %s\n"
           "keep it elsewhere: with it, the keys of today open the container for ever\n",
           CMD_SHOWN(w.container), CMD_SHOWN(w.file));
    return 0;
}

const struct command cmd_header_backup = {
    .name = "header backup",
    .summary = "copy the header to a file",
    .usage = usage,
    .run = header_backup,
};
