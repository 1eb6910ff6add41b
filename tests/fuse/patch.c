/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves fuse/patch.c: a change of a key slot comes out as it went in, and what is none is refused.
 */

#include "fuse/patch.h"
#include "lib/test.h"
#include "volume/volume.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

static void every_change_comes_out_as_it_went_in(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (int what = KEY_PATCH_ADD; what <= KEY_PATCH_FLAGS; what++) {
        const size_t lens[] = {0, 1, 2, 255, 256, KEY_PATCH_MAX};

        for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            struct key_patch p = {.what = what, .slot = (unsigned)i, .force = i & 1}, q;
            struct json_object *o;

            p.len = lens[i];
            test_random_bytes(&seed, p.bytes, p.len);
            memset(&q, 0xff, sizeof(q));
            o = serve_patch_encode(&p);
            assert_int_equal(serve_patch_decode(&q, o, NULL), 0);
            json_object_put(o);
            assert_int_equal(q.what, p.what);
            assert_int_equal(q.slot, p.slot);
            assert_int_equal(q.force, p.force);
            assert_int_equal(q.len, p.len);
            assert_memory_equal(q.bytes, p.bytes, sizeof(p.bytes));
        }
    }
}

static void what_is_no_change_is_refused(void **state)
{
#define REST ",\"force\":false,\"bytes\":\"\"}"
    static const char *const bad[] = {
        "{}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false}",
        "{\"what\":\"add\",\"slot\":1,\"bytes\":\"\"}",
        "{\"what\":\"add\"" REST,
        "{\"slot\":1" REST,
        "{\"what\":\"\",\"slot\":1" REST,
        "{\"what\":\"mend\",\"slot\":1" REST,
        "{\"what\":1,\"slot\":1" REST,
        "{\"what\":null,\"slot\":1" REST,
        "{\"what\":\"add\",\"slot\":-1" REST,
        "{\"what\":\"add\",\"slot\":32" REST,
        "{\"what\":\"add\",\"slot\":4294967296" REST,
        "{\"what\":\"add\",\"slot\":9223372036854775807" REST,
        "{\"what\":\"add\",\"slot\":99999999999999999999" REST,
        "{\"what\":\"add\",\"slot\":1.5" REST,
        "{\"what\":\"add\",\"slot\":\"1\"" REST,
        "{\"what\":\"add\",\"slot\":[1]" REST,
        "{\"what\":\"add\",\"slot\":1,\"force\":1,\"bytes\":\"\"}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":7}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":\"A\"}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":\"AAA\"}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":\"AA==AA==\"}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":\"!!!!\"}",
        "{\"what\":\"add\",\"slot\":1,\"force\":false,\"bytes\":\"AA\\u0000A\"}",
    };
    struct key_patch p;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct json_object *o = json_tokener_parse(bad[i]);
        struct test_report said;

        test_report_init(&said);
        assert_non_null(o);
        if (serve_patch_decode(&p, o, &said.rep) != -EINVAL)
            fail_msg("accepted: %s", bad[i]);
        assert_int_equal(said.n_lines, 1);
        json_object_put(o);
    }
}

static void bytes_that_do_not_fit_are_refused(void **state)
{
    char text[4 * KEY_PATCH_MAX];
    struct json_object *o = json_tokener_parse("{\"what\":\"add\",\"slot\":1,\"force\":false}");
    struct key_patch p;

    (void)state;
    memset(text, 'A', sizeof(text));
    json_object_object_add(o, "bytes", json_object_new_string_len(text, sizeof(text)));
    assert_int_equal(serve_patch_decode(&p, o, NULL), -EINVAL);
    json_object_put(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_change_comes_out_as_it_went_in),
        cmocka_unit_test(what_is_no_change_is_refused),
        cmocka_unit_test(bytes_that_do_not_fit_are_refused),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
