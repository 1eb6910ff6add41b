/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/unit.h"

/* hushvol mount --from-login: in a unit of systemd. Nobody is there to be asked, and what somebody
 * has to say beforehand is in a FIFO (cli/unit.c) or a credential. From then on it is "hushvol
 * mount NAME" with the passphrase on standard input. */

#include "base/auto.h"
#include "cli/all.h"
#include "cli/command.h"
#include "cli/named.h"
#include "fuse/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Without one nothing can be asked there, nor waited for there. Of a session's leader it takes the
 * terminal away from all of them, by a SIGHUP for himself too. */
static void leave_terminal(void)
{
    AUTO_FD int tty = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
    void (*before)(int) = signal(SIGHUP, SIG_IGN);

    if (tty >= 0)
        ioctl(tty, TIOCNOTTY);
    signal(SIGHUP, before);
}

/* A FIFO with something in it, which loses its name. Returns a descriptor; -ENOENT there is none.
 */
static int open_line(int folder, const char *name)
{
    AUTO_FD int fd = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    struct pollfd look = {.fd = fd, .events = POLLIN};
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return -ENOENT;
    unlinkat(folder, name, 0);
    if (poll(&look, 1, 0) <= 0 || (look.revents & POLLIN) == 0)
        return -ENOENT;
    return fcntl(fd, F_SETFL, O_RDONLY) < 0 ? -errno : TAKE_FD(fd);
}

/* The file that systemd made of LoadCredential=hushvol.NAME, while we may still read it: the volume
 * may be another user's. */
static int open_credential(const char *name)
{
    const char *folder = secure_getenv("CREDENTIALS_DIRECTORY");
    char path[PATH_MAX];
    int fd;

    if (folder == NULL || snprintf(path, sizeof(path), "%s/hushvol.%s", folder, name) >= PATH_MAX)
        return -ENOENT;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/* Leave the terminal, if any; send what is said to the starter, too; and make standard input the
 * passphrase that is there for us. 1 there is one, 0 there is none. */
static int take(const char *name, struct report *rep)
{
    static char said[PATH_MAX + CMD_UNIT_FIFO_MAX];
    char login_name[CMD_UNIT_FIFO_MAX];
    AUTO_FD int folder = -1, line = -1;
    struct serve_folder own;
    int r = serve_folder_own(&own, rep);

    if (r < 0)
        return r;
    snprintf(login_name, sizeof(login_name), CMD_UNIT_LOGIN, name);
    snprintf(said, sizeof(said), "%s/" CMD_UNIT_SAID, own.path, name);
    report_stderr_copy(said);
    leave_terminal();
    folder = serve_folder_open(own.path, geteuid());
    line = folder < 0 ? folder : open_line(folder, login_name);
    if (line == -ENOENT)
        line = open_credential(name);
    if (line == -ENOENT)
        return 0;
    if (line < 0 || dup2(line, STDIN_FILENO) < 0)
        return report_errno(rep, line < 0 ? -line : errno, "cannot take the passphrase");
    return 1;
}

/* With a passphrase in the words these have to name the whole key. */
static int mount_with_line(struct cmd_argv *a, const char *name, struct report *rep)
{
    struct cmd_volume v = {0};
    int r;

    conf_mount_init(&v.conf);
    r = cmd_named(&v.said, name, rep);
    if (r > 0)
        r = conf_volume_apply(&v.conf, v.said, rep);
    if (r == 0) {
        cmd_argv_add(a, "--passphrase-file");
        cmd_argv_add(a, "-");
        cmd_argv_add_keyfiles(a, "--keyfile", &v);
        r = cmd_mount.run((int)a->n, (char **)a->words);
    }
    conf_mount_done(&v.conf);
    return r;
}

/* The folder that a unit runs in is nobody's choice: a file there must not be taken for the volume.
 */
int cmd_run_from_login(int argc, char **argv)
{
    struct cmd_argv a = {.words = {"mount", "--quiet", argv[argc - 1]}, .n = 3};
    struct report rep;
    int r;

    if (argc != 3 || strcmp(argv[1], "--from-login") != 0 || !serve_name_valid(argv[2]))
        return cmd_usage(&cmd_mount, "--from-login takes one NAME and no other words");
    report_stderr_init(&rep, "mount", argv[2]);
    if (chdir("/") < 0)
        return report_errno(&rep, errno, "cannot leave the current folder");
    r = take(argv[2], &rep);
    if (r > 0)
        return mount_with_line(&a, argv[2], &rep);
    return r < 0 ? r : cmd_mount.run((int)a.n, (char **)a.words);
}
