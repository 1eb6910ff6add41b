/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/resize.h"

/* hushvol resize: words, and the disk of a container that is not mounted. Growing asks nothing;
 * what shrinking would cut off is looked at, said, and asked for. */

#include "base/size.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "cli/filesystem_size.h"
#include "cli/find.h"
#include "cli/header.h"
#include "cli/named.h"
#include "cli/progress.h"
#include "keystore/unlock.h"
#include "volume/volume.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol resize CONTAINER|NAME|DIR SIZE [OPTION...]\n"
    "\n"
    "Gives the disk in a container another size: SIZE (20G), or more (+5G) or less (-5G) than it has.\n"
    "A mounted disk can grow, without a passphrase and while it is used; to shrink, it has to be\n"
    "unmounted. On a block device SIZE may be left out: all of it. (The header of a GELI container\n"
    "is at the end of its device, which is the only size there: when the device grew, it moves.)\n"
    "\n"
    "The file system on the disk does not change by this. After growing the disk, grow the file\n"
    "system: resize2fs DEVICE, xfs_growfs DIR, or btrfs filesystem resize max DIR. Shrink the file\n"
    "system first, and only then the disk. Make a new \"header backup\" afterwards: the size is part of\n"
    "the header.\n"
    "\n"
    "  --force                  cut off what a file system or partition still uses, or may use\n"
    CMD_YES_USAGE
    CMD_CREDENTIAL_USAGE
    CMD_HEADER_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol resize photos.hv +10G\n"
    "  hushvol resize photos.hv 5G --yes --passphrase-file /root/key\n"
    "\n"
    "Exit status: 0 done (or nothing to do), 1 failed (no space, still used), 2 wrong words, 3 no key\n"
    "fits, 4 damaged or no container, 5 in use (a mounted disk only grows), 6 not possible in this\n"
    "format, 7 no such container or mount.\n";
/* clang-format on */

enum { OPT_FORCE = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS, {"force", no_argument, NULL, OPT_FORCE},
    CMD_YES_OPTION,     CMD_CREDENTIAL_OPTIONS,
    CMD_HEADER_OPTION,  {0},
};

struct request {
    const char *which, *header;
    struct cmd_size size;
    struct credential_source key;
    bool force, yes, help, verbose;
    char prompt[REPORT_LINE];
};

static int take_size(struct cmd_size *ret, const char *word)
{
    const char *digits = word + (word[0] == '+' || word[0] == '-');

    ret->how = word[0] == '+' ? CMD_SIZE_MORE : word[0] == '-' ? CMD_SIZE_LESS : CMD_SIZE_TO;
    if (size_parse(&ret->bytes, digits) < 0 || ret->bytes == 0)
        return cmd_usage(&cmd_resize, "takes a size like 20G, +5G or -5G, not \"%s\"", word);
    return 0;
}

/* "-5G" looks like an option: it is taken out before getopt sees it. Returns it, or NULL. */
static const char *take_less(int *argc, char **argv)
{
    for (int i = 1; i < *argc && strcmp(argv[i], "--") != 0; i++) {
        char *word = argv[i];

        if (word[0] != '-' || !isdigit((unsigned char)word[1]))
            continue;
        memmove(argv + i, argv + i + 1, (size_t)(*argc - i) * sizeof(*argv)); /* NULL included */
        (*argc)--;
        return word;
    }
    return NULL;
}

static int take_option(struct request *q, int opt, char **argv)
{
    int r;

    switch (opt) {
    case CMD_OPT_HELP:
        q->help = true;
        return 0;
    case 'v':
        q->verbose = true;
        return 0;
    case OPT_FORCE:
        q->force = true;
        return 0;
    case CMD_OPT_YES:
        q->yes = true;
        return 0;
    default:
        break;
    }
    r = cmd_credential_option(&cmd_resize, opt, optarg, &q->key, NULL);
    if (r == 0)
        r = cmd_header_option(&cmd_resize, opt, optarg, &q->header);
    if (r == 0)
        return cmd_option_error(&cmd_resize, opt, argv);
    return r < 0 ? r : 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    const char *size = take_less(&argc, argv);
    int opt, r;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(q, opt, argv);
        if (r < 0 || q->help)
            return r;
    }
    if (optind == argc)
        return cmd_usage(&cmd_resize, "which container?");
    q->which = argv[optind++];
    if (size == NULL && optind < argc)
        size = argv[optind++];
    if (optind < argc)
        return cmd_usage(&cmd_resize, "takes a container and a size, not also \"%s\"",
                         argv[optind]);
    return size != NULL ? take_size(&q->size, size) : 0;
}

int cmd_size_of(uint64_t *ret, const struct cmd_size *want, uint64_t now, struct report *rep)
{
    *ret = want->bytes;
    if (want->how == CMD_SIZE_LESS && want->bytes >= now)
        return report_error(rep, EINVAL, "the disk has no more than that: %" PRIu64 " bytes", now);
    if (want->how == CMD_SIZE_MORE && want->bytes > INT64_MAX - now)
        return report_error(rep, EINVAL, "that would be more than a disk can have");
    if (want->how == CMD_SIZE_LESS)
        *ret = now - want->bytes;
    if (want->how == CMD_SIZE_MORE)
        *ret = now + want->bytes;
    return 0;
}

void cmd_size_say(const char *which, uint64_t now, uint64_t before)
{
    char text[SIZE_TEXT], old[SIZE_TEXT], shown[REPORT_LINE];

    report_escape(shown, sizeof(shown), which);
    if (now == before)
        printf("%s has %s already: nothing to do\n", shown, size_format(text, now));
    else
        printf("%s has %s now, it had %s\n"
               "a header backup from before does not fit any more: make a new one\n",
               shown, size_format(text, now), size_format(old, before));
}

/* Nobody shall type a passphrase for words that cannot be right. */
static int check_words(const struct request *q)
{
    struct stat st;

    if (q->size.how == CMD_SIZE_ALL && stat(q->which, &st) == 0 && !S_ISBLK(st.st_mode))
        return cmd_usage(&cmd_resize, "which size? Only a block device has one of its own");
    return 0;
}

static int find_size(uint64_t *ret, struct volume *v, const struct request *q, uint64_t now,
                     struct report *rep)
{
    int r = q->size.how == CMD_SIZE_ALL ? vol_device_room(v, ret, rep)
                                        : cmd_size_of(ret, &q->size, now, rep);

    return r < 0 ? r : vol_resize_check(v, ret, rep);
}

/* May the disk end at size? What is known to reach further stays, unless the user insists. */
static int check_cut(struct volume *v, const struct request *q, uint64_t size, struct report *rep)
{
    char text[SIZE_TEXT];
    struct cmd_fs_need need;
    int r = cmd_fs_find_need(&need, vol_top(v), rep);

    if (r < 0 || q->force || need.what[0] == '\0')
        return q->force ? 0 : r;
    if (need.end == 0)
        return report_error(rep, EPERM,
                            "the disk holds something (%s) that does not say where it ends "
                            "(--force cuts the disk all the same)",
                            need.what);
    if (need.end > size)
        return report_error(rep, EPERM,
                            "the disk holds something (%s) that needs %s: make that smaller first "
                            "(--force cuts the disk all the same)",
                            need.what, size_format(text, need.end));
    return 0;
}

static int shrink(struct volume *v, const struct request *q, uint64_t now, uint64_t size,
                  struct report *rep)
{
    char question[REPORT_LINE], text[SIZE_TEXT];
    int r = check_cut(v, q, size, rep);

    if (r < 0)
        return r;
    snprintf(question, sizeof(question),
             "The last %s (%" PRIu64 " bytes) of the disk in %s will be cut off, and what is there "
             "is lost.",
             size_format(text, now - size), now - size, q->which);
    r = cmd_confirm(q->yes, question, "yes", rep);
    return r < 0 ? r : vol_shrink(v, size, rep);
}

static int grow(struct volume *v, uint64_t size, struct report *rep)
{
    struct cmd_progress progress;
    int r;

    cmd_progress_start(&progress, "resize");
    r = vol_make_room(v, size, &progress.progress, rep);
    cmd_progress_end(&progress, r);
    return r < 0 ? r : vol_grow(v, size, rep);
}

static int resize_open(struct volume *v, const struct request *q, struct report *rep)
{
    struct vol_info info;
    uint64_t size;
    int r;

    vol_get_info(v, &info);
    r = find_size(&size, v, q, info.size, rep);
    if (r == 0)
        r = size < info.size ? shrink(v, q, info.size, size, rep) : grow(v, size, rep);
    if (r < 0)
        return r;
    cmd_size_say(q->which, size, info.size);
    if (size > info.size)
        printf("next: the file system on it (\"hushvol resize --help\" says how)\n");
    return 0;
}

/* All of a device that grew: a header that was at its end is not there now, and says itself how
 * large it was. */
static bool lost_its_header(const struct request *q)
{
    const struct blk_file_spec look = {
        .path = q->which, .read_only = true, .direct = BLK_DIRECT_OFF, .lock = BLK_LOCK_NONE};
    AUTO_KEY_CONTAINER struct key_container c = {0};

    return q->size.how == CMD_SIZE_ALL && q->header == NULL &&
           key_container_open_files(&c, &look, NULL, NULL, NULL) == 0 &&
           key_recognise(&c.format, c.blk, NULL) == -EBADMSG;
}

static int resize_lost(const struct request *q, struct report *rep)
{
    const struct header_words w = {.container = q->which, .resize_find = true, .yes = q->yes};

    return header_move(&w, rep);
}

static int resize_container(struct request *q, struct report *rep)
{
    const struct vol_spec spec = {.container = q->which,
                                  .header = q->header,
                                  .direct = BLK_DIRECT_OFF,
                                  .threads = 1,
                                  .no_readahead = true,
                                  .credential = q->key,
                                  .slot = KEY_SLOT_ANY};
    struct volume *v = NULL;
    pid_t holder = 0;
    int r, closed;

    secret_lock_memory(NULL);
    r = vol_open(&v, &spec, &holder, rep);
    if (r == -EBUSY)
        return cmd_busy(q->which, q->header, holder, rep);
    if (r < 0)
        return r;
    r = resize_open(v, q, rep);
    closed = vol_close(v);
    if (r == 0 && closed < 0)
        r = report_errno(rep, -closed, "cannot write the container to its disk");
    return r;
}

static int run(int argc, char **argv)
{
    AUTO_FOUND struct serve_found f = {0};
    struct request q = {0};
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_resize);
    report_stderr_init(&rep, "resize", q.which);
    rep.silent_infos = !q.verbose;
    snprintf(q.prompt, sizeof(q.prompt), "Passphrase for %s", q.which);
    q.key.prompt = q.prompt;
    r = cmd_find_mount(&f, q.which, &rep);
    if (r < 0 && r != -ENOENT)
        return r;
    if (r == 0 && f.alive)
        return cmd_resize_mounted(&f, &q.size, &rep);
    if (r == 0 && f.folder.owner == geteuid()) /* a dead mount of ours: its container */
        q.which = f.record.container;
    r = cmd_named_container(&q.which, &q.header, &q.key, &rep);
    if (r == 0)
        r = check_words(&q);
    if (r < 0)
        return r;
    return lost_its_header(&q) ? resize_lost(&q, &rep) : resize_container(&q, &rep);
}

const struct command cmd_resize = {
    .name = "resize",
    .summary = "make the disk larger, also while mounted, or smaller",
    .usage = usage,
    .run = run,
};
