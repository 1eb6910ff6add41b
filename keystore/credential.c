/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/credential.h"

/* Every source is read with read(2) straight into guarded memory: stdio would leave a copy in a
 * buffer that nobody wipes. What follows the first line of stdin stays there for whoever reads
 * next. */

#include "base/auto.h"
#include "keystore/keyfile.h"
#include "keystore/recovery.h"
#include "keystore/tty.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <uninorm.h>
#include <unistr.h>

void credential_done(struct credential *c)
{
    secret_done(&c->passphrase);
    secret_done(&c->keyfiles);
    *c = (struct credential){0};
}

/* Read until the end or until size bytes are there. Returns how many, or -errno. */
static ssize_t read_all(int fd, unsigned char *to, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read(fd, to + n, size - n);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

/* Byte by byte, so that nothing behind the newline is taken. The newline is counted and kept. */
static ssize_t read_first_line(int fd, unsigned char *to, size_t size)
{
    size_t n = 0;

    while (n < size) {
        ssize_t got = read_all(fd, to + n, 1);

        if (got < 0)
            return got;
        if (got == 0 || to[n++] == '\n')
            break;
    }
    return (ssize_t)n;
}

/* As much as a passphrase may have, a newline, and one byte by which too long ones are known. */
static int make_room(struct secret *all)
{
    return secret_make(all, CREDENTIAL_PASSPHRASE_MAX + 2);
}

static int check_length(ssize_t n, const char *from, struct report *rep)
{
    if (n > CREDENTIAL_PASSPHRASE_MAX)
        return report_error(rep, EINVAL, "the passphrase from %s is longer than %d bytes", from,
                            CREDENTIAL_PASSPHRASE_MAX);
    return 0;
}

/* The first n bytes of all, less one newline at the end, are a passphrase. from is for people; a
 * negative n is the errno with which reading it failed. */
static int accept_passphrase(struct secret *ret, const struct secret *all, ssize_t n,
                             const char *from, struct report *rep)
{
    int r;

    if (n < 0)
        return report_errno(rep, (int)-n, "cannot read the passphrase from %s", from);
    if (n > 0 && all->bytes[n - 1] == '\n')
        n--;
    if (n == 0)
        return report_error(rep, EINVAL, "the passphrase from %s is empty", from);
    r = check_length(n, from, rep);
    return r < 0 ? r : secret_copy(ret, all->bytes, (size_t)n);
}

static int read_stdin(struct secret *ret, struct report *rep)
{
    AUTO_SECRET struct secret all = {0};
    int r = make_room(&all);

    if (r < 0)
        return r;
    return accept_passphrase(ret, &all, read_first_line(STDIN_FILENO, all.bytes, all.len),
                             "standard input", rep);
}

/* Ordinary files, and whatever else can be opened: a pipe of the shell's <(command). Returns a
 * descriptor. */
static int open_passphrase_file(const char *path, struct report *rep)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return report_errno(rep, errno, "cannot open passphrase file %s", path);
    if (S_ISREG(st.st_mode) && st.st_mode & (S_IRGRP | S_IROTH))
        report_warn(rep, "passphrase file %s can be read by others (chmod 600 would end that)",
                    path);
    return TAKE_FD(fd);
}

static int read_passphrase_file(struct secret *ret, const char *path, struct report *rep)
{
    AUTO_SECRET struct secret all = {0};
    AUTO_FD int fd = open_passphrase_file(path, rep);
    int r = fd < 0 ? fd : make_room(&all);

    return r < 0 ? r : accept_passphrase(ret, &all, read_all(fd, all.bytes, all.len), path, rep);
}

/* Start the command with its stdout in *from. It gets ordinary signals whatever is blocked here. */
static int start_command(const char *command, pid_t *pid, int *from)
{
    char shell[] = "sh", option[] = "-c";
    char *const argv[] = {shell, option, (char *)command, NULL}; /* only read */
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    AUTO_FD int to = -1;
    int ends[2], r;
    sigset_t none;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *from = ends[0];
    to = ends[1];
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attr);
    r = posix_spawn_file_actions_adddup2(&files, to, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawnattr_setsigmask(&attr, &none);
    if (r == 0)
        r = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    if (r == 0)
        r = posix_spawn(pid, "/bin/sh", &files, &attr, argv, environ);
    posix_spawnattr_destroy(&attr);
    posix_spawn_file_actions_destroy(&files);
    return -r;
}

static int end_command(pid_t pid, struct report *rep)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return report_errno(rep, errno, "lost the passphrase command");
    if (WIFSIGNALED(status))
        return report_error(rep, EIO, "the passphrase command was ended by signal %d",
                            WTERMSIG(status));
    if (WEXITSTATUS(status) != 0)
        return report_error(rep, EIO, "the passphrase command failed with status %d",
                            WEXITSTATUS(status));
    return 0;
}

/* That the command failed explains better than that it printed nothing; but one that prints without
 * end fails only because nobody listens any more. */
static int read_passphrase_command(struct secret *ret, const char *command, struct report *rep)
{
    AUTO_SECRET struct secret all = {0};
    AUTO_FD int from = -1;
    int r = make_room(&all), ended;
    pid_t pid;
    ssize_t n;

    if (r < 0)
        return r;
    r = start_command(command, &pid, &from);
    if (r < 0)
        return report_errno(rep, -r, "cannot run the passphrase command");
    n = read_all(from, all.bytes, all.len);
    close(TAKE_FD(from)); /* one that goes on printing ends by that */
    ended = end_command(pid, n == (ssize_t)all.len ? NULL : rep);
    if (ended < 0 && n != (ssize_t)all.len)
        return ended;
    return accept_passphrase(ret, &all, n, "the passphrase command", rep);
}

/* The file that systemd made of LoadCredential=hushvol.NAME. 1 read, 0 there is none. */
static int read_systemd_credential(struct secret *ret, const char *name, struct report *rep)
{
    const char *folder = secure_getenv("CREDENTIALS_DIRECTORY");
    char path[PATH_MAX];
    int r;

    if (folder == NULL || name == NULL || strchr(name, '/') != NULL ||
        snprintf(path, sizeof(path), "%s/hushvol.%s", folder, name) >= (int)sizeof(path) ||
        access(path, F_OK) < 0)
        return 0;
    r = read_passphrase_file(ret, path, rep);
    return r < 0 ? r : 1;
}

static int ask_passphrase(struct secret *ret, const struct credential_source *src,
                          struct report *rep)
{
    AUTO_TTY struct tty tty = {0};
    AUTO_SECRET struct secret again = {0};
    const char *prefix = src->prefix != NULL ? src->prefix : "";
    int r = tty_open(&tty, rep);

    if (r == -ENXIO)
        return report_error(rep, ENXIO,
                            "there is no terminal to ask for the passphrase on (give "
                            "--%spassphrase-file, --%spassphrase-command or --%skeyfile)",
                            prefix, prefix, prefix);
    if (r == 0)
        r = tty_ask(&tty, src->prompt != NULL ? src->prompt : "Passphrase", ret,
                    CREDENTIAL_PASSPHRASE_MAX, rep);
    if (r < 0 || !src->confirm)
        return r;
    r = tty_ask(&tty, "The same again", &again, CREDENTIAL_PASSPHRASE_MAX, rep);
    if (r < 0)
        return r;
    if (again.len != ret->len || !secret_equal(again.bytes, ret->bytes, ret->len))
        return report_error(rep, EINVAL, "the two entries differ");
    return 0;
}

static bool is_ascii(const struct secret *s)
{
    for (size_t i = 0; i < s->len; i++)
        if (s->bytes[i] & 0x80)
            return false;
    return true;
}

/* Is s UTF-8 in normal form C? The library writes the form into memory of ours, so that the
 * passphrase does not end on the heap; three times the length is what NFC can need. */
static bool is_nfc(const struct secret *s)
{
    AUTO_SECRET struct secret room = {0};
    size_t len = 3 * s->len + 16;
    uint8_t *nfc;
    bool same;

    if (u8_check(s->bytes, s->len) != NULL || secret_make(&room, len) < 0)
        return false;
    nfc = u8_normalize(UNINORM_NFC, s->bytes, s->len, room.bytes, &len);
    if (nfc == NULL)
        return false;
    same = len == s->len && secret_equal(nfc, s->bytes, len);
    if (nfc != room.bytes) {
        secret_wipe(nfc, len);
        free(nfc);
    }
    return same;
}

/* Passphrases are bytes; but the same letters typed elsewhere may come as other bytes. */
static void hint_at_encoding(const struct secret *s, struct report *rep)
{
    if (!is_ascii(s) && !is_nfc(s))
        report_warn(rep, "the passphrase is not UTF-8 in normal form C: another keyboard or system "
                         "may send other bytes for the same letters");
}

/* "3, 5 and 9" of the groups that are set, counted from 1. */
static void list_groups(char *to, size_t size, uint32_t groups)
{
    size_t n = 0;

    to[0] = '\0';
    for (unsigned i = 0; i < RECOVERY_GROUPS && n < size; i++) {
        uint32_t left = groups >> i >> 1;

        if (groups >> i & 1)
            n += (size_t)snprintf(to + n, size - n, "%u%s", i + 1,
                                  left == 0                  ? ""
                                  : (left & (left - 1)) == 0 ? " and "
                                                             : ", ");
    }
}

/* A slip is a warning, no error: the entry may be a passphrase that only looks like a key. */
static void warn_slips(const struct recovery_slips *slips, struct report *rep)
{
    char groups[64];

    list_groups(groups, sizeof(groups), slips->groups);
    if (slips->groups == 0)
        report_warn(rep, "this looks like a recovery key, but has %u characters instead of %u",
                    slips->n_chars, RECOVERY_CHARS);
    else
        report_warn(rep, "this looks like a recovery key with a slip in group%s %s of %u",
                    slips->groups & (slips->groups - 1) ? "s" : "", groups, RECOVERY_GROUPS);
}

/* A recovery key may be written in many ways, a slot knows one. Whatever else stays as it is. */
static int settle_recovery_key(struct secret *passphrase, struct report *rep)
{
    AUTO_SECRET struct secret text = {0};
    struct recovery_slips slips;
    int r = recovery_read(&text, passphrase, &slips);

    if (r > 0) {
        secret_done(passphrase);
        *passphrase = text;
        text = (struct secret){0};
    }
    if (r == 0 && slips.meant)
        warn_slips(&slips, rep);
    return r < 0 ? r : 0;
}

static bool is_stdin(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

static unsigned n_stdin_keyfiles(const struct credential_source *src)
{
    unsigned n = 0;

    for (unsigned i = 0; i < src->n_keyfiles; i++)
        n += is_stdin(src->keyfiles[i]);
    return n;
}

/* Put the first line of a file behind the *len bytes in all, without its newline. */
static int add_line(struct secret *all, size_t *len, const char *path, struct report *rep)
{
    bool from_stdin = is_stdin(path);
    AUTO_FD int fd = from_stdin ? -1 : open_passphrase_file(path, rep);
    ssize_t n;

    if (!from_stdin && fd < 0)
        return fd;
    n = read_first_line(from_stdin ? STDIN_FILENO : fd, all->bytes + *len, all->len - *len);
    if (n < 0)
        return report_errno(rep, (int)-n, "cannot read the passphrase from %s", path);
    if (n > 0 && all->bytes[*len + (size_t)n - 1] == '\n')
        n--;
    *len += (size_t)n;
    return check_length((ssize_t)*len, path, rep);
}

static int read_lines(struct secret *ret, const struct credential_source *src, struct report *rep)
{
    AUTO_SECRET struct secret all = {0};
    size_t len = 0;
    int r = make_room(&all);

    if (r == 0)
        r = add_line(&all, &len, src->passphrase_file, rep);
    for (unsigned i = 0; r == 0 && i < src->n_more_passphrase_files; i++)
        r = add_line(&all, &len, src->more_passphrase_files[i], rep);
    return r < 0 ? r : secret_copy(ret, all.bytes, len);
}

static int read_passphrase(struct credential *c, const struct credential_source *src,
                           struct report *rep)
{
    int r;

    c->has_passphrase = true;
    if (src->lines && src->passphrase_file != NULL)
        return read_lines(&c->passphrase, src, rep);
    if (is_stdin(src->passphrase_file))
        return read_stdin(&c->passphrase, rep);
    if (src->passphrase_file != NULL)
        return read_passphrase_file(&c->passphrase, src->passphrase_file, rep);
    if (src->passphrase_command != NULL)
        return read_passphrase_command(&c->passphrase, src->passphrase_command, rep);
    r = src->ask ? 0 : read_systemd_credential(&c->passphrase, src->name, rep);
    if (r != 0)
        return r < 0 ? r : 0;
    if (src->n_keyfiles > 0 && !src->ask) {
        c->has_passphrase = false;
        return 0;
    }
    c->typed = n_stdin_keyfiles(src) == 0;
    return ask_passphrase(&c->passphrase, src, rep);
}

/* Standard input can be read to its end once. */
static int check_sources(const struct credential_source *src, struct report *rep)
{
    if (src->passphrase_file != NULL && src->passphrase_command != NULL)
        return report_error(rep, EINVAL,
                            "a passphrase file and a passphrase command exclude each other");
    if (src->ask && (src->passphrase_file != NULL || src->passphrase_command != NULL))
        return report_error(rep, EINVAL, "a passphrase is read or asked for, not both");
    if (!src->lines && src->n_more_passphrase_files > 0)
        return report_error(rep, EINVAL,
                            "a passphrase comes from one file (only GELI containers take several)");
    if (n_stdin_keyfiles(src) > 1)
        return report_error(rep, EINVAL, "standard input can be one key file only");
    return 0;
}

static int read_keyfiles(struct credential *c, const struct credential_source *src,
                         struct report *rep)
{
    c->n_keyfiles = src->n_keyfiles;
    return src->n_keyfiles > 0 ? keyfile_read_all(&c->keyfiles, src, rep) : 0;
}

static int copy_credential(struct credential *ret, const struct credential *from)
{
    AUTO_CREDENTIAL struct credential c = {.has_passphrase = from->has_passphrase,
                                           .typed = from->typed,
                                           .n_keyfiles = from->n_keyfiles};
    int r = 0;

    if (from->passphrase.bytes != NULL)
        r = secret_copy(&c.passphrase, from->passphrase.bytes, from->passphrase.len);
    if (r == 0 && from->keyfiles.bytes != NULL)
        r = secret_copy(&c.keyfiles, from->keyfiles.bytes, from->keyfiles.len);
    if (r < 0)
        return r;
    credential_done(ret);
    *ret = c;
    c = (struct credential){0};
    return 0;
}

/* Key files first: nobody types a passphrase to learn that a stick is missing. But of standard
 * input the first line is the passphrase and the rest a key file. */
int credential_read(struct credential *ret, const struct credential_source *src, struct report *rep)
{
    AUTO_CREDENTIAL struct credential c = {0};
    bool stdin_first = is_stdin(src->passphrase_file);
    int r;

    if (src->given != NULL) {
        *ret = (struct credential){0};
        return copy_credential(ret, src->given);
    }
    r = check_sources(src, rep);
    if (r == 0 && stdin_first)
        r = read_passphrase(&c, src, rep);
    if (r == 0)
        r = read_keyfiles(&c, src, rep);
    if (r == 0 && !stdin_first)
        r = read_passphrase(&c, src, rep);
    if (r == 0 && c.has_passphrase)
        r = settle_recovery_key(&c.passphrase, rep);
    if (r < 0)
        return r;
    if (c.has_passphrase)
        hint_at_encoding(&c.passphrase, rep);
    if (src->keep != NULL)
        r = copy_credential(src->keep, &c);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct credential){0};
    return 0;
}
