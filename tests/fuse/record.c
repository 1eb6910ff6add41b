/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/record.c: names are made and checked, and what is written is read back. */

#include "fuse/record.h"
#include "lib/test.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

static const char *made(const char *container, unsigned n)
{
    static char name[SERVE_NAME_MAX + 1];

    serve_name_make(name, container, n);
    assert_true(serve_name_valid(name));
    return name;
}

static void a_name_is_the_last_part_without_suffix(void **state)
{
    (void)state;
    assert_string_equal(made("/home/me/photos.hv", 1), "photos");
    assert_string_equal(made("photos.tar.hv", 1), "photos.tar");
    assert_string_equal(made("/dev/sdb1", 1), "sdb1");
    assert_string_equal(made("/x/plain", 1), "plain");
    assert_string_equal(made("/x/", 1), "volume");
}

static void other_characters_are_folded(void **state)
{
    (void)state;
    assert_string_equal(made("My Photos (2).hv", 1), "my-photos--2-");
    assert_string_equal(made(".hidden", 1), "_hidden");
    assert_string_equal(made("..", 1), "_");
    assert_string_equal(made("-rf.hv", 1), "_rf");
    assert_string_equal(made("caf\xc3\xa9.hv", 1), "caf--");
    assert_string_equal(made("a\nb", 1), "a-b");
}

static void a_number_fits_in_the_longest_name(void **state)
{
    char longest[200];

    (void)state;
    assert_string_equal(made("photos.hv", 2), "photos-2");
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(strlen(made(longest, 1)), SERVE_NAME_MAX);
    assert_int_equal(strlen(made(longest, 12)), SERVE_NAME_MAX);
    assert_string_equal(made(longest, 12) + SERVE_NAME_MAX - 3, "-12");
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const bad[] = {"",    ".", "..",  ".a", "-a",     "a/b",
                                      "a b", "A", "a\n", "a*", "a\x01b", "a\xc3\xa9"};
    char longer[SERVE_NAME_MAX + 2];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_false(serve_name_valid(bad[i]));
    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    assert_false(serve_name_valid(longer));
    longer[SERVE_NAME_MAX] = '\0';
    assert_true(serve_name_valid(longer));
}

static struct serve_record example(void)
{
    struct serve_record r = {
        .name = "photos",
        .pid = 4711,
        .container = strdup("/home/me/\"photos\",\n.hv"),
        .mountpoint = strdup("/run/user/1000/hushvol/mnt/photos"),
        .header = strdup("/media/stick/photos.header"),
        .filesystem = strdup("/mnt/p"),
        .link = strdup("/home/me/p"),
        .format = "native",
        .cipher = "aes-256-xts",
        .integrity = "hmac-sha256",
        .sector_size = 65536,
        .size = UINT64_C(1) << 62,
        .read_only = true,
        .made_filesystem = true,
        .container_dev = UINT64_MAX,
        .container_ino = UINT64_C(1) << 63,
        .since = 1700000000,
    };

    return r;
}

static void a_record_comes_back_as_it_was(void **state)
{
    AUTO_RECORD struct serve_record in = example();
    AUTO_RECORD struct serve_record out = {0};
    struct json_object *o = serve_record_encode(&in), *parsed;

    (void)state;
    parsed = json_tokener_parse(json_object_to_json_string(o));
    assert_int_equal(serve_record_decode(&out, parsed), 0);
    assert_string_equal(out.name, in.name);
    assert_string_equal(out.container, in.container);
    assert_string_equal(out.mountpoint, in.mountpoint);
    assert_string_equal(out.header, in.header);
    assert_string_equal(out.filesystem, in.filesystem);
    assert_null(out.device);
    assert_string_equal(out.link, in.link);
    assert_string_equal(out.format, in.format);
    assert_string_equal(out.cipher, in.cipher);
    assert_string_equal(out.integrity, in.integrity);
    assert_int_equal(out.pid, in.pid);
    assert_int_equal(out.sector_size, in.sector_size);
    assert_true(out.size == in.size);
    assert_true(out.read_only && !out.suspended && out.made_filesystem && !out.made_mountpoint);
    assert_true(out.container_dev == in.container_dev && out.container_ino == in.container_ino);
    assert_true(out.since == in.since);
    json_object_put(parsed);
    json_object_put(o);
}

/* Decode the example with one member replaced by this JSON, or left out. */
static int decode_with(const char *key, const char *json)
{
    AUTO_RECORD struct serve_record in = example();
    AUTO_RECORD struct serve_record out = {0};
    struct json_object *o = serve_record_encode(&in);
    int r;

    if (json == NULL)
        json_object_object_del(o, key);
    else
        json_object_object_add(o, key, json_tokener_parse(json));
    r = serve_record_decode(&out, o);
    json_object_put(o);
    return r;
}

static void a_damaged_record_is_refused(void **state)
{
    AUTO_RECORD struct serve_record out = {0};

    (void)state;
    assert_int_equal(serve_record_decode(&out, NULL), -EBADMSG);
    assert_int_equal(decode_with("pid", NULL), -EBADMSG);
    assert_int_equal(decode_with("pid", "0"), -EBADMSG);
    assert_int_equal(decode_with("pid", "-1"), -EBADMSG);
    assert_int_equal(decode_with("pid", "\"1\""), -EBADMSG);
    assert_int_equal(decode_with("name", "\"../x\""), -EBADMSG);
    assert_int_equal(decode_with("name", "7"), -EBADMSG);
    assert_int_equal(decode_with("mountpoint", "\"relative\""), -EBADMSG);
    assert_int_equal(decode_with("mountpoint", "[]"), -EBADMSG);
    assert_int_equal(decode_with("device", "\"loop0\""), -EBADMSG);
    assert_int_equal(decode_with("read_only", "1"), -EBADMSG);
    assert_int_equal(decode_with("cipher", "\"0123456789012345678901234567890123456789\""),
                     -EBADMSG);
    assert_int_equal(decode_with("cipher", "\"null\""), 0);
    assert_int_equal(decode_with("integrity", NULL), 0);
    assert_int_equal(decode_with("integrity", "\"more than it may have\""), -EBADMSG);
    assert_int_equal(decode_with("lost", NULL), 0); /* as an earlier version writes it */
    assert_int_equal(decode_with("lost", "true"), 0);
    assert_int_equal(decode_with("lost", "1"), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_the_last_part_without_suffix),
        cmocka_unit_test(other_characters_are_folded),
        cmocka_unit_test(a_number_fits_in_the_longest_name),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(a_record_comes_back_as_it_was),
        cmocka_unit_test(a_damaged_record_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
