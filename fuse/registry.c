/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/registry.h"

/* Locks are OFD locks (fcntl(2)): like flock they end with the last descriptor, but they can be
 * asked about without being taken, so a "list" never stands in the way of a "mount".
 *
 * A name is removed while its lock is held. Whoever opened the file before and gets the lock then
 * holds a file without a name; it notices by comparing what it locked with what the name means. */

#include "base/auto.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define RECORD_MAX 65536 /* bytes */
#define NAMES_TRIED 1000
#define WAIT_MS 20 /* between looks at a lock */

struct serve_slot {
    int folder, lock;
    char name[SERVE_NAME_MAX + 1];
};

#define FILE_NAME_SIZE (SERVE_NAME_MAX + 16)

static const char *file_name(char out[FILE_NAME_SIZE], const char *name, const char *suffix)
{
    snprintf(out, FILE_NAME_SIZE, "%s.%s", name, suffix);
    return out;
}

static void remove_files(int folder, const char *name)
{
    static const char *const suffixes[] = {"json", "sock", "new", "lock"};
    char file[FILE_NAME_SIZE];

    for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        unlinkat(folder, file_name(file, name, suffixes[i]), 0);
}

/* Does NAME.lock mean the file that is open as fd? */
static bool is_named(int fd, int folder, const char *name)
{
    char file[FILE_NAME_SIZE];
    struct stat by_name, opened;

    return fstat(fd, &opened) == 0 &&
           fstatat(folder, file_name(file, name, "lock"), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == by_name.st_ino && opened.st_dev == by_name.st_dev;
}

/* 0 locked, -EAGAIN somebody else has it or just removed it. */
static int try_lock(int *ret, int folder, const char *name)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char file[FILE_NAME_SIZE];
    AUTO_FD int fd = openat(folder, file_name(file, name, "lock"),
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    if (fcntl(fd, F_OFD_SETLK, &whole) < 0)
        return errno == EACCES ? -EAGAIN : -errno;
    if (!is_named(fd, folder, name))
        return -EAGAIN;
    *ret = TAKE_FD(fd);
    return 0;
}

/* A dead mount of another container has the name until it is cleaned up. */
static int pass_over_dead(struct serve_slot *s)
{
    char file[FILE_NAME_SIZE];

    if (faccessat(s->folder, file_name(file, s->name, "json"), F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    close(s->lock);
    s->lock = -1;
    return -EAGAIN;
}

static int take_name(struct serve_slot *s, const char *wanted, const char *container,
                     struct report *rep)
{
    int r = -EAGAIN;

    if (wanted != NULL && !serve_name_valid(wanted))
        return report_error(rep, EINVAL, "\"%s\" is no name for a volume", wanted);
    for (unsigned n = 1; r == -EAGAIN && n <= NAMES_TRIED; n++) {
        if (wanted != NULL && n > 1)
            return report_error(rep, EBUSY, "a volume named %s is mounted already", wanted);
        if (wanted != NULL)
            strcpy(s->name, wanted);
        else
            serve_name_make(s->name, container, n);
        r = try_lock(&s->lock, s->folder, s->name);
        if (r == 0 && wanted == NULL)
            r = pass_over_dead(s);
    }
    if (r < 0)
        return report_errno(rep, -r, "cannot take a name in the runtime folder");
    return 0;
}

int serve_slot_take(struct serve_slot **ret, const struct serve_folder *folder, const char *wanted,
                    const char *container, struct report *rep)
{
    struct serve_slot *s = calloc(1, sizeof(*s));
    char file[FILE_NAME_SIZE];
    int r;

    if (s == NULL)
        return report_errno(rep, ENOMEM, "cannot mount");
    s->lock = -1;
    s->folder = serve_folder_open(folder->path, folder->owner);
    r = s->folder >= 0 ? take_name(s, wanted, container, rep)
                       : report_errno(rep, -s->folder, "%s", folder->path);
    if (r < 0) {
        serve_slot_drop(s);
        return r;
    }
    unlinkat(s->folder, file_name(file, s->name, "json"), 0);
    *ret = s;
    return 0;
}

const char *serve_slot_name(const struct serve_slot *s)
{
    return s->name;
}

int serve_slot_folder(const struct serve_slot *s)
{
    return s->folder;
}

static int write_new(int folder, const char *file, const char *text)
{
    AUTO_FD int fd = -1;
    size_t len = strlen(text);
    ssize_t n;

    unlinkat(folder, file, 0);
    fd = openat(folder, file, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    n = write(fd, text, len);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -ENOSPC;
}

int serve_slot_publish(struct serve_slot *s, const struct serve_record *record, struct report *rep)
{
    char new_file[FILE_NAME_SIZE], file[FILE_NAME_SIZE];
    struct json_object *o = serve_record_encode(record);
    int r;

    if (o == NULL)
        return report_errno(rep, ENOMEM, "cannot write down the mount");
    file_name(new_file, s->name, "new");
    file_name(file, s->name, "json");
    r = write_new(s->folder, new_file, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
    json_object_put(o);
    if (r == 0 && renameat(s->folder, new_file, s->folder, file) < 0)
        r = -errno;
    return r < 0 ? report_errno(rep, -r, "cannot write down the mount in the runtime folder") : 0;
}

void serve_slot_drop(struct serve_slot *s)
{
    if (s == NULL)
        return;
    /* Where something cleans /tmp, the name may be another's by now. */
    if (s->lock >= 0 && is_named(s->lock, s->folder, s->name))
        remove_files(s->folder, s->name);
    serve_slot_leave(s);
}

void serve_slot_leave(struct serve_slot *s)
{
    if (s->lock >= 0)
        close(s->lock);
    if (s->folder >= 0)
        close(s->folder);
    free(s);
}

void serve_found_done(struct serve_found *f)
{
    serve_record_done(&f->record);
}

void serve_registry_list_done(struct serve_found *list, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        serve_found_done(&list[i]);
    free(list);
}

/* A regular file of the folder's owner, and nothing that would make us wait or follow. */
static int open_file(int folder, uid_t owner, const char *file)
{
    AUTO_FD int fd = openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return -errno;
    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != owner || st.st_size > RECORD_MAX)
        return -EPERM;
    return TAKE_FD(fd);
}

/* Does somebody hold the lock? */
static bool is_locked(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

    return fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

static bool is_alive(int folder, uid_t owner, const char *name)
{
    char file[FILE_NAME_SIZE];
    AUTO_FD int fd = open_file(folder, owner, file_name(file, name, "lock"));

    return fd >= 0 && is_locked(fd);
}

static struct json_object *read_json(int folder, uid_t owner, const char *file)
{
    AUTO_FD int fd = open_file(folder, owner, file);
    AUTO_FREE char *text = calloc(1, RECORD_MAX + 1);
    size_t used = 0;
    ssize_t n;

    if (fd < 0 || text == NULL)
        return NULL;
    while (used < RECORD_MAX && (n = read(fd, text + used, RECORD_MAX - used)) > 0)
        used += (size_t)n;
    return json_tokener_parse(text);
}

/* file is "NAME.json". */
static int read_found(struct serve_found *f, int folder, const struct serve_folder *where,
                      const char *file)
{
    struct json_object *o = read_json(folder, where->owner, file);
    char own_file[FILE_NAME_SIZE];
    int r = serve_record_decode(&f->record, o);

    json_object_put(o);
    if (r < 0)
        return r;
    if (strcmp(file_name(own_file, f->record.name, "json"), file) != 0) {
        serve_record_done(&f->record);
        return -EBADMSG;
    }
    f->folder = *where;
    f->alive = is_alive(folder, where->owner, f->record.name);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct serve_found *)a)->record.name,
                  ((const struct serve_found *)b)->record.name);
}

static int append(struct serve_found **list, unsigned *n, const struct serve_found *f)
{
    struct serve_found *more = realloc(*list, (*n + 1) * sizeof(*more));

    if (more == NULL)
        return -ENOMEM;
    more[(*n)++] = *f;
    *list = more;
    return 0;
}

int serve_registry_list_in(const struct serve_folder *where, struct serve_found **list, unsigned *n)
{
    int folder = serve_folder_open(where->path, where->owner);
    DIR *dir = folder >= 0 ? fdopendir(folder) : NULL;
    unsigned first = *n;
    struct dirent *e;

    if (dir == NULL) {
        if (folder >= 0)
            close(folder);
        return 0;
    }
    while ((e = readdir(dir)) != NULL) {
        const char *dot = strrchr(e->d_name, '.');
        struct serve_found f = {0};

        if (dot == NULL || strcmp(dot, ".json") != 0 ||
            read_found(&f, folder, where, e->d_name) < 0)
            continue;
        if (append(list, n, &f) < 0) {
            serve_found_done(&f);
            break;
        }
    }
    closedir(dir);
    if (*n > first)
        qsort(*list + first, *n - first, sizeof(**list), by_name);
    return 0;
}

int serve_registry_list(struct serve_found **ret, unsigned *n)
{
    AUTO_FREE struct serve_folder *folders = NULL;
    unsigned n_folders;
    int r = serve_folders(&folders, &n_folders);

    *ret = NULL;
    *n = 0;
    for (unsigned i = 0; r == 0 && i < n_folders; i++)
        r = serve_registry_list_in(&folders[i], ret, n);
    return r;
}

/* What a user may mean by a path, in one form. A dead mount cannot be looked at, so its folder is
 * found from the one above. */
static void canonical(char out[PATH_MAX], const char *word)
{
    char copy[PATH_MAX], resolved[PATH_MAX];
    char *slash;
    size_t len = strlen(word);

    snprintf(out, PATH_MAX, "%s", word);
    if (len >= PATH_MAX || len == 0)
        return;
    strcpy(copy, word);
    while (len > 1 && copy[len - 1] == '/')
        copy[--len] = '\0';
    if (realpath(copy, resolved) != NULL) {
        strcpy(out, resolved);
        return;
    }
    slash = strrchr(copy, '/');
    if (slash != NULL)
        *slash = '\0';
    if (realpath(slash == NULL   ? "."
                 : slash == copy ? "/"
                                 : copy,
                 resolved) != NULL &&
        strlen(resolved) + strlen(slash != NULL ? slash + 1 : copy) + 2 <= PATH_MAX) {
        strcpy(out, strcmp(resolved, "/") == 0 ? "" : resolved);
        strcat(out, "/");
        strcat(out, slash != NULL ? slash + 1 : copy);
    }
}

static bool is_in_mount(const char *mountpoint, const char *path)
{
    size_t len = strlen(mountpoint);

    return strncmp(mountpoint, path, len) == 0 &&
           (path[len] == '\0' || strcmp(path + len, "/image") == 0);
}

struct wanted {
    const char *word;
    char path[PATH_MAX];
    bool is_container; /* word names a file that is there */
    bool is_regular;   /* and it is no device, whose node may be made anew */
    uint64_t dev, ino;
    const char *header; /* NULL: none is wanted */
};

/* 2 it is what is meant, 1 perhaps: its container had this path when it was mounted. 0 no: where
 * another file is now, that one is meant, and not a container that was moved away. */
static unsigned fit(const struct serve_found *f, const struct wanted *w)
{
    const struct serve_record *r = &f->record;

    if (w->word != NULL && (strcmp(r->name, w->word) == 0 || is_in_mount(r->mountpoint, w->path)))
        return 2;
    if (w->word != NULL && r->filesystem != NULL && strcmp(r->filesystem, w->path) == 0)
        return 2;
    if (w->word != NULL && r->link != NULL && strcmp(r->link, w->path) == 0) /* to nowhere now */
        return 2;
    if (w->header != NULL && r->header != NULL && strcmp(r->header, w->header) == 0)
        return 2;
    if (f->alive && w->is_container && r->container_dev == w->dev && r->container_ino == w->ino)
        return 2; /* of a dead one the file may be gone, and its number another's */
    return w->word != NULL && strcmp(r->container, w->path) == 0 && !(w->is_regular && f->alive);
}

/* Ours before those of users, who may write into theirs what they like; then the living. 0: it is
 * not meant at all. */
static unsigned rank(const struct serve_found *f, const struct wanted *w)
{
    unsigned fits = fit(f, w);

    return fits == 0 ? 0 : (f->folder.owner == geteuid() ? 6 : 0) + 2 * fits + (f->alive ? 1 : 0);
}

static int find(struct serve_found *ret, const struct wanted *w, bool alive_only)
{
    struct serve_found *list, *best = NULL;
    unsigned n;
    int r = serve_registry_list(&list, &n);

    for (unsigned i = 0; r == 0 && i < n; i++) {
        struct serve_found *f = &list[i];

        if ((f->alive || !alive_only) && rank(f, w) > (best != NULL ? rank(best, w) : 0))
            best = f;
    }
    if (r == 0 && best == NULL)
        r = -ENOENT;
    if (r == 0) {
        *ret = *best;
        best->record = (struct serve_record){0};
    }
    serve_registry_list_done(list, n);
    return r;
}

/* Asked without asking the file system: word may be a mount whose daemon does not answer. */
int serve_registry_find(struct serve_found *ret, const char *word)
{
    struct wanted w = {.word = word};
    struct statx st;

    canonical(w.path, word);
    if (statx(AT_FDCWD, word, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &st) == 0 &&
        !S_ISDIR(st.stx_mode)) {
        w.is_container = true;
        w.is_regular = S_ISREG(st.stx_mode);
        w.dev = makedev(st.stx_dev_major, st.stx_dev_minor);
        w.ino = st.stx_ino;
    }
    return find(ret, &w, false);
}

int serve_registry_find_container(struct serve_found *ret, uint64_t dev, uint64_t ino)
{
    struct wanted w = {.is_container = true, .dev = dev, .ino = ino};

    return find(ret, &w, true);
}

int serve_registry_find_header(struct serve_found *ret, const char *header)
{
    struct wanted w = {.header = header};

    return find(ret, &w, true);
}

int serve_registry_again(struct serve_found *ret, const struct serve_found *f)
{
    AUTO_FD int folder = serve_folder_open(f->folder.path, f->folder.owner);
    AUTO_FOUND struct serve_found now = {0};
    char file[FILE_NAME_SIZE];

    if (folder < 0 ||
        read_found(&now, folder, &f->folder, file_name(file, f->record.name, "json")) < 0 ||
        now.record.pid != f->record.pid || now.record.since != f->record.since)
        return -ENOENT;
    *ret = now;
    now.record = (struct serve_record){0};
    return 0;
}

int serve_registry_wait(const struct serve_found *f, int timeout_ms)
{
    AUTO_FD int folder = serve_folder_open(f->folder.path, f->folder.owner);
    char file[FILE_NAME_SIZE];
    AUTO_FD int fd = -1;

    if (folder < 0)
        return 0;
    fd = open_file(folder, f->folder.owner, file_name(file, f->record.name, "lock"));
    if (fd < 0)
        return 0; /* the daemon removed it: that is its last act */
    while (is_locked(fd)) {
        if (timeout_ms >= 0 && (timeout_ms -= WAIT_MS) < 0)
            return -ETIMEDOUT;
        poll(NULL, 0, WAIT_MS);
    }
    return 0;
}

int serve_registry_remove(const struct serve_found *f)
{
    AUTO_FD int folder = serve_folder_open(f->folder.path, f->folder.owner);
    AUTO_FD int lock = -1;
    int r;

    if (folder < 0)
        return 0;
    if (is_alive(folder, f->folder.owner, f->record.name))
        return -EBUSY;
    /* Root's lock file in a user's folder would be one that its owner cannot open. */
    if (geteuid() == f->folder.owner) {
        r = try_lock(&lock, folder, f->record.name);
        if (r < 0)
            return r == -EAGAIN ? -EBUSY : r;
    }
    remove_files(folder, f->record.name);
    return 0;
}
