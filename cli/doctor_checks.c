/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* The machine: one function per check, in the order in which mounting meets the things they look
 * at. Each asks the kernel or the file itself rather than guessing from versions and distributions.
 */

#include "base/auto.h"
#include "base/run.h"
#include "base/size.h"
#include "fuse/folder.h"
#include "keystore/kdf.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <mntent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define ROOM_LOW (UINT64_C(64) << 20)
#define KDF_DEFAULT (UINT64_C(256) << 20)

static bool is_root(void)
{
    return geteuid() == 0;
}

static bool have_capability(unsigned cap)
{
    char hex[32];

    return doctor_field("/proc/self/status", "CapEff", hex, sizeof(hex)) &&
           strtoull(hex, NULL, 16) >> cap & 1;
}

static void check_fuse_device(struct doctor *d)
{
    static const char check[] = "fuse-device";
    AUTO_FD int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fd >= 0)
        doctor_found(d, DOCTOR_OK, check, NULL, "/dev/fuse can be opened");
    else if (errno == ENOENT || errno == ENODEV || errno == ENXIO)
        doctor_found(d, DOCTOR_FAIL, check,
                     "as root: modprobe fuse; in a container: start it with --device /dev/fuse",
                     "there is no /dev/fuse here, or the kernel has no FUSE");
    else
        doctor_found(
            d, DOCTOR_FAIL, check,
            "as root: chmod 0666 /dev/fuse (usual, and safe: who may mount is decided elsewhere)",
            "/dev/fuse cannot be opened: %s", strerror(errno));
}

static void check_root_may_mount(struct doctor *d)
{
    if (have_capability(CAP_SYS_ADMIN))
        doctor_found(d, DOCTOR_OK, "mount", NULL, "root mounts directly, without fusermount3");
    else
        doctor_found(d, DOCTOR_FAIL, "mount",
                     "start the container with --cap-add SYS_ADMIN (and --security-opt "
                     "apparmor=unconfined where AppArmor is used)",
                     "this root may not mount: it lacks CAP_SYS_ADMIN");
}

/* In a user namespace without a root of its own a setuid program gains nothing. */
static bool root_is_mapped(void)
{
    char rest[64];

    return doctor_field("/proc/self/uid_map", "         0 ", rest, sizeof(rest)) ||
           access("/proc/self/uid_map", R_OK) < 0;
}

static void check_fusermount(struct doctor *d)
{
    static const char check[] = "fusermount3";
    char path[256], no_new_privs[8] = "";
    struct statvfs fs;
    struct stat st;

    if (run_find(path, sizeof(path), "fusermount3") < 0 || stat(path, &st) < 0) {
        doctor_found(d, DOCTOR_FAIL, check, "apt-get install fuse3",
                     "there is no fusermount3, which mounts for users");
        return;
    }
    doctor_field("/proc/self/status", "NoNewPrivs", no_new_privs, sizeof(no_new_privs));
    if (!root_is_mapped())
        doctor_found(
            d, DOCTOR_FAIL, check,
            "give it the range of ids of a container (/etc/subuid), or mount outside of it",
            "this user namespace has no root, so %s cannot become root", path);
    else if (!(st.st_mode & S_ISUID) || st.st_uid != 0)
        doctor_found(d, DOCTOR_FAIL, check,
                     "reinstall the package fuse3, or as root: chmod u+s its file",
                     "%s is not setuid root", path);
    else if (statvfs(path, &fs) == 0 && fs.f_flag & ST_NOSUID)
        doctor_found(d, DOCTOR_FAIL, check, "mount that file system without nosuid",
                     "%s is on a file system mounted nosuid", path);
    else if (no_new_privs[0] == '1')
        doctor_found(d, DOCTOR_FAIL, check,
                     "allow it: NoNewPrivileges=no in a unit, no --security-opt no-new-privileges",
                     "this session may gain no privileges, so %s cannot mount", path);
    else if (access("/etc/mtab", R_OK) < 0)
        doctor_found(d, DOCTOR_FAIL, check, "as root: ln -s ../proc/self/mounts /etc/mtab",
                     "there is no /etc/mtab, so %s can mount, but not unmount", path);
    else
        doctor_found(d, DOCTOR_OK, check, NULL, "%s is setuid root", path);
}

static void check_mounting(struct doctor *d)
{
    if (is_root())
        check_root_may_mount(d);
    else
        check_fusermount(d);
}

static void check_allow_other(struct doctor *d)
{
    static const char check[] = "allow_other";
    char rest[8];

    if (is_root())
        doctor_found(d, DOCTOR_OK, check, NULL,
                     "root may always use -o allow_root and allow_other");
    else if (doctor_field("/etc/fuse.conf", "user_allow_other", rest, sizeof(rest)))
        doctor_found(d, DOCTOR_OK, check, NULL,
                     "user_allow_other is set; for root's losetup mount with -o allow_root");
    else if (access("/etc/fuse.conf", R_OK) < 0 && errno == EACCES)
        doctor_found(d, DOCTOR_WARN, check, "as root: chmod 0644 /etc/fuse.conf",
                     "you may not read /etc/fuse.conf, so -o allow_root and allow_other are "
                     "refused whatever it says");
    else
        doctor_found(
            d, DOCTOR_WARN, check,
            "as root: echo user_allow_other >>/etc/fuse.conf, then mount with -o allow_root",
            "nobody but you can reach your image, not even root: losetup as root fails with "
            "\"Permission denied\"");
}

static unsigned count_fuse_mounts(void)
{
    FILE *f = setmntent("/proc/self/mounts", "re");
    const struct mntent *m;
    unsigned n = 0;

    if (f == NULL)
        return 0;
    while ((m = getmntent(f)) != NULL)
        n += strcmp(m->mnt_type, "fuse") == 0 || strncmp(m->mnt_type, "fuse.", 5) == 0;
    endmntent(f);
    return n;
}

static void check_mount_max(struct doctor *d)
{
    unsigned n = count_fuse_mounts(), max = 1000;
    char text[32];

    if (is_root())
        return;
    if (doctor_field("/etc/fuse.conf", "mount_max", text, sizeof(text)))
        max = (unsigned)strtoul(text + strspn(text, " \t="), NULL, 10);
    if (n < max)
        doctor_found(d, DOCTOR_OK, "fuse-mounts", NULL, "%u FUSE mounts of at most %u", n, max);
    else
        doctor_found(
            d, DOCTOR_FAIL, "fuse-mounts", "unmount some, or raise mount_max in /etc/fuse.conf",
            "there are %u FUSE mounts already, and users may make no more than %u", n, max);
}

static void check_request_size(struct doctor *d)
{
    char text[32];
    unsigned long pages;

    if (!doctor_field("/proc/sys/fs/fuse/max_pages_limit", "", text, sizeof(text)))
        return;
    pages = strtoul(text, NULL, 10);
    if (pages * (unsigned long)sysconf(_SC_PAGESIZE) >= 1 << 20)
        doctor_found(d, DOCTOR_OK, "fuse-requests", NULL, "requests of 1 MiB are possible");
    else
        doctor_found(d, DOCTOR_WARN, "fuse-requests", "as root: sysctl fs.fuse.max_pages_limit=256",
                     "the kernel limits FUSE requests to %lu pages, which costs speed", pages);
}

static void check_loop(struct doctor *d)
{
    static const char check[] = "loop";
    char path[256];
    AUTO_FD int fd = -1;

    if (!is_root()) {
        if (run_find(path, sizeof(path), "fuse2fs") == 0)
            doctor_found(d, DOCTOR_OK, check, NULL, "attach mounts ext4 through %s, no root needed",
                         path);
        else
            doctor_found(d, DOCTOR_WARN, check, "apt-get install fuse2fs",
                         "attach without root needs fuse2fs");
        return;
    }
    fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    if (fd >= 0)
        doctor_found(d, DOCTOR_OK, check, NULL, "loop devices can be made");
    else
        doctor_found(
            d, DOCTOR_WARN, check,
            "modprobe loop; in a container: start it with the loop devices, or as a user mount "
            "with fuse2fs",
            "attach cannot make a loop device: /dev/loop-control: %s", strerror(errno));
}

static void check_helpers(struct doctor *d)
{
    static const struct {
        const char *name, *fix, *use;
        bool root_only;
    } helpers[] = {
        {"losetup", "apt-get install mount", "loop devices by hand", true},
        {"mkfs.ext4", "apt-get install e2fsprogs", "attach --mkfs ext4", false},
        {"e2fsck", "apt-get install e2fsprogs", "repairing ext4 after an unclean stop", false},
    };
    char path[256];

    for (unsigned i = 0; i < sizeof(helpers) / sizeof(helpers[0]); i++) {
        if (helpers[i].root_only && !is_root())
            continue;
        if (run_find(path, sizeof(path), helpers[i].name) == 0)
            doctor_found(d, DOCTOR_OK, helpers[i].name, NULL, "%s", path);
        else
            doctor_found(d, DOCTOR_WARN, helpers[i].name, helpers[i].fix,
                         "not found; needed for %s", helpers[i].use);
    }
}

static bool have_swap(void)
{
    char line[8];

    return doctor_field("/proc/swaps", "/", line, sizeof(line));
}

static void check_memlock(struct doctor *d)
{
    static const char check[] = "memlock";
    struct rlimit limit = {0, 0};

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY || have_capability(CAP_IPC_LOCK))
        doctor_found(d, DOCTOR_OK, check, NULL, "keys are kept out of swap");
    else if (!have_swap())
        doctor_found(d, DOCTOR_OK, check, NULL,
                     "the limit for locked memory is %llu KiB, but there is no swap",
                     (unsigned long long)limit.rlim_cur / 1024);
    else
        doctor_found(
            d, DOCTOR_WARN, check,
            "raise memlock to unlimited in /etc/security/limits.conf, or use encrypted swap",
            "keys may be swapped to disk: the limit for locked memory is %llu KiB",
            (unsigned long long)limit.rlim_cur / 1024);
}

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);

    for (const char *at = text; (at = strstr(at, word)) != NULL; at += len)
        if ((at == text || at[-1] == ' ') && (at[len] == ' ' || at[len] == '\0'))
            return true;
    return false;
}

static void check_aes(struct doctor *d)
{
    char flags[4096];

    if (!doctor_field("/proc/cpuinfo", "flags", flags, sizeof(flags)) &&
        !doctor_field("/proc/cpuinfo", "Features", flags, sizeof(flags)))
        return;
    if (has_word(flags, "aes"))
        doctor_found(d, DOCTOR_OK, "aes", NULL, "the processor has AES instructions");
    else
        doctor_found(d, DOCTOR_WARN, "aes",
                     "in a virtual machine: pass the host's processor model through",
                     "the processor has no AES instructions, so a core does some 100 MB/s");
}

static void check_kdf_memory(struct doctor *d)
{
    uint64_t available = kdf_memory_available();
    char have[SIZE_TEXT];

    size_format(have, available);
    if (available / 4 * 3 >= KDF_DEFAULT)
        doctor_found(d, DOCTOR_OK, "memory", NULL,
                     "%s available, unlocking takes 256 MiB by default", have);
    else
        doctor_found(
            d, DOCTOR_WARN, "memory",
            "free some, or give the container a cheaper slot on a larger machine: hushvol key "
            "add --kdf-memory 64M",
            "%s available is too little to unlock most containers (256 MiB)", have);
}

static void check_room(struct doctor *d, const char *check, const char *folder, const char *what)
{
    struct statvfs fs;
    char free_text[SIZE_TEXT];
    uint64_t room;

    if (statvfs(folder, &fs) < 0) {
        doctor_found(d, DOCTOR_WARN, check, NULL, "%s: %s", folder, strerror(errno));
        return;
    }
    room = (uint64_t)fs.f_bavail * fs.f_frsize;
    size_format(free_text, room);
    if (fs.f_flag & ST_RDONLY)
        doctor_found(d, DOCTOR_WARN, check, NULL, "%s is read only", what);
    else if (room < ROOM_LOW)
        doctor_found(d, DOCTOR_WARN, check, "make room", "only %s free in %s", free_text, what);
    else
        doctor_found(d, DOCTOR_OK, check, NULL, "%s free in %s", free_text, what);
}

/* Keeps the words with which a folder is refused. */
struct words {
    struct report rep;
    char text[200];
};

static void keep_words(struct report *rep, enum report_level level, const char *text)
{
    struct words *w = container_of(rep, struct words, rep);

    if (level == REPORT_ERROR)
        snprintf(w->text, sizeof(w->text), "%s", text);
}

static void check_runtime_folder(struct doctor *d)
{
    static const char check[] = "runtime-folder";
    struct words words = {.rep.say = keep_words};
    struct serve_folder folder;

    if (serve_folder_own(&folder, &words.rep) < 0)
        doctor_found(d, DOCTOR_FAIL, check,
                     "remove what is in its place, or give it back to yourself with mode 0700",
                     "%s", words.text);
    else if (!is_root() && strncmp(folder.path, "/tmp/", 5) == 0)
        doctor_found(
            d, DOCTOR_WARN, check,
            "log in through pam_systemd, or set XDG_RUNTIME_DIR to a folder that is yours alone",
            "there is no /run/user/%u, so %s is used, which clean-up jobs may empty", geteuid(),
            folder.path);
    else
        check_room(d, check, folder.path, folder.path);
}

static void check_current_folder(struct doctor *d)
{
    check_room(d, "space", ".", "the current folder");
}

void doctor_machine(struct doctor *d)
{
    /* clang-format off */
    static void (*const checks[])(struct doctor *) = {
        check_fuse_device,
        check_mounting,
        check_allow_other,
        check_mount_max,
        check_request_size,
        check_loop,
        check_helpers,
        check_memlock,
        check_aes,
        check_kdf_memory,
        check_runtime_folder,
        check_current_folder,
    };
    /* clang-format on */

    for (unsigned i = 0; i < sizeof(checks) / sizeof(checks[0]); i++)
        checks[i](d);
}
