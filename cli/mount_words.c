/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/mount_words.h"

#include "cli/key.h"
#include "cli/named.h"
#include "cli/owner.h"
#include "cli/teardown.h"
#include "fuse/mounts.h"
#include "fuse/registry.h"
#include "keystore/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ENDING_MS 10000

void cmd_mount_words_init(struct cmd_mount_words *w)
{
    *w = (struct cmd_mount_words){0};
    conf_mount_init(&w->conf);
}

void cmd_mount_words_done(struct cmd_mount_words *w)
{
    conf_mount_done(&w->conf);
}

int cmd_mount_option(const struct command *c, struct cmd_mount_words *w, int opt, char **argv)
{
    struct report rep;
    int r;

    switch (opt) {
    case CMD_OPT_HELP:
        w->help = true;
        return 0;
    case 'v':
        w->verbose = true;
        return 0;
    case 'o':
        report_stderr_init(&rep, c->name, NULL);
        return conf_options_apply(&w->conf, optarg, &rep);
    case CMD_OPT_ONETIME:
        if (optarg != NULL && strcmp(optarg, "force") != 0)
            return cmd_usage(c, "--onetime takes nothing, or =force, not \"%s\"", optarg);
        w->conf.vol.onetime = optarg != NULL ? VOL_ONETIME_FORCE : VOL_ONETIME_NEW;
        return 0;
    case CMD_OPT_SLOT:
        return key_take_slot(c, &w->conf.vol.slot, optarg);
    default:
        break;
    }
    r = cmd_credential_option(c, opt, optarg, &w->conf.vol.credential, NULL);
    if (r == 0)
        r = cmd_header_option(c, opt, optarg, &w->conf.vol.header);
    if (r == 0)
        return cmd_option_error(c, opt, argv);
    return r < 0 ? r : 0;
}

/* keyfile= adds, and two sources of a passphrase contradict each other: a key in the words takes
 * the place of the volume's whole key. */
int cmd_mount_named(struct cmd_mount_words *w, struct report *rep)
{
    const bool own_key = key_is_given(&w->conf.vol.credential), own_header = w->conf.vol.header;
    int r = cmd_named(&w->named, w->container, rep);

    if (r <= 0)
        return r;
    conf_mount_done(&w->conf);
    r = conf_volume_apply(&w->conf, w->named, rep);
    if (r < 0)
        return r;
    if (own_key)
        w->conf.vol.credential =
            (struct credential_source){.keyfile_timeout = w->conf.vol.credential.keyfile_timeout};
    if (own_header)
        w->conf.vol.header = NULL;
    return 1;
}

/* Where the image is to be; NULL: in the runtime folder. */
static const char *image_folder(const struct cmd_mount_words *w)
{
    if (w->folder == NULL && w->named != NULL && !w->named->filesystem)
        return w->named->mountpoint;
    return w->folder;
}

int cmd_mount_as_owner(const struct cmd_mount_words *w, struct report *rep)
{
    const struct cmd_owner how = {
        .point = image_folder(w),
        .allow_other = w->conf.serve.allow_other || w->conf.serve.allow_root,
        .foreground = w->foreground,
    };

    return w->named != NULL ? cmd_owner_become(w->named, &how, rep) : 0;
}

static int find_container(struct cmd_mount_words *w, struct report *rep)
{
    const char *container = w->named != NULL ? w->named->container : w->container;
    struct stat st;

    if (realpath(container, w->path) == NULL || stat(w->path, &st) < 0)
        return report_error(rep, errno, "%s",
                            errno == ENOENT ? "no such container" : strerror(errno));
    if (S_ISDIR(st.st_mode))
        return report_error(rep, EINVAL, "it is a folder, not a container");
    return 0;
}

/* Absolute, because "list" shows it. */
static int find_header(struct cmd_mount_words *w, struct report *rep)
{
    const char **header = &w->conf.vol.header;

    if (*header == NULL)
        return 0;
    if (realpath(*header, w->header) == NULL)
        return report_errno(rep, errno, "cannot open the header %s", *header);
    *header = w->header;
    return 0;
}

/* What died under the wanted name or with this container must not stand in the way of the living.
 */
static int clean_dead(struct cmd_mount_words *w, struct report *rep)
{
    const char *name = w->conf.serve.name;
    struct serve_found *list;
    unsigned n;
    int r = serve_registry_list(&list, &n);

    for (unsigned i = 0; r == 0 && i < n; i++)
        if (!list[i].alive && list[i].folder.owner == geteuid() &&
            ((name != NULL && strcmp(list[i].record.name, name) == 0) ||
             strcmp(list[i].record.container, w->path) == 0))
            r = cmd_teardown_dead(&list[i], rep);
    serve_registry_list_done(list, n);
    return r;
}

/* umount(8) and fusermount3 return before the daemon has closed the container: "umount DIR && mount
 * DIR" would find it busy. */
static void wait_for_ending(const struct cmd_mount_words *w)
{
    AUTO_FOUND struct serve_found f = {0};
    struct serve_mount_id there;
    struct stat st;

    if (stat(w->path, &st) < 0 || serve_registry_find_container(&f, st.st_dev, st.st_ino) < 0 ||
        f.folder.owner != geteuid()) /* others may say that they have it */
        return;
    if (serve_mounts_at(&there, f.record.mountpoint) < 0 || !there.ours)
        serve_registry_wait(&f, ENDING_MS);
}

int cmd_mount_serve(struct cmd_mount_words *w, serve_daemon_ready *ready, void *arg,
                    bool *in_daemon, struct report *rep)
{
    struct serve_daemon_spec spec;
    char prompt[PATH_MAX + 32];
    int r;

    *in_daemon = false;
    r = find_container(w, rep);
    if (r == 0)
        r = find_header(w, rep);
    if (r == 0)
        r = clean_dead(w, rep);
    if (r < 0)
        return r;
    wait_for_ending(w);
    spec = (struct serve_daemon_spec){
        .vol = w->conf.vol, .serve = w->conf.serve, .foreground = w->foreground, .busy = cmd_busy};
    spec.vol.container = w->path;
    spec.serve.mountpoint = image_folder(w);
    spec.broker = cmd_owner_broker();
    snprintf(prompt, sizeof(prompt), "Passphrase for %s", w->container);
    spec.vol.credential.prompt = prompt;
    r = serve_daemon(&spec, ready, arg, in_daemon, rep);
    if (r == -EINTR && key_interrupt() == 0)
        key_interrupted(SIGINT); /* the process that asked has taken it, and tells only that */
    return r;
}
