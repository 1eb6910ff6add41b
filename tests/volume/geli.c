/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves that crypto/, volume/stack.c and keystore/geli together read and write GELI disks: against
 * the stored sectors in tests/vectors/geli.txt, and in both directions against an independent
 * writer and reader of the format, tests/vectors/geli_ref.py, over its fixed set, over random
 * combinations and, with HUSHVOL_TEST_SCALE=soak, over all of them. */

#include "lib/geli.h"
#include "lib/files.h"
#include "lib/model.h"
#include "lib/test.h"

#include "base/auto.h"
#include "base/bytes.h"
#include "base/secret.h"
#include "volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANDOM "320"
#define PARTS 32 /* of all combinations: what lies in the test's folder at once */

static int start(void **state)
{
    return secret_start(NULL) < 0 ? -1 : test_files_make(state);
}

/* NULL: a flag in the metadata says that it is not to be written. */
static struct volume *open_volume(const char *path, const struct credential *cred, bool read_only,
                                  struct report *rep)
{
    const struct vol_spec spec = {.container = path,
                                  .slot = KEY_SLOT_ANY,
                                  .read_only = read_only,
                                  .threads = 2,
                                  .credential = {.given = cred}};
    struct volume *v = NULL;
    int r = vol_open(&v, &spec, &(pid_t){0}, rep);

    if (r < 0 && (r != -EROFS || read_only))
        fail_msg("%s does not open: %s", path, strerror(-r));
    return v;
}

/* --- known sectors --- */

static void sha256_hex(char out[65], const void *data, size_t len)
{
    unsigned char hash[32];

    assert_int_equal(EVP_Digest(data, len, hash, NULL, EVP_sha256(), NULL), 1);
    for (unsigned i = 0; i < 32; i++)
        sprintf(out + 2 * i, "%02x", hash[i]);
}

static size_t unhex(unsigned char *out, const char *hex)
{
    size_t n = strspn(hex, "0123456789abcdef") / 2;

    for (size_t i = 0; i < n; i++)
        sscanf(hex + 2 * i, "%2hhx", out + i);
    return n;
}

/* What the file says of one sector. */
struct known {
    uint64_t off, stored_off;
    size_t stored_len;
    char what[16];
    char value[2 * 8192 + 1];
};

/* The plaintext of the vectors, as the file's head defines it. */
static void vector_plain(unsigned char *out, size_t len, uint64_t off)
{
    for (size_t i = 0; i < len; i++)
        out[i] = (unsigned char)(i + i / 256 + (off + i) / 512);
}

/* A sparse file that holds nothing but the metadata of an entry. */
static const char *vector_image(const struct geli_vector *v)
{
    const char *path = test_path(test_shm, "vector.geli");
    unsigned char metadata[512] = {0};
    uint64_t size = (uint64_t)geli_vector_number(v, "provsize");
    uint64_t sector = (uint64_t)geli_vector_number(v, "provider_sector");
    size_t len = geli_vector_bytes(v, "metadata", metadata, sizeof(metadata));
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && len > 500);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    assert_int_equal(pwrite(fd, metadata, sizeof(metadata), (off_t)(size - sector)), 512);
    close(fd);
    return path;
}

static void check_stored(const char *path, const struct known *k, unsigned char *stored)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    unsigned char want[8192];
    char hash[65];

    assert_int_equal(pread(fd, stored, k->stored_len, (off_t)k->stored_off), k->stored_len);
    close(fd);
    if (strcmp(k->what, "sha256") == 0) {
        sha256_hex(hash, stored, k->stored_len);
        assert_string_equal(hash, k->value);
    } else {
        size_t n = unhex(want, k->value);

        assert_true(n == 32 || n == k->stored_len);
        assert_memory_equal(stored, want, n);
    }
}

/* Written here it is stored as the vector says; what is stored there reads as the plaintext. */
static void check_known(const struct geli_vector *v, const struct known *k)
{
    const char *path = vector_image(v);
    size_t len = (size_t)geli_vector_number(v, "sectorsize");
    AUTO_FREE unsigned char *plain = malloc(len), *got = malloc(len),
                            *stored = malloc(k->stored_len);
    AUTO_CREDENTIAL struct credential cred = {0};
    struct volume *disk;

    geli_vector_credential(v, &cred);
    vector_plain(plain, len, k->off);
    disk = open_volume(path, &cred, false, NULL);
    assert_int_equal(vol_top(disk)->size, geli_vector_number(v, "mediasize"));
    assert_int_equal(blk_write(vol_top(disk), plain, len, k->off), 0);
    assert_int_equal(vol_close(disk), 0);
    check_stored(path, k, stored);
    disk = open_volume(path, &cred, true, NULL);
    assert_int_equal(blk_read(vol_top(disk), got, len, k->off), 0);
    assert_memory_equal(got, plain, len);
    assert_int_equal(vol_close(disk), 0);
    unlink(path);
}

static const struct geli_vector *vector_named(const char *line)
{
    for (const struct geli_vector *v = geli_vectors_first(); v != NULL; v = geli_vector_next(v))
        if (strncmp(line + 1, geli_vector_name(v), strlen(geli_vector_name(v))) == 0 &&
            line[1 + strlen(geli_vector_name(v))] == ']')
            return v;
    return NULL;
}

static void sectors_are_stored_as_known(void **state)
{
    const struct geli_vector *v = NULL;
    FILE *f = fopen("tests/vectors/geli.txt", "re");
    char *line = NULL;
    size_t room = 0;
    struct known k = {0};
    unsigned n = 0;

    (void)state;
    assert_non_null(f);
    while (getline(&line, &room, f) > 0) {
        if (line[0] == '[')
            v = vector_named(line);
        sscanf(line, "at offset %" SCNu64 ": provider_offset = %" SCNu64 ", length = %zu", &k.off,
               &k.stored_off, &k.stored_len);
        if (sscanf(line, " %15s = %16384s", k.what, k.value) == 2 && line[0] == ' ') {
            assert_non_null(v);
            check_known(v, &k);
            n++;
        }
    }
    free(line);
    fclose(f);
    assert_int_equal(n, 79);
}

/* --- against the reference --- */

/* One line of MANIFEST.tsv. */
struct image {
    char *column[16];
    char path[300];
    uint64_t size, off, len; /* of the disk; the range that was written */
};
enum { FILE_NAME, IMAGE_HASH, SIZE, RANGE, PLAIN_HASH, KEY, OTHER_KEY };

static char folder[250];

static size_t read_file(unsigned char *to, size_t max, const char *name)
{
    char path[500];
    FILE *f;
    size_t n;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    f = fopen(path, "re");
    assert_non_null(f);
    n = fread(to, 1, max, f);
    fclose(f);
    return n;
}

/* "-k key-nul -j pw-plain": files in the folder; of a pass file the first line counts. */
static void read_key(struct credential *cred, const char *words)
{
    unsigned char pass[1024], keys[16384];
    size_t n_pass = 0, n_keys = 0;
    AUTO_FREE char *copy = strdup(words);
    char *save = NULL;

    for (char *w = strtok_r(copy, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save)) {
        const char *name = strtok_r(NULL, " ", &save);

        if (strcmp(w, "-k") == 0) {
            n_keys += read_file(keys + n_keys, sizeof(keys) - n_keys, name);
            cred->n_keyfiles++;
        } else {
            size_t n = read_file(pass + n_pass, sizeof(pass) - n_pass, name);
            const unsigned char *end = memchr(pass + n_pass, '\n', n);

            n_pass += end != NULL ? (size_t)(end - pass) - n_pass : n;
            cred->has_passphrase = true;
        }
    }
    if (n_pass > 0)
        assert_int_equal(secret_copy(&cred->passphrase, pass, n_pass), 0);
    if (n_keys > 0)
        assert_int_equal(secret_copy(&cred->keyfiles, keys, n_keys), 0);
}

static void image_parse(struct image *m, char *line)
{
    memset(m, 0, sizeof(*m));
    for (unsigned i = 0; i < 16 && line != NULL; i++)
        m->column[i] = strsep(&line, "\t\n");
    snprintf(m->path, sizeof(m->path), "%s/%s", folder, m->column[FILE_NAME]);
    m->size = strtoull(m->column[SIZE], NULL, 10);
    assert_int_equal(sscanf(m->column[RANGE], "%" SCNu64 ":%" SCNu64, &m->off, &m->len), 2);
}

/* Every 16 bytes of the reference's plaintext state their own offset. */
static void pattern(unsigned char *to, uint64_t off, uint64_t len)
{
    char block[32];

    for (uint64_t i = 0; i < len; i += 16) {
        snprintf(block, sizeof(block), "%015" PRIu64 "\n", off + i);
        memcpy(to + i, block, 16);
    }
}

static void expect_bytes(struct blk *b, const struct image *m, const unsigned char *want)
{
    AUTO_FREE unsigned char *got = malloc(m->len);
    int r = blk_read(b, got, m->len, m->off);

    if (r < 0 || memcmp(got, want, m->len) != 0)
        fail_msg("%s: %s", m->path, r < 0 ? strerror(-r) : "other bytes");
}

/* The written range as a device of its own: a model of the whole of a sparse one would be large. */
struct window {
    struct blk blk;
    uint64_t off;
};

static int window_read(struct blk *b, void *buf, size_t len, uint64_t off)
{
    return blk_read(b->below, buf, len, off + container_of(b, struct window, blk)->off);
}

static int window_write(struct blk *b, const void *buf, size_t len, uint64_t off)
{
    return blk_write(b->below, buf, len, off + container_of(b, struct window, blk)->off);
}

static int window_discard(struct blk *b, uint64_t len, uint64_t off)
{
    return blk_discard(b->below, len, off + container_of(b, struct window, blk)->off);
}

static int window_write_zeroes(struct blk *b, uint64_t len, uint64_t off)
{
    return blk_write_zeroes(b->below, len, off + container_of(b, struct window, blk)->off);
}

static int window_extent(struct blk *b, uint64_t off, struct blk_extent *ret)
{
    uint64_t start = container_of(b, struct window, blk)->off;
    int r = blk_extent(b->below, off + start, ret);

    ret->end -= start;
    return r;
}

static const struct blk_ops window_ops = {
    .name = "window",
    .read = window_read,
    .write = window_write,
    .flush = blk_pass_flush,
    .discard = window_discard,
    .write_zeroes = window_write_zeroes,
    .extent = window_extent,
};

/* Operations of any offset and length, then random bytes all over; want gets what is there then. */
static void write_image(const struct image *m, struct volume *v, uint64_t *seed,
                        unsigned char *want)
{
    struct window w = {.blk = {.ops = &window_ops, .size = m->len, .granule = 1}, .off = m->off};

    w.blk.below = vol_top(v);
    test_against_array(&w.blk, seed, 12, (size_t)m->len);
    test_random_bytes(seed, want, m->len);
    assert_int_equal(blk_write(vol_top(v), want, m->len, m->off), 0);
    /* one edge is written last, in part: the sector around it has to survive */
    want[m->len - 7] ^= 0x55;
    assert_int_equal(blk_write(vol_top(v), want + m->len - 7, 1, m->off + m->len - 7), 0);
    assert_int_equal(blk_flush(vol_top(v)), 0);
    assert_int_equal(vol_close(v), 0);
}

/* Read what the reference wrote; write; leave the hash of that in the new manifest. */
static void check_image(struct image *m, FILE *manifest, uint64_t *seed)
{
    AUTO_FREE unsigned char *want = malloc(m->len);
    AUTO_CREDENTIAL struct credential cred = {0}, other = {0};
    bool two = strcmp(m->column[OTHER_KEY], "-") != 0;
    struct volume *v;
    char hash[65];

    read_key(&cred, m->column[KEY]);
    pattern(want, m->off, m->len);
    v = open_volume(m->path, &cred, true, NULL);
    if (vol_top(v)->size != m->size)
        fail_msg("%s: a disk of %" PRIu64 " bytes", m->path, vol_top(v)->size);
    expect_bytes(vol_top(v), m, want);
    assert_int_equal(vol_close(v), 0);
    v = open_volume(m->path, &cred, false, NULL);
    if (v != NULL)
        write_image(m, v, seed, want);
    if (two)
        read_key(&other, m->column[OTHER_KEY]);
    v = open_volume(m->path, two ? &other : &cred, true, NULL);
    expect_bytes(vol_top(v), m, want);
    assert_int_equal(vol_close(v), 0);
    sha256_hex(hash, want, m->len);
    m->column[PLAIN_HASH] = hash;
    for (unsigned i = 0; i < 15; i++)
        fprintf(manifest, "%s%c", m->column[i], i < 14 ? '\t' : '\n');
}

static unsigned check_folder(uint64_t *seed)
{
    char from[300], to[300], *line = NULL, said[200];
    size_t room = 0;
    unsigned n = 0;
    FILE *in, *out;

    snprintf(from, sizeof(from), "%s/MANIFEST.tsv", folder);
    snprintf(to, sizeof(to), "%s/written.tsv", folder);
    in = fopen(from, "re");
    out = fopen(to, "we");
    assert_true(in != NULL && out != NULL);
    while (getline(&line, &room, in) > 0) {
        struct image m;

        if (n++ == 0) {
            fputs(line, out);
            continue;
        }
        image_parse(&m, line);
        check_image(&m, out, seed);
    }
    free(line);
    fclose(in);
    fclose(out);
    assert_int_equal(rename(to, from), 0);
    if (test_run(said, sizeof(said), "/usr/bin/python3 tests/vectors/geli_ref.py check %s",
                 folder) != 0)
        fail_msg("the reference reads something else: %s", said);
    return n - 1;
}

/* Make a set of images, read and write each, and let the reference read them. Returns how many. */
static unsigned check_matrix(const char *options)
{
    uint64_t seed = test_seed();
    char said[200];
    unsigned n;

    snprintf(folder, sizeof(folder), "%s", test_path(test_shm, "matrix"));
    assert_int_equal(test_run(said, sizeof(said),
                              "/usr/bin/python3 tests/vectors/geli_ref.py matrix %s --seed %llu %s",
                              options, (unsigned long long)seed, folder),
                     0);
    n = check_folder(&seed);
    assert_int_equal(test_run(said, sizeof(said), "rm -r %s", folder), 0);
    return n;
}

static void the_fixed_set_is_read_and_written(void **state)
{
    (void)state;
    assert_true(check_matrix("") > 90);
}

/* Disks of more than 512 MiB, of which only what lies around the change is there. */
static void both_sides_of_a_change_of_keys_are_read_and_written(void **state)
{
    (void)state;
    assert_int_equal(check_matrix("--key-change"), 5);
}

static void random_combinations_are_read_and_written(void **state)
{
    (void)state;
    assert_int_equal(check_matrix("--random " RANDOM), atoi(RANDOM));
}

/* A few of them by chance, or all. */
static void any_combination_is_read_and_written(void **state)
{
    const char *scale = getenv("HUSHVOL_TEST_SCALE");
    bool all = scale != NULL && strcmp(scale, "soak") == 0;
    uint64_t seed = test_seed();
    unsigned n = 0;

    (void)state;
    for (unsigned i = 0; i < PARTS && (all || i == 0); i++) {
        unsigned parts = all ? PARTS : 16 * PARTS;
        char options[40];

        snprintf(options, sizeof(options), "--every %u/%u",
                 all ? i : (unsigned)(test_random(&seed) % parts), parts);
        n += check_matrix(options);
    }
    print_message("%u combinations\n", n);
    assert_true(n > (all ? 9000 : 15));
}

/* --- damage --- */

/* What a write tears or somebody changes is one sector that cannot be read, in the whole stack too:
 * its neighbours are read, alone or behind it, and a write of a whole sector mends it. */
static void a_changed_sector_cannot_be_read_and_its_neighbours_can(void **state)
{
    const char *path = test_path(test_disk, "auth.geli");
    AUTO_CREDENTIAL struct credential cred = {.has_passphrase = true};
    static unsigned char got[65536], want[65536];
    struct test_report rep;
    struct volume *v;
    char said[200];
    unsigned char byte;
    int fd;

    (void)state;
    test_report_init(&rep);
    assert_int_equal(test_run(said, sizeof(said),
                              "/usr/bin/python3 tests/vectors/geli_ref.py create -p secret -a "
                              "hmac/sha256 -s 4096 --size %u %s",
                              64 * 9 * 512 + 512, path),
                     0);
    assert_int_equal(secret_copy(&cred.passphrase, "secret", 6), 0);
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(fd, &byte, 1, 3 * 9 * 512 + 700), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, 3 * 9 * 512 + 700), 1);
    close(fd);
    pattern(want, 0, sizeof(want));
    v = open_volume(path, &cred, false, &rep.rep);
    assert_int_equal(vol_top(v)->size, 64 * 4096);
    assert_int_equal(blk_read(vol_top(v), got, 10, 3 * 4096 + 4000), -EBADMSG);
    assert_int_equal(blk_read(vol_top(v), got, sizeof(got), 0), -EBADMSG);
    assert_int_equal(blk_write(vol_top(v), got, 10, 3 * 4096 + 4000), -EBADMSG);
    for (uint64_t off = 0; off < sizeof(want); off += 4096) /* a sequential reader */
        assert_int_equal(blk_read(vol_top(v), got, 4096, off), off == 3 * 4096 ? -EBADMSG : 0);
    assert_int_equal(blk_read(vol_top(v), got, 3 * 4096, 0), 0);
    assert_memory_equal(got, want, 3 * 4096);
    assert_int_equal(blk_read(vol_top(v), got, sizeof(got) - 4 * 4096, 4 * 4096), 0);
    assert_memory_equal(got, want + 4 * 4096, sizeof(got) - 4 * 4096);
    assert_true(test_report_has(&rep, "bytes 12288 to 16383 of the disk do not verify"));
    assert_int_equal(blk_write(vol_top(v), want + 3 * 4096, 4096, 3 * 4096), 0);
    assert_int_equal(blk_read(vol_top(v), got, sizeof(got), 0), 0);
    assert_memory_equal(got, want, sizeof(got));
    assert_int_equal(vol_close(v), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(sectors_are_stored_as_known, test_files_clear),
        cmocka_unit_test_teardown(the_fixed_set_is_read_and_written, test_files_clear),
        cmocka_unit_test_teardown(both_sides_of_a_change_of_keys_are_read_and_written,
                                  test_files_clear),
        cmocka_unit_test_teardown(random_combinations_are_read_and_written, test_files_clear),
        cmocka_unit_test_teardown(any_combination_is_read_and_written, test_files_clear),
        cmocka_unit_test_teardown(a_changed_sector_cannot_be_read_and_its_neighbours_can,
                                  test_files_clear),
    };

    return cmocka_run_group_tests_name("volume.geli", tests, start, test_files_remove);
}
