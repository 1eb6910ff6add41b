/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/unit.h"

/* A unit can be told nothing: its command line and environment are for everybody to read, and it
 * inherits no descriptor of ours. A FIFO in a folder that only we can enter hands over what never
 * lies on a disk: while it is open here the line waits in the kernel, and when we are gone so is
 * the line, wherever the unit stands then.
 *
 * systemctl does the talking. Where it is not there, or its manager does not answer, or that reads
 * another configuration than we do, the caller mounts by himself. */

#include "base/auto.h"
#include "base/run.h"
#include "cli/teardown.h"
#include "fuse/folder.h"
#include "fuse/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* How long systemctl waits for an answer of the manager (not for the volume). */
#define ANSWER "SYSTEMD_BUS_TIMEOUT=10s"

#define UNIT_MAX (SERVE_NAME_MAX + 32)
#define ENDING_TRIES 50
#define ENDING_US 100000
#define ENVIRONMENT_MAX ((size_t)256 * 1024)

static void unit_of(char out[UNIT_MAX], const char *name)
{
    snprintf(out, UNIT_MAX, "hushvol@%s.service", name);
}

/* The socket of the user's manager; after "su" the variable may still be another user's. */
static bool has_manager(void)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];
    struct stat st;

    if (runtime == NULL || runtime[0] != '/' ||
        snprintf(path, sizeof(path), "%s/systemd/private", runtime) >= (int)sizeof(path))
        return false;
    return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == geteuid();
}

/* Run "systemctl --user" with these words (at most three), and have what it says. 0 it did. */
static int ask_manager(char *out, size_t size, const char *const words[])
{
    char systemctl[PATH_MAX];
    const char *argv[8] = {"env", ANSWER, systemctl, "--user"};

    for (unsigned i = 0; i < 3 && words[i] != NULL; i++)
        argv[4 + i] = words[i];
    if (run_find(systemctl, sizeof(systemctl), "systemctl") < 0)
        return -ENOENT;
    return run_read(argv, out, size, NULL);
}

/* "NAME=value" as a line of text, or no such line when value is NULL. */
static bool agrees(const char *text, const char *name, const char *value)
{
    size_t len = strlen(name);

    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += line[0] == '\n';
        if (strncmp(line, name, len) != 0 || line[len] != '=')
            continue;
        line += len + 1;
        return value != NULL && strncmp(line, value, strlen(value)) == 0 &&
               (line[strlen(value)] == '\n' || line[strlen(value)] == '\0');
    }
    return value == NULL;
}

/* Does what the manager starts find the configuration, and what it names, where we do? */
static bool sees_the_same(void)
{
    static const char *const names[] = {"HOME",           "XDG_CONFIG_HOME", "XDG_DATA_HOME",
                                        "XDG_STATE_HOME", "XDG_CACHE_HOME",  "XDG_RUNTIME_DIR"};
    static const char *const words[] = {"show-environment", NULL, NULL};
    AUTO_FREE char *text = malloc(ENVIRONMENT_MAX);

    if (text == NULL || ask_manager(text, ENVIRONMENT_MAX, words) != 0)
        return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (!agrees(text, names[i], getenv(names[i])))
            return false;
    return true;
}

static bool knows(const char *unit)
{
    const char *const words[] = {"show", "--property=LoadState", unit};
    char said[256];

    return ask_manager(said, sizeof(said), words) == 0 && strcmp(said, "LoadState=loaded\n") == 0;
}

/* A FIFO of ours, open at both ends so that nobody waits for the other. What a starter that was
 * killed left under the name is empty. */
static int make_fifo(int folder, const char *name)
{
    int fd;

    if (unlinkat(folder, name, 0) < 0 && errno != ENOENT)
        return -errno;
    if (mkfifoat(folder, name, 0600) < 0)
        return -errno;
    fd = openat(folder, name, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* It fits, or a limit of this user's pipes is too low (pipe(7)): never half of it. */
static int put_line(int fifo, const struct secret *line)
{
    const struct iovec parts[] = {{.iov_base = line->bytes, .iov_len = line->len},
                                  {.iov_base = (char[]){'\n'}, .iov_len = 1}};
    ssize_t n = writev(fifo, parts, 2);

    return n == (ssize_t)line->len + 1 ? 0 : -EAGAIN;
}

/* What the unit said, in whole lines that are escaped already. */
static bool pass_on(int said)
{
    char text[4096];
    bool any = false;
    ssize_t n;

    while ((n = read(said, text, sizeof(text))) > 0)
        any = write(STDERR_FILENO, text, (size_t)n) > 0 || any;
    return any;
}

/* Ours, under whatever name; a living one if there is any. */
static bool find(struct serve_found *ret, const struct conf_volume *v)
{
    char path[PATH_MAX];

    return realpath(v->container, path) != NULL && serve_registry_find(ret, path) == 0 &&
           ret->folder.owner == geteuid();
}

static bool is_mounted(const struct conf_volume *v)
{
    AUTO_FOUND struct serve_found f = {0};

    return find(&f, v) && f.alive;
}

/* A unit counts as running as long as one of its processes does: fuse2fs outlives the daemon whose
 * image it has open. Without that it ends, if not before we look. */
static int start(const struct conf_volume *v, const char *unit, struct report *rep)
{
    const char *const words[] = {"start", unit, NULL};
    AUTO_FOUND struct serve_found f = {0};
    char said[4096];
    int r = 0;

    if (find(&f, v) && !f.alive)
        r = cmd_teardown_dead(&f, rep);
    for (unsigned i = 0; r == 0 && i < ENDING_TRIES && !is_mounted(v); i++) {
        if (i > 0)
            usleep(ENDING_US);
        r = ask_manager(said, sizeof(said), words);
    }
    return r;
}

static int start_and_listen(const struct conf_volume *v, int said, struct report *rep)
{
    char unit[UNIT_MAX];
    int r;

    unit_of(unit, v->name);
    r = start(v, unit, rep);
    if (!pass_on(said) && r > 0)
        report_error(rep, EIO, "%s did not start (\"systemctl --user status %s\" says more)", unit,
                     unit);
    return r == 0 ? 1 : -EIO;
}

int cmd_unit_start(const struct conf_volume *v, const struct secret *passphrase, struct report *rep)
{
    char unit[UNIT_MAX], login_name[CMD_UNIT_FIFO_MAX], said_name[CMD_UNIT_FIFO_MAX];
    AUTO_FD int folder = -1, login = -1, said = -1;
    struct serve_folder own;
    int r;

    unit_of(unit, v->name);
    if (!has_manager() || !sees_the_same() || !knows(unit) || serve_folder_own(&own, NULL) < 0)
        return 0;
    snprintf(login_name, sizeof(login_name), CMD_UNIT_LOGIN, v->name);
    snprintf(said_name, sizeof(said_name), CMD_UNIT_SAID, v->name);
    folder = serve_folder_open(own.path, geteuid());
    said = folder < 0 ? folder : make_fifo(folder, said_name);
    if (said >= 0 && passphrase != NULL)
        login = make_fifo(folder, login_name);
    if (said < 0 || (passphrase != NULL && (login < 0 || put_line(login, passphrase) < 0)))
        r = 0;
    else
        r = start_and_listen(v, said, rep);
    if (said >= 0)
        unlinkat(folder, said_name, 0);
    if (login >= 0)
        unlinkat(folder, login_name, 0);
    return r;
}
