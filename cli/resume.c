/* SPDX-License-Identifier: BSD-2-Clause */

/* hushvol resume: this process asks, unlocks the container beside the one that serves it, and hands
 * over the volume's key through a pipe; passphrases and key slots are not the daemon's business. */

#include "base/auto.h"
#include "block/file.h"
#include "cli/command.h"
#include "cli/credential_options.h"
#include "cli/job.h"
#include "cli/key.h"
#include "cli/named.h"
#include "cli/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const char usage[] =
    "Usage: hushvol resume DIR|NAME|CONTAINER [OPTION...]\n"
    "\n"
    "Unlocks a suspended volume with any of its keys; whoever waits for it goes on. A wrong key\n"
    "leaves it suspended. A volume that is not suspended needs none: status 0.\n"
    "\n"
    CMD_CREDENTIAL_USAGE
    "  --slot N                 try slot N only\n"
    CMD_HEADER_USAGE
    "  -q, --quiet              say only what is wrong\n"
    "  -v, --verbose            say more\n"
    "\n"
    "Example:\n"
    "  hushvol resume photos\n"
    "\n"
    "Exit status: 0 done, 1 failed, 2 wrong words, 3 no key fits, 4 the header is damaged, 5 its\n"
    "process is busy with something else, 6 not possible in this format, 7 no such mount.\n";
/* clang-format on */

enum { OPT_SLOT = CMD_OPT_OWN };

static const struct option options[] = {
    CMD_COMMON_OPTIONS,
    {"slot", required_argument, NULL, OPT_SLOT},
    {"quiet", no_argument, NULL, 'q'},
    CMD_HEADER_OPTION,
    CMD_CREDENTIAL_OPTIONS,
    {0},
};

struct request {
    const char *word, *header;
    int slot;
    struct credential_source key;
    bool help, quiet;
    char prompt[REPORT_LINE];
};

static int take_option(struct request *q, int opt, char **argv)
{
    int r;

    if (opt == CMD_OPT_HELP)
        q->help = true;
    if (opt == 'q')
        q->quiet = true;
    if (opt == CMD_OPT_HELP || opt == 'v' || opt == 'q')
        return 0;
    if (opt == OPT_SLOT)
        return key_take_slot(&cmd_resume, &q->slot, optarg);
    r = cmd_credential_option(&cmd_resume, opt, optarg, &q->key, NULL);
    if (r == 0)
        r = cmd_header_option(&cmd_resume, opt, optarg, &q->header);
    if (r == 0)
        return cmd_option_error(&cmd_resume, opt, argv);
    return r < 0 ? r : 0;
}

static int take_words(struct request *q, int argc, char **argv)
{
    int opt, r;

    optind = 0; /* start anew, and let getopt_long forget what it knows of another argv */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, ":qv", options, NULL)) != -1) {
        r = take_option(q, opt, argv);
        if (r < 0 || q->help)
            return r;
    }
    if (argc - optind != 1)
        return cmd_usage(&cmd_resume, "takes one DIR, NAME or CONTAINER");
    q->word = argv[optind];
    return 0;
}

static bool is_the_mounted(const struct serve_found *f, const struct stat *st)
{
    return st->st_dev == f->record.container_dev && st->st_ino == f->record.container_ino;
}

/* Where the container is: what the caller calls it, if that is a path of it, since it may have been
 * moved. */
static const char *container_path(const struct serve_found *f, const struct request *q)
{
    struct stat st;

    return stat(q->word, &st) == 0 && is_the_mounted(f, &st) ? q->word : f->record.container;
}

/* Another file may be at the path by now. And root does not hand the key of a container to a user
 * who only claims to have it mounted. */
static int check_file(const struct serve_found *f, const struct key_container *c, const char *path,
                      struct report *rep)
{
    struct stat st;

    if (fstat(blk_file_fd(c->blk), &st) < 0)
        return report_errno(rep, errno, "%s", path);
    if (f->folder.owner != geteuid() && st.st_uid != f->folder.owner)
        return report_error(rep, EPERM,
                            "%s is not a file of the user who has it mounted: only they can resume "
                            "it",
                            path);
    if (S_ISREG(st.st_mode) && !is_the_mounted(f, &st))
        return report_error(rep, ENOENT, "%s is not the file that is mounted any more", path);
    return 0;
}

static void say_where_to_look(const struct serve_found *f, const char *path, struct report *rep)
{
    struct stat st;

    if (path == f->record.container && (stat(path, &st) < 0 || !is_the_mounted(f, &st)))
        report_warn(rep, "was it moved? \"hushvol resume PATH\" takes the path that it has now");
}

/* What another process needs to go on with the volume, and the slot that opened. Reads only: the
 * lock is the other's. */
static int unlock(struct secret *ret, unsigned *slot, const struct serve_found *f,
                  struct request *q, struct report *rep)
{
    AUTO_KEY_CONTAINER struct key_container c = {0};
    AUTO_KEY_VOLUME struct key_volume volume = {0};
    const char *path = container_path(f, q);
    int r;

    if (q->header == NULL && f->folder.owner == geteuid()) /* a user's word is not for root */
        q->header = f->record.header;
    r = cmd_reach_look(&c, path, q->header, rep);
    if (r == 0)
        r = check_file(f, &c, path, rep);
    if (r == -ENOENT)
        say_where_to_look(f, path, rep);
    if (r == 0 && c.format->export == NULL)
        return report_error(rep, EOPNOTSUPP, "resuming is not possible in the %s format",
                            c.format->name);
    if (r == 0)
        r = key_unlock_with(&c, &q->key, q->slot, &volume, rep);
    if (r == 0)
        r = c.format->export(c.store, ret);
    *slot = volume.slot;
    return r;
}

/* The key waits in the pipe, which holds more than any key has, until the daemon reads it. */
static int put_in_pipe(int *ret, const struct secret *key)
{
    AUTO_FD int to = -1, from = -1;
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    from = ends[0];
    to = ends[1];
    if (write(to, key->bytes, key->len) != (ssize_t)key->len)
        return -EIO;
    *ret = TAKE_FD(from);
    return 0;
}

static int resume(const struct serve_found *f, struct request *q, struct report *rep)
{
    AUTO_SECRET struct secret key = {0};
    AUTO_FD int pipe = -1;
    struct cmd_job job = {.word = "resume", .doing = "resume"};
    unsigned slot = 0;
    int r = unlock(&key, &slot, f, q, rep);

    if (r < 0)
        return r;
    r = put_in_pipe(&pipe, &key);
    if (r < 0)
        return report_errno(rep, -r, "cannot hand over the key");
    secret_done(&key);
    job.fd = pipe;
    job.more = json_object_new_object();
    json_object_object_add(job.more, "slot", json_object_new_int64(slot));
    r = cmd_job_run(f, &job, rep);
    if (r == 0)
        report_info(rep, "%s goes on, unlocked with key slot %u", f->record.name, slot);
    return r;
}

/* The key of the configuration's volume of that name, if it is the one that is mounted and the
 * words have no key. Who is found without the configuration does not hear of faults in it. */
static int take_configured(struct request *q, const struct serve_found *f, struct report *rep)
{
    const char *word = q->word;
    const struct conf_volume *v;
    struct stat st;

    if (key_is_given(&q->key) || cmd_named(&v, word, NULL) <= 0 || stat(v->container, &st) < 0 ||
        !is_the_mounted(f, &st))
        return 0;
    return cmd_named_container(&word, &q->header, &q->key, rep);
}

static int run(int argc, char **argv)
{
    AUTO_FOUND struct serve_found f = {0};
    struct request q = {.slot = KEY_SLOT_ANY};
    struct report rep;
    struct cmd_served now;
    int r = take_words(&q, argc, argv);

    if (r < 0)
        return r;
    if (q.help)
        return cmd_help(&cmd_resume);
    report_stderr_init(&rep, "resume", q.word);
    rep.silent_infos = q.quiet;
    r = cmd_find_served(&f, &now, q.word, &rep);
    if (r < 0)
        return r;
    if (!now.suspended) {
        report_info(&rep, "%s is not suspended", f.record.name);
        return 0;
    }
    snprintf(q.prompt, sizeof(q.prompt), "Passphrase for %s", f.record.name);
    q.key.prompt = q.prompt;
    q.key.name = f.record.name;
    r = take_configured(&q, &f, &rep);
    if (r < 0)
        return r;
    secret_lock_memory(NULL); /* of the process that goes on, which may be another one now */
    return resume(&f, &q, &rep);
}

const struct command cmd_resume = {
    .name = "resume",
    .summary = "unlock a suspended volume; who waits for it goes on",
    .usage = usage,
    .run = run,
};
