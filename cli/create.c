/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol create: words into a struct vol_create; what it makes of them is volume/create.c's. */

#include "base/size.h"
#include "cli/command.h"
#include "cli/credential_options.h"
#include "cli/format_options.h"
#include "cli/progress.h"
#include "volume/volume.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_SECTOR 4096 /* bytes */

/* clang-format off */
static const char usage[] =
    "Usage: hushvol create CONTAINER --size SIZE [OPTION...]\n"
    "\n"
    "Makes a container: a file, or an existing block device, that will hold a whole disk of SIZE\n"
    "bytes (512M, 10G, 2T). On a block device SIZE may be left out: all of it. Asks for a new\n"
    "passphrase, twice, unless an option says where it comes from.\n"
    "\n"
    "  --size SIZE              of the disk; rounded up to a whole sector\n"
    "  --sparse                 take space on the host only as it is written, and give it back\n"
    "                           when the file system above discards; without it all space is\n"
    "                           taken now and can not run out later\n"
    "  --force                  overwrite what is at CONTAINER\n"
    "  --label TEXT             up to 48 bytes, kept in the header unencrypted\n"
    CMD_FORMAT_USAGE
    "  --no-init                leave authenticated sectors of geli as they are: each reads as an error\n"
    "                           until it is written\n"
    "  --header FILE            put the header into FILE, a new one, and only data into CONTAINER;\n"
    "                           both are needed to open it\n"
    CMD_CREDENTIAL_USAGE
    CMD_KDF_USAGE
    "  -v, --verbose            say more\n"
    "\n"
    "Examples:\n"
    "  hushvol create photos.hv --size 10G --sparse\n"
    "  hushvol create photos.hv --size 10G --header /media/stick/photos.header\n"
    "  hushvol create bsd.img --size 10G --format geli --cipher aes-xts --key-size 256\n"
    "  hushvol create /dev/sdx1 --force --passphrase-file /root/key\n"
    "\n"
    "Exit status: 0 made, 1 failed (exists, no space), 2 wrong words, 5 in use by another,\n"
    "6 a cipher or format that this build can not make, 7 no such folder.\n";
/* clang-format on */

enum {
    OPT_SIZE = CMD_OPT_OWN,
    OPT_SPARSE,
    OPT_FORCE,
    OPT_LABEL,
    OPT_NO_INIT,
};

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"size", required_argument, NULL, OPT_SIZE},
    {"sparse", no_argument, NULL, OPT_SPARSE},
    {"force", no_argument, NULL, OPT_FORCE},
    {"label", required_argument, NULL, OPT_LABEL},
    {"no-init", no_argument, NULL, OPT_NO_INIT},
    CMD_FORMAT_OPTIONS,
    CMD_HEADER_OPTION,
    CMD_CREDENTIAL_OPTIONS,
    CMD_KDF_OPTIONS,
    {0},
};

struct request {
    struct vol_create create;
    struct cmd_format_words words;
    bool help, verbose;
    char prompt[REPORT_LINE];
};

static int take_size(uint64_t *ret, const char *option, const char *arg)
{
    if (size_parse(ret, arg) < 0 || *ret == 0)
        return cmd_usage(&cmd_create, "%s takes a size like 512M or 10G, not \"%s\"", option, arg);
    return 0;
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
    case OPT_SIZE:
        return take_size(&q->create.size, "--size", optarg);
    case OPT_SPARSE:
        q->create.sparse = true;
        return 0;
    case OPT_FORCE:
        q->create.force = true;
        return 0;
    case OPT_LABEL:
        q->words.header.label = optarg;
        return 0;
    case OPT_NO_INIT:
        q->create.no_init = true;
        return 0;
    default:
        break;
    }
    r = cmd_credential_option(&cmd_create, opt, optarg, &q->create.credential, NULL);
    if (r == 0)
        r = cmd_kdf_option(&cmd_create, opt, optarg, &q->words.header.kdf);
    if (r == 0)
        r = cmd_format_option(&cmd_create, opt, optarg, &q->words);
    if (r == 0)
        r = cmd_header_option(&cmd_create, opt, optarg, &q->create.header_file);
    if (r == 0)
        return cmd_option_error(&cmd_create, opt, argv);
    return r < 0 ? r : 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":v", options, NULL)) != -1) {
        r = take_option(q, opt, argv);
        if (r < 0 || q->help)
            return r;
    }
    if (optind == argc)
        return cmd_usage(&cmd_create, "which container?");
    if (optind + 1 < argc)
        return cmd_usage(&cmd_create, "only one container at a time, not also \"%s\"",
                         argv[optind + 1]);
    q->create.container = argv[optind];
    return 0;
}

/* What the words leave open. */
static int settle(struct request *q, struct report *rep)
{
    q->create.format = q->words.format != NULL ? q->words.format : "native";
    q->create.header = q->words.header;
    if (q->create.header.sector_size == 0)
        q->create.header.sector_size = DEFAULT_SECTOR;
    return cmd_format_settle(&cmd_create, &q->words, q->create.format, &q->create.header, rep);
}

static void say_done(const struct request *q)
{
    const struct key_create *h = &q->create.header;
    const char *path = CMD_SHOWN(q->create.container);
    bool apart = q->create.header_file != NULL;
    const char *option = apart ? " --header " : "";
    const char *header = CMD_SHOWN(apart ? q->create.header_file : "");

    printf("made %s: %s, %s, sectors of %u bytes%s\n"
           "next: hushvol mount %s%s%s   or, with a file system in one step:\n"
           "      hushvol attach %s DIR --mkfs ext4%s%s\n",
           path, q->create.format, h->cipher, h->sector_size, q->create.sparse ? ", sparse" : "",
           path, option, header, path, option, header);
}

static int create(int argc, char **argv)
{
    struct request q = {
        .create.credential.confirm = true,
    };
    struct cmd_progress progress;
    struct report rep;
    pid_t holder = 0;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_create);
    report_stderr_init(&rep, "create", q.create.container);
    rep.silent_infos = !q.verbose;
    r = settle(&q, &rep);
    if (r < 0)
        return r;
    snprintf(q.prompt, sizeof(q.prompt), "New passphrase for %s", q.create.container);
    q.create.credential.prompt = q.prompt;
    secret_lock_memory(NULL);
    cmd_progress_start(&progress, "create");
    q.create.progress = &progress.progress;
    r = vol_create(&q.create, &holder, &rep);
    cmd_progress_end(&progress, r);
    if (r == -EBUSY)
        return cmd_busy(q.create.container, NULL, holder, &rep);
    if (r == 0)
        say_done(&q);
    return r;
}

const struct command cmd_create = {
    .name = "create",
    .summary = "make a container",
    .usage = usage,
    .run = create,
};
