/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/folder.h"

/* /tmp is anybody's, so a folder there may have been prepared by somebody who wants to read our
 * records or to catch our passphrase prompt's answer through a false socket. Hence the rule of the
 * header, checked on the opened folder; everything in it is then reached through that descriptor.
 */

#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT_FOLDER "/run/hushvol"

int serve_folder_open(const char *path, uid_t owner)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return errno == ELOOP || errno == ENOTDIR ? -EPERM : -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (st.st_uid != owner || (st.st_mode & 05777) != 0700) /* setgid comes down from above */
        return -EPERM;
    return TAKE_FD(fd);
}

int serve_folder_make(const char *path)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    return serve_folder_open(path, geteuid());
}

/* The places in order; returns how many. */
static unsigned candidates(struct serve_folder out[3])
{
    const char *xdg = getenv("XDG_RUNTIME_DIR");
    unsigned uid = geteuid(), n = 0;

    if (uid == 0) {
        snprintf(out[n].path, PATH_MAX, ROOT_FOLDER);
        out[n++].owner = 0;
        return n;
    }
    if (xdg != NULL && xdg[0] == '/' && strlen(xdg) < PATH_MAX - 16)
        snprintf(out[n++].path, PATH_MAX, "%s/hushvol", xdg);
    snprintf(out[n++].path, PATH_MAX, "/run/user/%u/hushvol", uid);
    snprintf(out[n++].path, PATH_MAX, "/tmp/hushvol-%u", uid);
    for (unsigned i = 0; i < n; i++)
        out[i].owner = uid;
    return n;
}

int serve_folder_own(struct serve_folder *ret, struct report *rep)
{
    struct serve_folder places[3];
    unsigned n = candidates(places);

    for (unsigned i = 0; i < n; i++) {
        int fd = serve_folder_make(places[i].path);

        if (fd >= 0) {
            close(fd);
            *ret = places[i];
            return 0;
        }
        if (fd == -EPERM)
            return report_error(rep, EPERM,
                                "%s must be a folder of yours with mode 0700 and is not (remove "
                                "it, or set XDG_RUNTIME_DIR)",
                                places[i].path);
    }
    return report_error(rep, EACCES, "no runtime folder can be made: neither %s nor the others",
                        places[0].path);
}

static int append(struct serve_folder **list, unsigned *n, const struct serve_folder *f)
{
    struct serve_folder *more;

    for (unsigned i = 0; i < *n; i++)
        if (strcmp((*list)[i].path, f->path) == 0)
            return 0;
    more = realloc(*list, (*n + 1) * sizeof(*more));
    if (more == NULL)
        return -ENOMEM;
    more[(*n)++] = *f;
    *list = more;
    return 0;
}

/* Root looks at what users keep; whose a folder is, its path says, and serve_folder_open() checks.
 */
static int append_users(struct serve_folder **list, unsigned *n)
{
    static const char *const patterns[] = {"/run/user/[0-9]*/hushvol", "/tmp/hushvol-[0-9]*"};
    int r = 0;

    for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
        glob_t found = {0};

        glob(patterns[p], GLOB_NOSORT, NULL, &found);
        for (size_t i = 0; r == 0 && i < found.gl_pathc; i++) {
            const char *path = found.gl_pathv[i];
            struct serve_folder f;

            f.owner = (uid_t)strtoul(path + strcspn(path, "0123456789"), NULL, 10);
            if (snprintf(f.path, sizeof(f.path), "%s", path) < (int)sizeof(f.path))
                r = append(list, n, &f);
        }
        globfree(&found);
    }
    return r;
}

int serve_folders(struct serve_folder **ret, unsigned *n)
{
    AUTO_FREE struct serve_folder *list = NULL;
    struct serve_folder places[3];
    unsigned n_places = candidates(places);
    int r = 0;

    *n = 0;
    for (unsigned i = 0; r == 0 && i < n_places; i++)
        r = append(&list, n, &places[i]);
    if (r == 0 && geteuid() == 0)
        r = append_users(&list, n);
    if (r < 0)
        return r;
    *ret = TAKE(list);
    return 0;
}
