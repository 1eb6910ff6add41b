/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/session.h"

/* One function per FUSE request, each one call into the top of the volume's stack.
 *
 * Three inodes that never come or go: the folder, image, stats. Requests arrive in libfuse's own
 * memory (no splice), so what a write carries cannot change under the cipher; a read is deciphered
 * into a buffer of the thread and then copied out by the kernel, never into memory of the reader.
 *
 * The size of a disk is not its user's to change ("hushvol resize" is), so truncation is refused,
 * with one exception: open(O_TRUNC), which
 * "dd of=image" and "cp x image" use, is ignored as a block device ignores it. The kernel turns it
 * into a truncation to 0 by inode instead of by handle, and takes over the size in our answer. The
 * other way (FUSE_CAP_ATOMIC_O_TRUNC) would make the kernel believe in an empty file for a moment,
 * and a loop device on the image would read past its end. */

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FOREVER_S 86400.0 /* seconds that the kernel may keep what cannot change */
#define ATTR_S 1.0        /* and st_blocks, which can */

static struct serve *serve_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

/* Errors pass as they are but one: the kernel would read EBADMSG as a broken connection. */
static void answer(fuse_req_t req, int r)
{
    fuse_reply_err(req, r == -EBADMSG ? EIO : -r);
}

static void serve_init(void *userdata, struct fuse_conn_info *conn)
{
    conn->want &= ~(unsigned)(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE |
                              FUSE_CAP_ATOMIC_O_TRUNC | FUSE_CAP_WRITEBACK_CACHE);
    conn->max_write = SERVE_REQUEST_MAX;
    conn->max_readahead = SERVE_REQUEST_MAX;
    conn->max_background = SERVE_BACKGROUND;
    conn->congestion_threshold = SERVE_BACKGROUND * 3 / 4;
    (void)userdata;
}

/* Blocks in use, as fstat counts them: what the container takes up without its headers. */
static blkcnt_t blocks_of(struct serve *s)
{
    struct blk_stat st = {0};
    uint64_t used;

    if (blk_stat(s->top, &st) < 0)
        return (blkcnt_t)(s->top->size / 512);
    used = st.allocated > s->data_offset ? st.allocated - s->data_offset : 0;
    return (blkcnt_t)((used < s->top->size ? used : s->top->size) / 512);
}

/* Who may read image may look into the folder and read stats. */
static int fill_attr(struct serve *s, fuse_ino_t ino, struct stat *st)
{
    mode_t readers = s->mode & 0444;

    *st = (struct stat){
        .st_ino = ino, .st_nlink = 1, .st_uid = s->uid, .st_gid = s->gid, .st_blksize = 4096};
    st->st_mtime = (time_t)atomic_load_explicit(&s->written, memory_order_relaxed);
    st->st_atime = st->st_ctime = st->st_mtime;
    switch (ino) {
    case SERVE_ROOT:
        st->st_mode = S_IFDIR | readers | readers >> 2;
        st->st_nlink = 2;
        return 0;
    case SERVE_IMAGE:
        st->st_mode = S_IFREG | s->mode;
        pthread_rwlock_rdlock(&s->size);
        st->st_size = (off_t)s->top->size;
        st->st_blocks = blocks_of(s);
        pthread_rwlock_unlock(&s->size);
        return 0;
    case SERVE_STATS:
        st->st_mode = S_IFREG | readers;
        return 0;
    default:
        return -ENOENT;
    }
}

static void serve_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct fuse_entry_param e = {
        .generation = 1, .attr_timeout = ATTR_S, .entry_timeout = FOREVER_S};

    if (parent != SERVE_ROOT) {
        answer(req, -ENOTDIR);
        return;
    }
    if (strcmp(name, "image") == 0)
        e.ino = SERVE_IMAGE;
    else if (strcmp(name, "stats") == 0)
        e.ino = SERVE_STATS;
    if (e.ino == 0) {
        answer(req, -ENOENT);
        return;
    }
    fill_attr(serve_of(req), e.ino, &e.attr);
    fuse_reply_entry(req, &e);
}

static void reply_attr(fuse_req_t req, fuse_ino_t ino)
{
    struct stat st;
    int r = fill_attr(serve_of(req), ino, &st);

    if (r < 0)
        answer(req, r);
    else
        fuse_reply_attr(req, &st, ATTR_S);
}

static void serve_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)fi;
    reply_attr(req, ino);
}

/* What would change nothing is allowed. */
static int check_setattr(struct serve *s, const struct stat *now, const struct stat *want,
                         int to_set, bool by_handle)
{
    if (to_set & FUSE_SET_ATTR_MODE && (want->st_mode ^ now->st_mode) & 07777)
        return -EPERM;
    if (to_set & FUSE_SET_ATTR_UID && want->st_uid != now->st_uid)
        return -EPERM;
    if (to_set & FUSE_SET_ATTR_GID && want->st_gid != now->st_gid)
        return -EPERM;
    if (!(to_set & FUSE_SET_ATTR_SIZE) || want->st_size == now->st_size)
        return 0;
    if (s->read_only)
        return -EROFS;
    return want->st_size == 0 && !by_handle ? 0 : -EPERM; /* 0: the head of this file */
}

static void serve_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *want, int to_set,
                          struct fuse_file_info *fi)
{
    struct serve *s = serve_of(req);
    struct stat now;
    int r = fill_attr(s, ino, &now);

    if (r == 0)
        r = check_setattr(s, &now, want, to_set, fi != NULL);
    if (r < 0)
        answer(req, r);
    else
        reply_attr(req, ino);
}

static void open_image(fuse_req_t req, struct fuse_file_info *fi)
{
    struct serve *s = serve_of(req);

    fi->fh = (fi->flags & O_ACCMODE) != O_RDONLY; /* for flush: may this one have written? */
    if (fi->fh && s->read_only) {
        answer(req, -EROFS);
        return;
    }
    fi->direct_io = !s->cache;
    fi->keep_cache = s->cache; /* nobody else can change what is inside */
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 15)
    fi->parallel_direct_writes = 1; /* the size is fixed, so no write can extend the file */
#endif
    atomic_fetch_add(&s->opens, 1);
    if (fuse_reply_open(req, fi) == -ENOENT)
        atomic_fetch_sub(&s->opens, 1); /* interrupted: no release follows */
}

/* A reader of stats sees one snapshot, however it cuts its reads. */
static void open_stats(fuse_req_t req, struct fuse_file_info *fi)
{
    struct json_object *o;
    char *text = NULL;

    if ((fi->flags & O_ACCMODE) != O_RDONLY) {
        answer(req, -EACCES);
        return;
    }
    o = serve_stats(serve_of(req));
    if (o == NULL ||
        asprintf(&text, "%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY)) < 0)
        text = NULL;
    json_object_put(o);
    if (text == NULL) {
        answer(req, -ENOMEM);
        return;
    }
    fi->fh = (uintptr_t)text;
    fi->direct_io = 1; /* its st_size is 0 */
    if (fuse_reply_open(req, fi) == -ENOENT)
        free(text);
}

static void serve_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (ino == SERVE_IMAGE)
        open_image(req, fi);
    else
        open_stats(req, fi);
}

static void serve_release_file(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (ino == SERVE_IMAGE)
        atomic_fetch_sub(&serve_of(req)->opens, 1);
    else
        free((char *)(uintptr_t)fi->fh);
    answer(req, 0);
}

/* By a copy: once the kernel has the answer, a release in another thread may free the text though
 * this one is still in its write(2). */
static void read_stats(fuse_req_t req, size_t len, off_t off, struct fuse_file_info *fi)
{
    const char *text = (const char *)(uintptr_t)fi->fh;
    size_t size = strlen(text);
    size_t from = (uint64_t)off < size ? (size_t)off : size;
    void *buf;

    len = len < size - from ? len : size - from;
    buf = serve_thread_buffer(serve_of(req), len);
    if (buf == NULL) {
        answer(req, -ENOMEM);
        return;
    }
    memcpy(buf, text + from, len);
    fuse_reply_buf(req, buf, len);
}

/* SERVE_READ → align_lend → readahead_lend → plain_read → file_read. What read-ahead has ready goes
 * to the kernel from where it lies. */
static void read_image(struct serve *s, fuse_req_t req, size_t len, uint64_t off)
{
    uint64_t began = serve_clock();
    struct blk_loan loan;
    void *buf;
    int r;

    if (off >= s->top->size) {
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    if (len > s->top->size - off)
        len = s->top->size - off;
    buf = serve_thread_buffer(s, len);
    r = buf != NULL ? blk_lend(s->top, &loan, buf, len, off) : -ENOMEM;
    serve_count(s, SERVE_READ, len, r, began);
    if (r < 0) {
        answer(req, r);
        return;
    }
    if (loan.n == 1)
        fuse_reply_buf(req, loan.parts[0].iov_base, len);
    else
        fuse_reply_iov(req, loan.parts, (int)loan.n);
    blk_loan_end(&loan);
}

static void serve_read(fuse_req_t req, fuse_ino_t ino, size_t len, off_t off,
                       struct fuse_file_info *fi)
{
    if (ino == SERVE_IMAGE)
        serve_submit(serve_of(req),
                     &(struct serve_request){
                         .kind = SERVE_READ, .req = req, .len = len, .off = (uint64_t)off});
    else
        read_stats(req, len, off, fi);
}

/* SERVE_WRITE → align_write → plain_write → file_write. A disk that ends is full: no room at all
 * is ENOSPC, some room is a short write. */
static void write_image(struct serve *s, fuse_req_t req, const char *buf, size_t len, uint64_t off)
{
    uint64_t began = serve_clock();
    int r;

    if (off >= s->top->size) {
        answer(req, -ENOSPC);
        return;
    }
    if (len > s->top->size - off)
        len = s->top->size - off;
    r = blk_write(s->top, buf, len, off);
    serve_count(s, SERVE_WRITE, len, r, began);
    if (r < 0) {
        answer(req, r);
        return;
    }
    atomic_store_explicit(&s->written, time(NULL), memory_order_relaxed);
    fuse_reply_write(req, len);
}

static void serve_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t len, off_t off,
                        struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    serve_thread_came_in(serve_of(req), buf, len);
    serve_submit(
        serve_of(req),
        &(struct serve_request){
            .kind = SERVE_WRITE, .req = req, .len = len, .off = (uint64_t)off, .data = buf});
}

/* Not held: what was answered before a suspend is durable by then, and nothing is since. */
static void flush_volume(fuse_req_t req)
{
    struct serve *s = serve_of(req);
    uint64_t began = serve_clock();
    int r = blk_flush(s->top);

    serve_count(s, SERVE_FLUSH, 0, r, began);
    answer(req, r);
}

/* close() of one that may have written: whoever looks at its answer wants to hear of errors. */
static void serve_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    if (ino == SERVE_IMAGE && fi->fh != 0)
        flush_volume(req);
    else
        answer(req, 0);
}

static void serve_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
    (void)datasync; /* no metadata beside the data */
    (void)fi;
    if (ino == SERVE_STATS)
        answer(req, 0);
    else
        flush_volume(req);
}

/* May this range be asked for? Room is not promised (mode 0): a block device does not either, and
 * the host below a sparse container may be full by then. Punching and zeroing with KEEP_SIZE reach
 * over the end, where there is nothing to do; what would have to grow the disk finds no room. */
static int check_fallocate(const struct serve *s, int mode, uint64_t len, uint64_t room)
{
    int what = mode & ~FALLOC_FL_KEEP_SIZE;

    if (what != FALLOC_FL_ZERO_RANGE && mode != (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE))
        return -EOPNOTSUPP;
    if (s->read_only)
        return -EROFS;
    if (len > room && !(mode & FALLOC_FL_KEEP_SIZE))
        return -ENOSPC;
    return 0;
}

/* A loop device punches for discards and zeroes either way: both promise zeros. */
static void zero_image(struct serve *s, fuse_req_t req, int mode, uint64_t len, uint64_t off)
{
    uint64_t room = off < s->top->size ? s->top->size - off : 0;
    uint64_t began = serve_clock();
    int r = check_fallocate(s, mode, len, room);

    if (len > room)
        len = room;
    if (r == 0 && len > 0 && mode & FALLOC_FL_PUNCH_HOLE) {
        r = blk_discard(s->top, len, off);
        serve_count(s, SERVE_DISCARD, len, r, began);
    } else if (r == 0 && len > 0 && mode & FALLOC_FL_ZERO_RANGE) {
        r = blk_write_zeroes(s->top, len, off);
        serve_count(s, SERVE_ZERO, len, r, began);
    }
    answer(req, r);
}

static void serve_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len,
                            struct fuse_file_info *fi)
{
    (void)ino;
    (void)fi;
    serve_submit(serve_of(req), &(struct serve_request){.kind = SERVE_DISCARD,
                                                        .req = req,
                                                        .mode = mode,
                                                        .zeros = (uint64_t)len,
                                                        .off = (uint64_t)off});
}

void serve_do(struct serve *s, const struct serve_request *q)
{
    if (q->kind == SERVE_READ)
        read_image(s, q->req, q->len, q->off);
    else if (q->kind == SERVE_WRITE)
        write_image(s, q->req, q->data, q->len, q->off);
    else
        zero_image(s, q->req, q->mode, q->zeros, q->off);
}

/* The first data or hole from off on, or -errno. */
static int64_t seek(struct blk *b, uint64_t off, bool hole)
{
    if (off >= b->size)
        return -ENXIO;
    while (off < b->size) {
        struct blk_extent e = {0};
        int r = blk_extent(b, off, &e);

        if (r < 0)
            return r;
        if (e.hole == hole)
            return (int64_t)off;
        off = e.end;
    }
    return hole ? (int64_t)off : -ENXIO; /* the end counts as a hole */
}

static void serve_lseek(fuse_req_t req, fuse_ino_t ino, off_t at, int whence,
                        struct fuse_file_info *fi)
{
    struct serve *s = serve_of(req);
    int64_t found;

    (void)fi;
    if (ino != SERVE_IMAGE || (whence != SEEK_DATA && whence != SEEK_HOLE)) {
        answer(req, -EINVAL);
        return;
    }
    pthread_rwlock_rdlock(&s->size);
    found = seek(s->top, (uint64_t)at, whence == SEEK_HOLE);
    pthread_rwlock_unlock(&s->size);
    if (found < 0)
        answer(req, (int)found);
    else
        fuse_reply_lseek(req, found);
}

/* f_bsize becomes the granularity of a loop device's discards. After a suspend this is how each
 * thread comes to wipe what is its own to wipe. */
static void serve_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct serve *s = serve_of(req);
    struct statvfs st = {.f_bsize = 4096, .f_frsize = 4096, .f_files = 3, .f_namemax = 255};

    (void)ino;
    if (serve_hold_is_shut(s->hold))
        serve_thread_wipe(s);
    pthread_rwlock_rdlock(&s->size);
    st.f_blocks = s->top->size / st.f_frsize;
    pthread_rwlock_unlock(&s->size);
    fuse_reply_statfs(req, &st);
}

static void serve_readdir(fuse_req_t req, fuse_ino_t ino, size_t len, off_t off,
                          struct fuse_file_info *fi)
{
    static const struct {
        const char *name;
        fuse_ino_t ino;
        mode_t type;
    } entries[] = {{".", SERVE_ROOT, S_IFDIR},
                   {"..", SERVE_ROOT, S_IFDIR},
                   {"image", SERVE_IMAGE, S_IFREG},
                   {"stats", SERVE_STATS, S_IFREG}};
    char buf[512];
    size_t used = 0;

    (void)fi;
    if (ino != SERVE_ROOT) {
        answer(req, -ENOTDIR);
        return;
    }
    if (len > sizeof(buf))
        len = sizeof(buf);
    for (size_t i = (size_t)off; i < sizeof(entries) / sizeof(entries[0]); i++) {
        struct stat st = {.st_ino = entries[i].ino, .st_mode = entries[i].type};
        size_t need =
            fuse_add_direntry(req, buf + used, len - used, entries[i].name, &st, (off_t)i + 1);

        if (need > len - used)
            break;
        used += need;
    }
    fuse_reply_buf(req, buf, used);
}

/* The folder is what it is, for root too, whom its mode does not stop. */
static void serve_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                        dev_t rdev)
{
    (void)parent;
    (void)name;
    (void)mode;
    (void)rdev;
    answer(req, -EPERM);
}

static void serve_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)parent;
    (void)name;
    (void)mode;
    answer(req, -EPERM);
}

static void serve_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent;
    (void)name;
    answer(req, -EPERM);
}

static void serve_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t to,
                         const char *new_name, unsigned flags)
{
    (void)parent;
    (void)name;
    (void)to;
    (void)new_name;
    (void)flags;
    answer(req, -EPERM);
}

/* Extended attributes are left out: the kernel hears ENOSYS once and stops asking. */
const struct fuse_lowlevel_ops serve_ops = {
    .init = serve_init,
    .lookup = serve_lookup,
    .getattr = serve_getattr,
    .setattr = serve_setattr,
    .mknod = serve_mknod,
    .mkdir = serve_mkdir,
    .unlink = serve_unlink,
    .rename = serve_rename,
    .open = serve_open,
    .read = serve_read,
    .write = serve_write,
    .flush = serve_flush,
    .release = serve_release_file,
    .fsync = serve_fsync,
    .fsyncdir = serve_fsync,
    .fallocate = serve_fallocate,
    .lseek = serve_lseek,
    .statfs = serve_statfs,
    .readdir = serve_readdir,
};
