/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/run.h"

/* posix_spawn and never a shell: no word of ours is parsed again by anybody. Our own descriptors
 * are all close-on-exec. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char system_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static int find_in(char *out, size_t size, const char *path, const char *program)
{
    while (*path != '\0') {
        int len = (int)strcspn(path, ":");
        int n = snprintf(out, size, "%.*s/%s", len, path, program);

        if (path[0] == '/' && n > 0 && (size_t)n < size && access(out, X_OK) == 0)
            return 0;
        path += len;
        path += strspn(path, ":");
    }
    return -ENOENT;
}

int run_find(char *out, size_t size, const char *program)
{
    const char *path = geteuid() != 0 ? getenv("PATH") : NULL;

    if (path != NULL && find_in(out, size, path, program) == 0)
        return 0;
    return find_in(out, size, system_path, program);
}

static void set_signals(posix_spawnattr_t *attr)
{
    sigset_t none, all;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(attr, &none);
    posix_spawnattr_setsigdefault(attr, &all);
    posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int spawn(pid_t *pid, const char *path, const char *const argv[], enum run_output output)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    int r;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    set_signals(&attr);
    if (output != RUN_SHOW)
        posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (output == RUN_HIDE_ALL)
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    r = posix_spawn(pid, path, &actions, &attr, (char *const *)argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

int run_wait(const char *const argv[], enum run_output output, struct report *rep)
{
    char path[4096];
    pid_t pid;
    int status, r;

    if (run_find(path, sizeof(path), argv[0]) < 0)
        return report_error(rep, ENOENT, "the program %s is not installed", argv[0]);
    r = spawn(&pid, path, argv, output);
    if (r < 0)
        return report_errno(rep, -r, "cannot run %s", path);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return report_errno(rep, errno, "cannot wait for %s", path);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
