/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/files.h"

/* What is in these files decides which programs run and what is mounted, as the caller and at times
 * as root: so it is checked who could have written them, on the descriptor and not on the name.
 * Opened without blocking, so that a FIFO in the place of a file stops nobody. */

#include "base/auto.h"
#include "conf/expand.h"
#include "conf/ini.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int check_file(int fd, const char *path, bool system, struct report *rep)
{
    struct stat st;

    if (fstat(fd, &st) < 0)
        return report_errno(rep, errno, "%s", path);
    if (!S_ISREG(st.st_mode))
        return report_error(rep, EUCLEAN, "%s: it is not a regular file", path);
    if (st.st_uid != 0 && (system || st.st_uid != geteuid()))
        return report_error(rep, EUCLEAN, "%s: it belongs to user %u (must be %s)", path,
                            (unsigned)st.st_uid, system || geteuid() == 0 ? "root" : "you or root");
    if (st.st_mode & (S_IWGRP | S_IWOTH))
        return report_error(rep, EUCLEAN, "%s: others than its owner may write it (chmod go-w)",
                            path);
    if (st.st_size > CONF_TEXT_MAX)
        return report_error(rep, EUCLEAN, "%s: more than 1 MiB", path);
    return 0;
}

/* One byte more than is allowed, so that a file that grew meanwhile is seen. */
static int read_all(int fd, char *text, size_t *len)
{
    *len = 0;
    while (*len <= CONF_TEXT_MAX) {
        ssize_t n = read(fd, text + *len, CONF_TEXT_MAX + 1 - *len);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        *len += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

/* 0 also when it is not there. */
static int add_file(struct conf *c, const char *path, bool system, struct report *rep)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    AUTO_FREE char *text = NULL;
    size_t len;
    int r;

    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
        return 0;
    if (fd < 0 && errno == ELOOP)
        return report_error(rep, EUCLEAN, "%s: it is a symbolic link (put the file itself there)",
                            path);
    if (fd < 0 && errno == ENXIO) /* a socket, or a device that is gone */
        return report_error(rep, EUCLEAN, "%s: it is not a regular file", path);
    if (fd < 0)
        return report_errno(rep, errno, "%s", path);
    r = check_file(fd, path, system, rep);
    if (r < 0)
        return r;
    text = malloc(CONF_TEXT_MAX + 1);
    if (text == NULL)
        return report_errno(rep, ENOMEM, "%s", path);
    r = read_all(fd, text, &len);
    return r < 0 ? report_errno(rep, -r, "%s", path) : conf_add(c, path, system, text, len, rep);
}

static int is_config(const struct dirent *d)
{
    size_t len = strlen(d->d_name);

    return d->d_name[0] != '.' && len > 5 && strcmp(d->d_name + len - 5, ".conf") == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int add_folder(struct conf *c, const char *system, struct report *rep)
{
    struct dirent **list = NULL;
    char path[PATH_MAX];
    int status = 0, n;

    snprintf(path, sizeof(path), "%s/conf.d", system);
    n = scandir(path, &list, is_config, by_name);
    if (n < 0 && errno != ENOENT)
        return report_errno(rep, errno, "%s", path);
    for (int i = 0; i < n; i++) {
        int r;

        snprintf(path, sizeof(path), "%s/conf.d/%s", system, list[i]->d_name);
        r = add_file(c, path, true, rep);
        if (r < 0)
            status = r;
        free(list[i]);
    }
    free(list);
    return status;
}

int conf_read_from(struct conf **ret, const char *system, const char *own, struct report *rep)
{
    struct conf *c;
    char path[PATH_MAX];
    int r, status = conf_new(&c);

    if (status < 0)
        return report_errno(rep, -status, "cannot read the configuration");
    snprintf(path, sizeof(path), "%s/hushvol.conf", system);
    status = add_file(c, path, true, rep);
    r = add_folder(c, system, rep);
    status = status < 0 ? status : r;
    r = own != NULL ? add_file(c, own, false, rep) : 0;
    status = status < 0 ? status : r;
    if (status == 0)
        status = conf_settle(c, rep);
    if (status < 0)
        conf_free(c);
    else
        *ret = c;
    return status;
}

int conf_read(struct conf **ret, struct report *rep)
{
    AUTO_CONF_USER struct conf_user caller = {0};
    char own[PATH_MAX];
    int r = conf_user_caller(&caller, rep);

    if (r < 0)
        return r;
    snprintf(own, sizeof(own), "%s/hushvol/hushvol.conf", caller.xdg[CONF_XDG_CONFIG]);
    return conf_read_from(ret, CONF_SYSTEM, own, rep);
}
