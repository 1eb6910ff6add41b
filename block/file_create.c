/* SPDX-License-Identifier: BSD-2-Clause */
#include "block/file_layer.h"

/* New containers. A file grows under a name of its own beside its place and gets its real name in
 * one step when it is complete: whoever looks sees the old file or the new one, and a machine that
 * stops half-way leaves the old one. O_TMPFILE would leave no file behind a kill, but many file
 * systems (network, FUSE) lack it, and it cannot take the place of an existing file. */

#include "base/bytes.h"
#include "base/size.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>

struct file_draft {
    int folder;    /* where it is made */
    int old;       /* what it is going to replace, locked; -1: nothing */
    char *name;    /* that it is going to have */
    char temp[40]; /* that it has; empty: nothing there to remove */
};

void file_draft_close(struct file_draft *d)
{
    if (d == NULL)
        return;
    if (d->temp[0] != '\0')
        unlinkat(d->folder, d->temp, 0);
    if (d->folder >= 0)
        close(d->folder);
    if (d->old >= 0)
        close(d->old);
    free(d->name);
    free(d);
}

/* path split in the folder, which is opened, and the name. */
static int draft_find_folder(struct file_draft *d, const char *path, struct report *rep)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    AUTO_FREE char *folder = strndup(slash != NULL ? path : "./", slash != NULL ? name - path : 2);

    d->name = strdup(name);
    if (folder == NULL || d->name == NULL)
        return report_errno(rep, ENOMEM, "cannot make %s", path);
    if (*name == '\0')
        return report_error(rep, EINVAL, "%s is not the name of a file", path);
    d->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (d->folder < 0)
        return report_errno(rep, errno, "cannot open the folder %s", folder);
    return 0;
}

/* A new file in d->folder under a name that nobody has. Returns its descriptor. */
static int draft_make_file(struct file_draft *d, struct report *rep)
{
    AUTO_FD int fd = -1;
    uint64_t random;

    do {
        if (getrandom(&random, sizeof(random), 0) != sizeof(random))
            return report_errno(rep, errno, "cannot get a random number");
        snprintf(d->temp, sizeof(d->temp), ".hushvol-new-%016" PRIx64, random);
        fd = openat(d->folder, d->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    } while (fd < 0 && errno == EEXIST);
    if (fd < 0) {
        d->temp[0] = '\0';
        return report_errno(rep, errno, "cannot make a file beside %s", d->name);
    }
    if (fchmod(fd, 0600) < 0) /* the umask may have taken bits that we need */
        return report_errno(rep, errno, "cannot set the mode of the new file");
    return TAKE_FD(fd);
}

static int file_draft_open(struct file *f, const char *path, struct report *rep)
{
    struct file_draft *d = f->draft = calloc(1, sizeof(*d));
    int r;

    if (d == NULL)
        return report_errno(rep, ENOMEM, "cannot make %s", path);
    d->folder = d->old = -1;
    r = draft_find_folder(d, path, rep);
    if (r < 0)
        return r;
    r = f->fd = draft_make_file(d, rep);
    return r < 0 ? r : file_lock(f->fd, F_WRLCK, NULL, rep);
}

/* The file that is in the way, locked until the new one has its name. */
static int draft_take_old(struct file_draft *d, const char *path, struct report *rep)
{
    d->old = openat(d->folder, d->name, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    if (d->old < 0)
        return report_errno(rep, errno, "cannot open %s, which is to be replaced", path);
    return file_lock(d->old, F_WRLCK, NULL, rep);
}

static int file_fill(struct file *f, const struct blk_file_create *spec, struct report *rep)
{
    char size[SIZE_TEXT];
    int r = 0;

    if (spec->preallocate)
        r = file_preallocate(f, 0, spec->size, spec->progress);
    else if (ftruncate(f->fd, (off_t)spec->size) < 0)
        r = -errno;
    if (r == -EINTR) /* they know, they asked for it */
        return r;
    if (r < 0)
        return report_errno(rep, -r, "cannot make a file of %s", size_format(size, spec->size));
    f->blk.size = spec->size;
    return 0;
}

static int file_create_file(struct blk **ret, const struct blk_file_create *spec, const char *path,
                            bool exists, struct report *rep)
{
    AUTO_BLK struct blk *b = NULL;
    struct file *f = file_new();
    int r;

    if (f == NULL)
        return report_errno(rep, ENOMEM, "cannot make %s", path);
    b = &f->blk;
    r = file_draft_open(f, path, rep);
    if (r == 0 && exists)
        r = draft_take_old(f->draft, path, rep);
    if (r == 0)
        r = file_fill(f, spec, rep);
    if (r < 0)
        return r;
    *ret = TAKE(b);
    return 0;
}

static const char *file_exists_hint(const struct blk_file_create *spec)
{
    return spec->if_exists != NULL ? spec->if_exists : "use --force to overwrite it";
}

/* File systems and partition tables keep something at one of the ends. */
static int device_check_empty(struct blk *b, const char *path, const char *hint, struct report *rep)
{
    size_t len = b->size < 1 << 20 ? (size_t)b->size : 1 << 20;
    AUTO_FREE unsigned char *bytes = malloc(len + 1);
    const uint64_t ends[] = {0, b->size - len};

    if (bytes == NULL)
        return report_errno(rep, ENOMEM, "cannot read %s", path);
    for (unsigned i = 0; i < 2; i++) {
        int r = blk_read(b, bytes, len, ends[i]);

        if (r < 0)
            return report_errno(rep, -r, "cannot read %s", path);
        if (!bytes_are_zero(bytes, len))
            return report_error(rep, EEXIST, "%s holds something (%s)", path, hint);
    }
    return 0;
}

static int file_create_on_device(struct blk **ret, const struct blk_file_create *spec,
                                 const char *path, struct report *rep)
{
    const struct blk_file_spec device = {.path = path, .direct = BLK_DIRECT_OFF};
    AUTO_BLK struct blk *b = NULL;
    char has[SIZE_TEXT], needs[SIZE_TEXT];
    int r = blk_file_open(&b, &device, NULL, rep);

    if (r < 0)
        return r;
    if (spec->size > b->size)
        return report_error(rep, ENOSPC, "%s has %s, the container needs %s", path,
                            size_format(has, b->size), size_format(needs, spec->size));
    r = spec->replace ? 0 : device_check_empty(b, path, file_exists_hint(spec), rep);
    if (r < 0)
        return r;
    *ret = TAKE(b);
    return 0;
}

/* Where the new file goes, through symbolic links: 1 something is there, 0 nothing. */
static int file_resolve(char **ret, struct stat *st, const char *path, struct report *rep)
{
    *ret = realpath(path, NULL);
    if (*ret != NULL && stat(*ret, st) == 0)
        return 1;
    if (errno != ENOENT)
        return report_errno(rep, errno, "cannot make %s", path);
    if (lstat(path, st) == 0)
        return report_error(rep, ENOENT, "%s is a symbolic link that leads nowhere", path);
    free(*ret);
    *ret = strdup(path);
    return *ret != NULL ? 0 : report_errno(rep, ENOMEM, "cannot make %s", path);
}

int blk_file_create(struct blk **ret, const struct blk_file_create *spec, struct report *rep)
{
    AUTO_FREE char *path = NULL;
    struct stat st;
    int exists, r;

    if (spec->size > INT64_MAX)
        return report_errno(rep, EFBIG, "cannot make %s", spec->path);
    exists = file_resolve(&path, &st, spec->path, rep);
    if (exists < 0)
        return exists;
    r = exists ? file_check_kind(&st, path, rep) : 0;
    if (r < 0)
        return r;
    if (exists && S_ISBLK(st.st_mode))
        return file_create_on_device(ret, spec, path, rep);
    if (exists && !spec->replace)
        return report_error(rep, EEXIST, "%s already exists (%s)", path, file_exists_hint(spec));
    return file_create_file(ret, spec, path, exists, rep);
}

/* The name must be free: what appeared there meanwhile is not ours to overwrite. */
static int draft_rename_new(struct file_draft *d, struct report *rep)
{
    if (renameat2(d->folder, d->temp, d->folder, d->name, RENAME_NOREPLACE) == 0)
        return 0;
    if ((errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) &&
        linkat(d->folder, d->temp, d->folder, d->name, 0) == 0) {
        unlinkat(d->folder, d->temp, 0);
        return 0;
    }
    if (errno == EEXIST)
        return report_error(rep, EEXIST, "somebody made %s meanwhile", d->name);
    return report_errno(rep, errno, "cannot rename the new file to %s", d->name);
}

static int draft_rename_over(struct file_draft *d, struct report *rep)
{
    struct stat held, named;

    if (fstat(d->old, &held) < 0 || fstatat(d->folder, d->name, &named, AT_SYMLINK_NOFOLLOW) < 0)
        return report_errno(rep, errno, "cannot find %s again", d->name);
    if (held.st_dev != named.st_dev || held.st_ino != named.st_ino)
        return report_error(rep, EEXIST, "somebody else replaced %s meanwhile", d->name);
    if (renameat(d->folder, d->temp, d->folder, d->name) < 0)
        return report_errno(rep, errno, "cannot rename the new file to %s", d->name);
    return 0;
}

int blk_file_commit(struct blk *b, struct report *rep)
{
    struct file *f = container_of(b, struct file, blk);
    struct file_draft *d = f->draft;
    int r;

    if (fsync(f->fd) < 0)
        return report_errno(rep, errno, "cannot make the new file durable");
    if (d == NULL) /* a device */
        return 0;
    r = d->old >= 0 ? draft_rename_over(d, rep) : draft_rename_new(d, rep);
    if (r < 0)
        return r;
    d->temp[0] = '\0';
    /* EINVAL: a file system whose folders need no fsync */
    r = fsync(d->folder) < 0 && errno != EINVAL
            ? report_errno(rep, errno, "cannot make the name of the new file durable")
            : 0;
    file_draft_close(TAKE(f->draft));
    return r;
}
