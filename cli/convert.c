/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol convert: opens the source, settles what the new container is to be from the words and
 * from what the source is, and leaves the rest to vol_convert(). */

#include "base/bytes.h"
#include "base/size.h"
#include "cli/command.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "cli/format_options.h"
#include "cli/named.h"
#include "cli/progress.h"
#include "volume/volume.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol convert SRC DST [OPTION...]\n"
    "\n"
    "Copies the disk in the container SRC into a new container DST, which has a volume key of its\n"
    "own and, where options say so, another cipher, sector size or size. SRC is only read; it may\n"
    "not be mounted, or only read-only. What is a hole or zeros takes no space in a sparse DST.\n"
    "Everything is read back from DST and compared; DST appears when that is done, and not at all\n"
    "when something fails or Ctrl-C ends it (kill -9 leaves a file .hushvol-new-... beside it, which\n"
    "is no container and can go). DST may be an existing block device.\n"
    "\n"
    "Asks for the passphrase of SRC, then twice for the one of DST, unless options say where they\n"
    "come from. Other key slots of SRC are not copied; \"hushvol key add\" makes new ones.\n"
    "\n"
    "Without an option DST gets what SRC has; of another format, what that has by default:\n"
    "  --size SIZE              of the disk; what is more reads as zeros. A smaller one is taken\n"
    "                           when what is cut off is all zeros, else it asks\n"
    "  --sparse, --preallocate  take space on the host as it is written, or all of it now\n"
    "  --label TEXT             up to 48 bytes, kept in the header unencrypted; \"\" is none\n"
    CMD_FORMAT_USAGE
    "\n"
    CMD_CREDENTIAL_USAGE
    CMD_NEW_CREDENTIAL_USAGE
    "  --same-key               DST opens with the passphrase and key files that opened SRC\n"
    CMD_KDF_USAGE
    "  --header FILE            the header of SRC is in FILE\n"
    "  --new-header FILE        put the one of DST into FILE, a new one\n"
    "  --force                  overwrite what is at DST\n"
    CMD_YES_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol convert photos.hv photos-new.hv --sector-size 512 --same-key\n"
    "  hushvol convert photos.hv /dev/sdx1 --size 20G --preallocate\n"
    "\n"
    "Exit status: 0 made, 1 failed (exists, no space, not confirmed, what was read back differs),\n"
    "2 wrong words, 3 no key of SRC fits, 4 SRC is damaged or not a container, 5 in use by another,\n"
    "6 a cipher or format that this build can not make, 7 no SRC, or no folder for DST.\n";
/* clang-format on */

enum {
    OPT_SIZE = CMD_OPT_OWN,
    OPT_SPARSE,
    OPT_PREALLOCATE,
    OPT_FORCE,
    OPT_LABEL,
    OPT_SAME_KEY,
    OPT_NEW_HEADER,
};

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"size", required_argument, NULL, OPT_SIZE},
    {"sparse", no_argument, NULL, OPT_SPARSE},
    {"preallocate", no_argument, NULL, OPT_PREALLOCATE},
    {"force", no_argument, NULL, OPT_FORCE},
    {"label", required_argument, NULL, OPT_LABEL},
    CMD_FORMAT_OPTIONS,
    {"same-key", no_argument, NULL, OPT_SAME_KEY},
    {"new-header", required_argument, NULL, OPT_NEW_HEADER},
    CMD_YES_OPTION,
    CMD_HEADER_OPTION,
    CMD_CREDENTIAL_OPTIONS,
    CMD_NEW_CREDENTIAL_OPTIONS,
    CMD_KDF_OPTIONS,
    {0},
};

struct request {
    struct vol_spec from;
    struct vol_create to;
    struct cmd_format_words words; /* what no word says is zero */
    bool sparse, preallocate, same_key, yes, help, verbose;
    struct credential opened; /* what opened the source, with same_key */
    struct cmd_progress progress;
    char prompt[REPORT_LINE], new_prompt[REPORT_LINE];
};

static int take_size(uint64_t *ret, const char *option, const char *arg)
{
    if (size_parse(ret, arg) < 0 || *ret == 0)
        return cmd_usage(&cmd_convert, "%s takes a size like 512M or 10G, not \"%s\"", option, arg);
    return 0;
}

static int take_shared_option(struct request *q, int opt, char **argv)
{
    int r =
        cmd_credential_option(&cmd_convert, opt, optarg, &q->from.credential, &q->to.credential);

    if (r == 0)
        r = cmd_kdf_option(&cmd_convert, opt, optarg, &q->words.header.kdf);
    if (r == 0)
        r = cmd_format_option(&cmd_convert, opt, optarg, &q->words);
    if (r == 0)
        r = cmd_header_option(&cmd_convert, opt, optarg, &q->from.header);
    if (r == 0)
        return cmd_option_error(&cmd_convert, opt, argv);
    return r < 0 ? r : 0;
}

static int take_option(struct request *q, int opt, char **argv)
{
    switch (opt) {
    case CMD_OPT_HELP:
        q->help = true;
        return 0;
    case 'v':
        q->verbose = true;
        return 0;
    case OPT_SIZE:
        return take_size(&q->to.size, "--size", optarg);
    case OPT_SPARSE:
        q->sparse = true;
        return 0;
    case OPT_PREALLOCATE:
        q->preallocate = true;
        return 0;
    case OPT_FORCE:
        q->to.force = true;
        return 0;
    case OPT_LABEL:
        q->words.header.label = optarg;
        return 0;
    case OPT_NEW_HEADER:
        q->to.header_file = optarg;
        return 0;
    case OPT_SAME_KEY:
        q->same_key = true;
        return 0;
    case CMD_OPT_YES:
        q->yes = true;
        return 0;
    default:
        return take_shared_option(q, opt, argv);
    }
}

static int check_words(const struct request *q)
{
    const struct credential_source *new_key = &q->to.credential;

    if (q->sparse && q->preallocate)
        return cmd_usage(&cmd_convert, "--sparse and --preallocate exclude each other");
    if (q->same_key && (new_key->passphrase_file != NULL || new_key->passphrase_command != NULL ||
                        new_key->n_keyfiles > 0 || new_key->ask))
        return cmd_usage(&cmd_convert, "--same-key and a new key exclude each other");
    return 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r;

    optind = 0;
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(q, opt, argv);
        if (r < 0 || q->help)
            return r;
    }
    if (argc - optind < 2)
        return cmd_usage(&cmd_convert, "from which container, and into which?");
    if (argc - optind > 2)
        return cmd_usage(&cmd_convert, "one container into another, not also \"%s\"",
                         argv[optind + 2]);
    q->from.container = argv[optind];
    q->to.container = argv[optind + 1];
    return check_words(q);
}

/* What can be known before anybody is asked for a passphrase; what is missing the opens say. */
static int check_places(const struct request *q, struct report *rep)
{
    struct stat from, to;

    if (stat(q->from.container, &from) < 0 || stat(q->to.container, &to) < 0)
        return 0;
    if (from.st_dev == to.st_dev && from.st_ino == to.st_ino)
        return report_error(rep, EINVAL, "it would be converted into itself: name another place");
    if (S_ISREG(to.st_mode) && !q->to.force)
        return report_error(rep, EEXIST, "%s already exists (use --force to overwrite it)",
                            q->to.container);
    return 0;
}

/* What no word says is as it is in the source, as far as that has it in the same words. */
static int settle(struct request *q, const struct vol_info *from, struct report *rep)
{
    struct vol_create *to = &q->to;
    bool same;

    to->header = q->words.header;
    to->format = q->words.format != NULL ? q->words.format : from->format;
    same = strcmp(to->format, from->format) == 0;
    if (to->header.cipher == NULL && same && to->header.key_bits == 0)
        to->header.cipher = from->cipher;
    if (!q->words.integrity && same && from->integrity[0] != '\0')
        to->header.integrity = from->integrity;
    if (to->header.sector_size == 0)
        to->header.sector_size = from->sector_size;
    if (to->header.label == NULL && same)
        to->header.label = from->label;
    if (to->size == 0)
        to->size = from->size;
    to->sparse = q->sparse || (same && from->discard && !q->preallocate);
    return cmd_format_settle(&cmd_convert, &q->words, to->format, &to->header, rep);
}

/* Ctrl-C ends the question and the program, which has nothing to undo yet. */
static int ask_to_cut(struct request *q, const char *question, struct report *rep)
{
    int r;

    cmd_progress_end(&q->progress, 0);
    r = cmd_confirm(q->yes, question, "yes", rep);
    cmd_progress_start(&q->progress, "convert");
    return r;
}

/* Is anything in what a smaller disk leaves out, and may it go? */
static int check_cut(struct request *q, struct volume *from, uint64_t old_size, struct report *rep)
{
    uint64_t sector = q->to.header.sector_size, rest = q->to.size % sector;
    uint64_t size = rest == 0 ? q->to.size : q->to.size - rest + sector;
    char question[REPORT_LINE], has[SIZE_TEXT], keeps[SIZE_TEXT];
    int r;

    if (size >= old_size)
        return 0;
    r = vol_is_zero(from, size, q->to.progress, rep);
    if (r != 0)
        return r < 0 ? r : 0;
    snprintf(question, sizeof(question),
             "The disk in %s has %s, the new one only %s: what lies behind that is not all zeros "
             "and will not be copied. A file system on it has to be made smaller first.",
             q->from.container, size_format(has, old_size), size_format(keeps, size));
    return ask_to_cut(q, question, rep);
}

static void say_done(const struct request *q)
{
    const struct key_create *h = &q->to.header;

    printf("made %s from %s: %s, %s, sectors of %u bytes%s\n", CMD_SHOWN(q->to.container),
           CMD_SHOWN(q->from.container), q->to.format, h->cipher, h->sector_size,
           q->to.sparse ? ", sparse" : "");
}

static int convert_volume(struct request *q, struct volume *from, struct report *from_rep)
{
    struct report rep;
    struct vol_info info;
    pid_t holder = 0;
    int r;

    report_stderr_init(&rep, "convert", q->to.container);
    rep.silent_infos = !q->verbose;
    vol_get_info(from, &info);
    r = settle(q, &info, &rep);
    if (r == 0)
        r = check_cut(q, from, info.size, from_rep);
    if (r == 0)
        r = vol_convert(from, &q->to, &holder, &rep);
    return r == -EBUSY ? cmd_busy(q->to.container, NULL, holder, &rep) : r;
}

static int open_and_convert(struct request *q)
{
    struct volume *from = NULL;
    struct report rep;
    pid_t holder = 0;
    int r;

    report_stderr_init(&rep, "convert", q->from.container);
    rep.silent_infos = !q->verbose;
    r = check_places(q, &rep);
    if (r < 0)
        return r;
    secret_lock_memory(&rep);
    r = vol_open(&from, &q->from, &holder, &rep);
    if (r == -EBUSY)
        return cmd_busy(q->from.container, q->from.header, holder, &rep);
    if (r < 0)
        return r;
    r = convert_volume(q, from, &rep);
    if (r == 0)
        say_done(q);
    vol_close(from);
    return r;
}

static int convert(int argc, char **argv)
{
    struct request q = {
        .from = {.read_only = true, .no_readahead = true, .slot = KEY_SLOT_ANY},
        .to.credential = {.confirm = true, .prefix = "new-"},
    };
    struct report rep;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_convert);
    snprintf(q.prompt, sizeof(q.prompt), "Passphrase for %s", q.from.container);
    snprintf(q.new_prompt, sizeof(q.new_prompt), "New passphrase for %s", q.to.container);
    report_stderr_init(&rep, "convert", q.from.container);
    r = cmd_named_container(&q.from.container, &q.from.header, &q.from.credential, &rep);
    if (r < 0)
        return r;
    q.from.credential.prompt = q.prompt;
    q.to.credential.prompt = q.new_prompt;
    if (q.same_key) {
        q.from.credential.keep = &q.opened;
        q.to.credential.given = &q.opened;
    }
    cmd_progress_start(&q.progress, "convert");
    q.to.progress = &q.progress.progress;
    r = open_and_convert(&q);
    credential_done(&q.opened);
    cmd_progress_end(&q.progress, r);
    return r;
}

const struct command cmd_convert = {
    .name = "convert",
    .summary = "copy a container into a new one of other parameters",
    .usage = usage,
    .run = convert,
};
