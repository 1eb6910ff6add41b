/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/geli.h"

#include "block/memory.h"
#include "lib/container.h"
#include "lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME "tests/vectors/geli.txt"
#define LINES 48

/* One entry: lines of a text that is kept for as long as the test runs. */
struct geli_vector {
    char name[64];
    unsigned n;
    char *key[LINES], *value[LINES];
};

static struct geli_vector all[64];
static unsigned n_all;

/* "key = value" within an entry; what else there is, is for people or for the data path. */
static void take_line(char *line)
{
    struct geli_vector *v = n_all > 0 ? &all[n_all - 1] : NULL;
    char *equals = strstr(line, " = ");

    if (line[0] == '[') {
        line[strcspn(line, "]")] = '\0';
        assert_true(n_all < sizeof(all) / sizeof(all[0]));
        snprintf(all[n_all++].name, sizeof(all[0].name), "%s", line + 1);
        return;
    }
    if (v == NULL || line[0] == '#' || line[0] == ' ' || equals == NULL ||
        strncmp(line, "at offset", 9) == 0)
        return;
    *equals = '\0';
    assert_true(v->n < LINES);
    v->key[v->n] = strdup(line);
    v->value[v->n++] = strdup(equals + 3);
}

const struct geli_vector *geli_vectors_first(void)
{
    char *line = NULL;
    size_t room = 0;
    FILE *f;

    if (n_all > 0)
        return &all[0];
    f = fopen(FILE_NAME, "re");
    assert_non_null(f);
    while (getline(&line, &room, f) > 0) {
        line[strcspn(line, "\n")] = '\0';
        take_line(line);
    }
    free(line);
    fclose(f);
    assert_int_equal(n_all, 42);
    return &all[0];
}

const struct geli_vector *geli_vector_next(const struct geli_vector *v)
{
    return v + 1 < all + n_all ? v + 1 : NULL;
}

const char *geli_vector_name(const struct geli_vector *v)
{
    return v->name;
}

const char *geli_vector_text(const struct geli_vector *v, const char *key)
{
    for (unsigned i = 0; i < v->n; i++)
        if (strcmp(v->key[i], key) == 0)
            return v->value[i];
    return NULL;
}

long long geli_vector_number(const struct geli_vector *v, const char *key)
{
    const char *text = geli_vector_text(v, key);

    return text != NULL ? strtoll(text, NULL, 0) : 0;
}

size_t geli_vector_bytes(const struct geli_vector *v, const char *key, unsigned char *to,
                         size_t max)
{
    const char *text = geli_vector_text(v, key);
    size_t n = text != NULL ? strlen(text) / 2 : 0;

    assert_true(n <= max);
    for (size_t i = 0; i < n; i++) {
        char digits[3] = {text[2 * i], text[2 * i + 1], '\0'};

        to[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    return n;
}

static void take_passphrase(const struct geli_vector *v, struct credential *c)
{
    const char *text = geli_vector_text(v, "passphrase");
    unsigned char bytes[256];
    size_t n = geli_vector_bytes(v, "passphrase_hex", bytes, sizeof(bytes));

    if (geli_vector_text(v, "passphrase_hex") == NULL) {
        if (text == NULL || strcmp(text, "(none)") == 0)
            return;
        n = strlen(text);
        memcpy(bytes, text, n);
    }
    assert_int_equal(secret_copy(&c->passphrase, bytes, n), 0);
    c->has_passphrase = true;
}

void geli_vector_credential(const struct geli_vector *v, struct credential *ret)
{
    unsigned char bytes[256];
    size_t n = geli_vector_bytes(v, "keyfile0_hex", bytes, sizeof(bytes));
    size_t more = geli_vector_bytes(v, "keyfile1_hex", bytes + n, sizeof(bytes) - n);

    *ret = (struct credential){.n_keyfiles = (unsigned)(n > 0) + (more > 0)};
    take_passphrase(v, ret);
    if (n + more > 0)
        assert_int_equal(secret_copy(&ret->keyfiles, bytes, n + more), 0);
}

struct key_create geli_container_request(void)
{
    return (struct key_create){
        .cipher = "aes-xts", .sector_size = 512, .size = GELI_TEST_DISK, .kdf = {.iterations = 3}};
}

struct blk *geli_container_open(void)
{
    const struct key_format *geli = key_format_named("geli");
    struct key_create req = geli_container_request();
    AUTO_CREDENTIAL struct credential cred = {0};
    struct blk *b = NULL;

    container_credential(&cred, "old horse", NULL);
    assert_int_equal(geli->prepare(&req, NULL), 0);
    assert_int_equal(geli->container_size(&req), GELI_TEST_SIZE);
    assert_int_equal(blk_memory_open(&b, GELI_TEST_SIZE, 1), 0);
    assert_int_equal(geli->create(b, b, &req, &cred, NULL), 0);
    return b;
}
