/* SPDX-License-Identifier: BSD-2-Clause */

/* mount.hushvol SPEC DIR [-sfnv] [-N NS] [-t TYPE] [-o OPTIONS]: what mount(8) runs for lines of
 * /etc/fstab and for systemd's mount units. */

#include "base/auto.h"
#include "cli/mount_words.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: mount.hushvol CONTAINER DIR [-sfnv] [-N NAMESPACE] [-t TYPE] [-o OPTION,...]\n"
    "\n"
    "Runs as a helper of mount(8), for /etc/fstab lines like\n"
    "  /srv/photos.hv  /mnt/photos  hushvol  noauto,keyfile=/root/photos.key  0 0\n"
    "\n"
    CMD_MOUNT_USAGE;
/* clang-format on */

static const struct command helper = {
    .name = "mount", /* whose --help explains all options */
    .usage = usage,
};

static const struct option options[] = {
    {"help", no_argument, NULL, 'h'},
    CMD_MOUNT_OPTIONS,
    {0},
};

struct request {
    struct cmd_mount_words words;
    const char *list, *ns;
    bool sloppy, fake;
};

/* Sloppy: what is not known is somebody else's word and left out. What is known must still be
 * right: with "ro=1" left out, the mount would be writable. */
static int apply_sloppily(struct conf_mount *conf, const char *list, struct report *rep)
{
    int r = 0;

    while (r == 0 && *list != '\0') {
        char word[4096];
        size_t n = 0;

        while (*list != '\0' && *list != ',' && n < sizeof(word) - 2) {
            if (list[0] == '\\' && list[1] == ',')
                word[n++] = *list++;
            word[n++] = *list++;
        }
        word[n] = '\0';
        if (conf_options_knows(word))
            r = conf_options_apply(conf, word, rep);
        list += strcspn(list, ",");
        list += *list == ',';
    }
    return r;
}

/* A path like /proc/PID/ns/mnt, or a PID. */
static int enter_namespace(const char *ns, struct report *rep)
{
    char path[64];
    AUTO_FD int fd = -1;

    snprintf(path, sizeof(path), "/proc/%.16s/ns/mnt", ns);
    fd = open(ns[0] == '/' ? ns : path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNS) < 0)
        return report_errno(rep, errno, "cannot enter the mount namespace %s", ns);
    return 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r = 0;

    optind = 0;
    opterr = 0;
    while (r == 0 && (opt = getopt_long(argc, argv, ":sfnvhN:t:o:", options, NULL)) != -1) {
        switch (opt) {
        case 's':
            q->sloppy = true;
            break;
        case 'f':
            q->fake = true;
            break;
        case 'n': /* no mtab: there is none */
        case 't': /* the type, which brought us here */
            break;
        case 'N':
            q->ns = optarg;
            break;
        case 'o':
            q->list = optarg;
            break;
        case 'h':
            q->words.help = true;
            break;
        default:
            r = cmd_mount_option(&helper, &q->words, opt, argv);
        }
    }
    if (r == 0 && !q->words.help && argc - optind != 2)
        return cmd_usage(&helper, "takes a CONTAINER and a DIR");
    q->words.container = argv[optind];
    q->words.folder = q->words.help ? NULL : argv[optind + 1];
    return r;
}

static int apply_list(struct request *q, struct report *rep)
{
    if (q->list == NULL)
        return 0;
    return q->sloppy ? apply_sloppily(&q->words.conf, q->list, rep)
                     : conf_options_apply(&q->words.conf, q->list, rep);
}

static int mount_it(struct request *q, int argc, char **argv, struct report *rep)
{
    bool in_daemon;
    int r = apply_list(q, rep);

    if (r == 0)
        r = cmd_mount_named(&q->words, rep);
    if (r > 0) {
        r = take_words(q, argc, argv);
        if (r == 0)
            r = apply_list(q, rep);
    }
    if (r == 0 && q->ns != NULL)
        r = enter_namespace(q->ns, rep);
    if (r < 0 || q->fake)
        return r;
    r = cmd_mount_as_owner(&q->words, rep);
    if (r < 0)
        return r;
    return cmd_mount_serve(&q->words, NULL, NULL, &in_daemon, rep);
}

int cmd_mount_helper(int argc, char **argv)
{
    struct request q = {0};
    struct report rep;
    int r;

    cmd_mount_words_init(&q.words);
    r = take_words(&q, argc, argv);
    report_stderr_init(&rep, "mount", q.words.container);
    if (r == 0)
        r = q.words.help ? cmd_help(&helper) : mount_it(&q, argc, argv, &rep);
    cmd_mount_words_done(&q.words);
    return r;
}
