/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves that containers are what docs/format.md says: against tests/vectors/native_ref.py, which
 * was written from that document alone, in both directions; and that the frozen containers beside
 * it open for ever. All are sparse files, because the second key begins at 4 GiB. */

#include "base/bytes.h"
#include "base/hkdf.h"
#include "block/file.h"
#include "crypto/sector.h"
#include "keystore/recovery.h"
#include "keystore/unlock.h"
#include "lib/container.h"
#include "lib/files.h"
#include "lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REFERENCE "/usr/bin/python3 tests/vectors/native_ref.py"
#define BORDER (UINT64_C(1) << 32) /* where the second key begins */
#define DISK (BORDER + 131072)

static char folder[] = "/tmp/hushvol-reference-XXXXXX";

static int start(void **state)
{
    return mkdtemp(folder) == NULL ? -1 : test_start(state);
}

static int end(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static const char *in_folder(char path[64], const char *name)
{
    snprintf(path, 64, "%s/%s", folder, name);
    return path;
}

/* --- a container and a credential become the disk --- */

static struct blk *open_file(const char *path)
{
    const struct blk_file_spec spec = {.path = path, .direct = BLK_DIRECT_OFF};
    struct blk *b = NULL;

    assert_int_equal(blk_file_open(&b, &spec, NULL, NULL), 0);
    return b;
}

static struct blk *cipher_over(struct blk *b, const struct key_volume *v)
{
    struct sector_spec spec = {.cipher = cipher_named(v->cipher),
                               .sector_size = v->sector_size,
                               .data_offset = v->data_offset,
                               .size = v->size,
                               .zero_pieces = v->zero_pieces,
                               .discard = v->discard,
                               .keys = {.prk = &v->rule.prk,
                                        .shift = v->rule.chunk_shift,
                                        .head_len = v->rule.head_len,
                                        .tail_len = v->rule.tail_len},
                               .n_lanes = 1,
                               .n_callers = 1};
    struct blk *disk = NULL;

    memcpy(spec.keys.head, v->rule.head, sizeof(spec.keys.head));
    memcpy(spec.keys.tail, v->rule.tail, sizeof(spec.keys.tail));
    assert_int_equal(sector_plain_open(&disk, b, &spec, NULL), 0);
    return disk;
}

static struct blk *open_disk(const char *path, const struct credential *cred)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    const struct key_format *format;
    struct blk *b = open_file(path);
    struct key_store *ks = NULL;

    assert_int_equal(key_recognise(&format, b, NULL), 0);
    assert_int_equal(format->open(&ks, b, b, NULL), 0);
    assert_int_equal(format->unlock(ks, cred, KEY_SLOT_ANY, &v, NULL), 0);
    format->close(ks);
    return cipher_over(b, &v);
}

static void hex_of_sum(char hex[65], const void *p, size_t len)
{
    unsigned char sum[32];

    assert_int_equal(EVP_Q_digest(NULL, "SHA256", NULL, p, len, sum, NULL), 1);
    for (unsigned i = 0; i < 32; i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
}

/* --- frozen containers --- */

struct frozen {
    struct credential cred;
    unsigned n_plain;
    struct {
        uint64_t off;
        size_t len;
        char sum[65];
    } plain[8];
};

static size_t from_hex(unsigned char *out, size_t size, const char *hex)
{
    size_t n = 0;

    while (n < size && sscanf(hex + 2 * n, "%2hhx", &out[n]) == 1)
        n++;
    return n;
}

static void add_keyfile(struct credential *c, const unsigned char *bytes, size_t len)
{
    AUTO_SECRET struct secret all = {0};

    assert_int_equal(secret_make(&all, c->keyfiles.len + len), 0);
    if (c->keyfiles.len > 0)
        memcpy(all.bytes, c->keyfiles.bytes, c->keyfiles.len);
    memcpy(all.bytes + c->keyfiles.len, bytes, len);
    assert_int_equal(secret_copy(&c->keyfiles, all.bytes, all.len), 0);
    c->n_keyfiles++;
}

/* One line of a frozen container: what it tells about itself, or bytes of the file. */
static void take_line(struct frozen *f, int fd, const char *line)
{
    unsigned char bytes[256];
    uint64_t off;
    char rest[520];

    if (line[0] == '#')
        return;
    if (sscanf(line, "plain %" SCNu64 " %zu %64s", &f->plain[f->n_plain].off,
               &f->plain[f->n_plain].len, f->plain[f->n_plain].sum) == 3) {
        f->n_plain++;
    } else if (sscanf(line, "passphrase %519s", rest) == 1) {
        f->cred.has_passphrase = true;
        assert_int_equal(
            secret_copy(&f->cred.passphrase, bytes, from_hex(bytes, sizeof(bytes), rest)), 0);
    } else if (sscanf(line, "keyfile %519s", rest) == 1) {
        add_keyfile(&f->cred, bytes, from_hex(bytes, sizeof(bytes), rest));
    } else if (sscanf(line, "size %" SCNu64, &off) == 1) {
        assert_int_equal(ftruncate(fd, (off_t)off), 0);
    } else {
        size_t n;

        assert_int_equal(sscanf(line, "%" SCNx64 " %519s", &off, rest), 2);
        n = from_hex(bytes, sizeof(bytes), rest);
        assert_int_equal(pwrite(fd, bytes, n, (off_t)off), n);
    }
}

static void thaw(struct frozen *f, const char *text, const char *path)
{
    AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FILE *in = fopen(text, "re");
    char line[1024];

    assert_true(fd >= 0 && in != NULL);
    while (fgets(line, sizeof(line), in) != NULL)
        take_line(f, fd, line);
    fclose(in);
}

static void frozen_containers_open_with_their_plaintext(void **state)
{
    char path[64];
    glob_t found;

    (void)state;
    assert_int_equal(glob("tests/vectors/native-v1-*.txt", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 6);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        AUTO_BLK struct blk *disk = NULL;
        struct frozen f = {0};

        thaw(&f, found.gl_pathv[i], in_folder(path, "frozen"));
        disk = open_disk(path, &f.cred);
        assert_int_not_equal(f.n_plain, 0);
        for (unsigned p = 0; p < f.n_plain; p++) {
            AUTO_FREE unsigned char *buf = malloc(f.plain[p].len);
            char sum[65];

            assert_int_equal(blk_read(disk, buf, f.plain[p].len, f.plain[p].off), 0);
            hex_of_sum(sum, buf, f.plain[p].len);
            assert_string_equal(sum, f.plain[p].sum);
        }
        credential_done(&f.cred);
    }
    globfree(&found);
}

/* --- against the reference, now --- */

/* What is in a container of these tests. */
struct kind {
    const char *cipher;
    uint32_t sector;
    const char *passphrase, *keyfile;
};

static const struct kind kinds[] = {
    {"aes-256-xts", 512, "old horse", NULL},
    {"aes-128-xts", 4096, NULL, "bytes of a key file"},
    {"aes-256-xts", 65536, "old horse", "bytes of a key file"},
    {"null", 4096, "old horse", NULL},
};
#define N_KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* Places in the disk: its start, both sides of the border, its end, a piece inside a large sector.
 */
static const struct {
    uint64_t off;
    size_t len;
} places[] = {{0, 1024}, {BORDER - 1024, 2048}, {DISK - 512, 512}, {66048, 1536}, {4096, 512}};
#define PLACES_LEN (1024 + 2048 + 512 + 1536 + 512)
#define N_PLACES (sizeof(places) / sizeof(places[0]))

static void write_file(const char *path, const void *bytes, size_t len)
{
    AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
}

/* The options that give the reference k's credential, from files. */
static const char *options_for(const struct kind *k, char options[256])
{
    char pass[64], key[64];
    int n = 0;

    options[0] = '\0';
    if (k->passphrase != NULL) {
        write_file(in_folder(pass, "pass"), k->passphrase, strlen(k->passphrase));
        n = snprintf(options, 256, " --passphrase-file %s", pass);
    }
    if (k->keyfile != NULL) {
        write_file(in_folder(key, "key"), k->keyfile, strlen(k->keyfile));
        snprintf(options + n, 256 - (size_t)n, " --keyfile %s", key);
    }
    return options;
}

/* Run the reference and take len bytes of what it prints. */
static void reference(const char *words, void *out, size_t len)
{
    char command[2048];
    FILE *p;

    snprintf(command, sizeof(command), REFERENCE " %s", words);
    p = popen(command, "re");
    assert_non_null(p);
    assert_int_equal(fread(out, 1, len, p), len);
    while (fgetc(p) != EOF)
        continue; /* the newline after a key */
    assert_int_equal(pclose(p), 0);
}

static void the_reference_reads_what_was_written_here(void **state)
{
    uint64_t seed = test_seed();
    char path[64], options[256], words[512];

    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        const struct key_create req = {.cipher = k->cipher,
                                       .sector_size = k->sector,
                                       .size = DISK,
                                       .label = "ours",
                                       .kdf = {.memory = 64 << 20, .iterations = 3}};
        AUTO_CREDENTIAL struct credential cred = {0};
        const struct key_format *native = key_format_named("native");
        unsigned char data[N_PLACES][2048], got[PLACES_LEN];
        struct blk *b;
        int n;

        container_credential(&cred, k->passphrase, k->keyfile);
        write_file(in_folder(path, "ours"), "", 0);
        assert_int_equal(
            truncate(path, (off_t)native->container_size(&(struct key_create){.size = DISK})), 0);
        b = open_file(path);
        assert_int_equal(native->create(b, b, &req, &cred, NULL), 0);
        blk_close(b);
        b = open_disk(path, &cred);
        for (size_t p = 0; p < N_PLACES; p++) {
            test_random_bytes(&seed, data[p], places[p].len);
            assert_int_equal(blk_write(b, data[p], places[p].len, places[p].off), 0);
        }
        blk_close(b);

        n = snprintf(words, sizeof(words), "read%s %s", options_for(k, options), path);
        for (size_t p = 0; p < N_PLACES; p++)
            n += snprintf(words + n, sizeof(words) - (size_t)n, " %" PRIu64 " %zu", places[p].off,
                          places[p].len);
        reference(words, got, sizeof(got));
        for (size_t p = 0, at = 0; p < N_PLACES; at += places[p++].len)
            assert_memory_equal(got + at, data[p], places[p].len);
    }
}

/* The plaintext that native_ref.py puts at a place. */
static void pattern(unsigned char *out, uint64_t off, size_t len)
{
    for (size_t at = 0; at < len; at += 32) {
        unsigned char n[8];

        bytes_put_le64(n, (off + at) / 32);
        assert_int_equal(EVP_Q_digest(NULL, "SHA256", NULL, n, sizeof(n), out + at, NULL), 1);
    }
}

static void what_the_reference_wrote_is_read_here(void **state)
{
    char path[64], options[256], words[1024];

    (void)state;
    for (size_t i = 0; i < N_KINDS; i++) {
        const struct kind *k = &kinds[i];
        AUTO_CREDENTIAL struct credential cred = {0};
        AUTO_BLK struct blk *disk = NULL;
        unsigned char got[2048], want[2048];
        int n = snprintf(words, sizeof(words),
                         "make %s --size %" PRIu64 " --cipher %s --sector-size %u --slot %zu%s",
                         in_folder(path, "theirs"), DISK, k->cipher, k->sector, 3 * i,
                         options_for(k, options));

        for (size_t p = 0; p < N_PLACES; p++)
            n += snprintf(words + n, sizeof(words) - (size_t)n, " --pattern %" PRIu64 ":%zu",
                          places[p].off, places[p].len);
        reference(words, got, 0);
        container_credential(&cred, k->passphrase, k->keyfile);
        disk = open_disk(path, &cred);
        for (size_t p = 0; p < N_PLACES; p++) {
            assert_int_equal(blk_read(disk, got, places[p].len, places[p].off), 0);
            pattern(want, places[p].off, places[p].len);
            assert_memory_equal(got, want, places[p].len);
        }
    }
}

static void change_slot(struct blk *b, bool keyed, enum key_patch_what what, int slot,
                        const char *passphrase)
{
    const struct kdf_request cheapest = {.memory = 64 << 20, .iterations = 3};
    const struct key_format *native = key_format_named("native");
    AUTO_CREDENTIAL struct credential old = {0}, cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    struct key_patch p = {.what = what, .slot = (unsigned)slot};
    struct key_store *ks = NULL;

    container_credential(&old, "old horse", NULL);
    container_credential(&cred, passphrase, NULL);
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->unlock(ks, &old, KEY_SLOT_ANY, &v, NULL), 0);
    if (passphrase != NULL)
        assert_int_equal(native->seal(ks, what, &cred, slot, NULL, &cheapest, &p, NULL), 0);
    native->forget(ks, !keyed);
    assert_int_equal(native->apply(ks, &p, NULL), 0);
    native->close(ks);
}

/* What the reference reads with a passphrase: 0 when it opens, and then the pattern is there. */
static int reference_opens(const char *path, const char *passphrase)
{
    unsigned char got[512], want[512];
    char command[512];
    size_t n;
    FILE *p;

    snprintf(command, sizeof(command), REFERENCE " read %s 0 512 --passphrase '%s' 2>/dev/null",
             path, passphrase);
    p = popen(command, "re");
    assert_non_null(p);
    n = fread(got, 1, sizeof(got), p);
    if (pclose(p) != 0)
        return -1;
    pattern(want, 0, sizeof(want));
    assert_int_equal(n, sizeof(got));
    assert_memory_equal(got, want, sizeof(got));
    return 0;
}

/* It checks the checksum and the MAC of the newest copy: here the only one. */
static void assert_reference_opens(const char *path, unsigned only, const char *passphrase,
                                   int want)
{
    char copy[64], command[256], out[64];

    snprintf(command, sizeof(command),
             "cp %s %s && dd if=/dev/zero of=%s bs=4096 count=1 seek=%u conv=notrunc 2>/dev/null",
             path, in_folder(copy, "one-copy"), copy, !only * NATIVE_COPY_STEP / 4096);
    assert_int_equal(test_run(out, sizeof(out), "%s", command), 0);
    assert_int_equal(reference_opens(copy, passphrase), want);
}

static void the_reference_opens_what_was_changed_here(void **state)
{
    char path[64], words[256];

    (void)state;
    for (unsigned keyed = 0; keyed < 2; keyed++) {
        AUTO_BLK struct blk *b = NULL;

        snprintf(words, sizeof(words),
                 "make %s --size 64K --pattern 0:512 --passphrase 'old horse'",
                 in_folder(path, "changed"));
        reference(words, NULL, 0);
        b = open_file(path);
        change_slot(b, keyed, KEY_PATCH_ADD, 13, "second");
        assert_reference_opens(path, keyed, "second", 0);
        change_slot(b, keyed, KEY_PATCH_CHANGE, 13, "third");
        assert_reference_opens(path, keyed, "third", 0);
        assert_reference_opens(path, keyed, "second", -1);
        change_slot(b, keyed, KEY_PATCH_REMOVE, 13, NULL);
        assert_reference_opens(path, keyed, "third", -1);
        assert_reference_opens(path, keyed, "old horse", 0);
        change_slot(b, keyed, KEY_PATCH_ERASE, 0, NULL);
        assert_reference_opens(path, keyed, "old horse", -1);
    }
}

/* A credential as a user gives it, through a file. */
static void credential_of(struct credential *c, const char *passphrase)
{
    struct credential_source src = {0};
    char path[64];

    src.passphrase_file = in_folder(path, "entry");
    write_file(path, passphrase, strlen(passphrase));
    assert_int_equal(credential_read(c, &src, NULL), 0);
}

/* The spelling that is not the slot's: small letters and other groups. */
static void respell(char *to, const char *text)
{
    for (unsigned n = 0; *text != '\0'; text++)
        if (*text != '-') {
            *to++ = *text >= 'A' ? (char)(*text | 0x20) : *text;
            if (++n % 10 == 0)
                *to++ = ' ';
        }
    *to = '\0';
}

static void recovery_keys_open_in_any_spelling_on_both_sides(void **state)
{
    char path[64], words[512], spelling[128];

    (void)state;
    for (int ours = 0; ours < 2; ours++) {
        AUTO_CREDENTIAL struct credential cred = {0};
        AUTO_SECRET struct secret made = {0};
        char key[RECOVERY_TEXT + 1] = "", got[512];

        if (ours)
            assert_int_equal(recovery_make(&made), 0);
        else
            reference("recovery-key", key, RECOVERY_TEXT);
        if (ours)
            memcpy(key, made.bytes, RECOVERY_TEXT);
        respell(spelling, key);
        snprintf(words, sizeof(words), "make %s --size 64K --pattern 0:512 --passphrase '%s'",
                 in_folder(path, "theirs"), ours ? key : spelling);
        reference(words, NULL, 0);
        credential_of(&cred, ours ? spelling : key);
        blk_close(open_disk(path, &cred));
        snprintf(words, sizeof(words), "read %s 0 512 --passphrase '%s'", path,
                 ours ? spelling : key);
        reference(words, got, sizeof(got));
    }
}

/* The engine's own tests have no header: here its key rule is the one that a header gives. */
static void chunk_keys_are_the_reference_s(void **state)
{
    static const uint64_t chunks[] = {0, 255, UINT64_MAX};
    char path[64], words[256];
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    AUTO_BLK struct blk *b = NULL;
    struct key_store *ks = NULL;
    const struct key_format *native = key_format_named("native");

    (void)state;
    snprintf(words, sizeof(words), "make %s --size 64K --passphrase x", in_folder(path, "keys"));
    reference(words, NULL, 0);
    container_credential(&cred, "x", NULL);
    b = open_file(path);
    assert_int_equal(native->open(&ks, b, b, NULL), 0);
    assert_int_equal(native->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL), 0);
    native->close(ks);
    for (unsigned i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        unsigned char info[72], key[64], want[64];
        char hex[129] = "";

        memcpy(info, v.rule.head, v.rule.head_len);
        bytes_put_le64(info + v.rule.head_len, chunks[i]);
        memcpy(info + v.rule.head_len + 8, v.rule.tail, v.rule.tail_len);
        assert_int_equal(
            hkdf_expand(key, 64, v.rule.prk.bytes, info, v.rule.head_len + 8 + v.rule.tail_len), 0);
        snprintf(words, sizeof(words), "chunk-key %s %" PRIu64 " --passphrase x", path, chunks[i]);
        reference(words, hex, sizeof(hex) - 1);
        assert_int_equal(from_hex(want, sizeof(want), hex), 64);
        assert_memory_equal(key, want, sizeof(key));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_containers_open_with_their_plaintext),
        cmocka_unit_test(the_reference_reads_what_was_written_here),
        cmocka_unit_test(what_the_reference_wrote_is_read_here),
        cmocka_unit_test(the_reference_opens_what_was_changed_here),
        cmocka_unit_test(recovery_keys_open_in_any_spelling_on_both_sides),
        cmocka_unit_test(chunk_keys_are_the_reference_s),
    };

    return cmocka_run_group_tests(tests, start, end);
}
