/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include "conf/options.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* A fresh struct with words applied to it; what was said is in t. */
static int apply(struct conf_mount *m, struct test_report *t, const char *words)
{
    test_report_init(t);
    conf_mount_init(m);
    return conf_options_apply(m, words, &t->rep);
}

static void assert_same(const struct conf_mount *a, const struct conf_mount *b)
{
    assert_int_equal(a->vol.read_only, b->vol.read_only);
    assert_int_equal(a->vol.direct, b->vol.direct);
    assert_int_equal(a->vol.discard, b->vol.discard);
    assert_int_equal(a->vol.enospc_wait, b->vol.enospc_wait);
    assert_int_equal(a->vol.threads, b->vol.threads);
    assert_int_equal(a->vol.readahead, b->vol.readahead);
    assert_int_equal(a->vol.no_readahead, b->vol.no_readahead);
    assert_int_equal(a->vol.slot, b->vol.slot);
    assert_int_equal(a->serve.allow_root, b->serve.allow_root);
    assert_int_equal(a->serve.allow_other, b->serve.allow_other);
    assert_int_equal(a->serve.cache, b->serve.cache);
    assert_int_equal(a->serve.uid, b->serve.uid);
    assert_int_equal(a->serve.gid, b->serve.gid);
    assert_int_equal(a->serve.mode, b->serve.mode);
    assert_int_equal(a->vol.credential.n_keyfiles, b->vol.credential.n_keyfiles);
}

static void nothing_given_means_the_defaults(void **state)
{
    struct test_report t;
    struct conf_mount m;

    (void)state;
    assert_int_equal(apply(&m, &t, ""), 0);
    assert_false(m.vol.read_only);
    assert_int_equal(m.vol.direct, BLK_DIRECT_AUTO);
    assert_int_equal(m.vol.discard, VOL_DEFAULT);
    assert_int_equal(m.vol.enospc_wait, VOL_DEFAULT);
    assert_int_equal(m.vol.slot, KEY_SLOT_ANY);
    assert_int_equal(m.serve.uid, (uid_t)-1);
    assert_int_equal(m.serve.gid, (gid_t)-1);
    assert_int_equal(m.serve.mode, (mode_t)-1);
    assert_null(m.serve.name);
    conf_mount_done(&m);
}

static void every_word_sets_its_member_and_no_other(void **state)
{
    static const struct {
        const char *words;
        size_t at;
        size_t size;
        long long value;
    } rows[] = {
#define ROW(words, member, value)                                                                  \
    {words, offsetof(struct conf_mount, member), sizeof(((struct conf_mount *)0)->member), value}
        ROW("ro", vol.read_only, true),
        ROW("allow_root", serve.allow_root, true),
        ROW("allow_other", serve.allow_other, true),
        ROW("uid=1234", serve.uid, 1234),
        ROW("uid=root", serve.uid, 0),
        ROW("gid=4321", serve.gid, 4321),
        ROW("gid=root", serve.gid, 0),
        ROW("mode=0640", serve.mode, 0640),
        ROW("mode=400", serve.mode, 0400),
        ROW("threads=1", vol.threads, 1),
        ROW("threads=256", vol.threads, 256),
        ROW("readahead=off", vol.no_readahead, true),
        ROW("readahead=512K", vol.readahead, 512 * 1024),
        ROW("readahead=64M", vol.readahead, 64 * 1024 * 1024),
        ROW("slot=0", vol.slot, 0),
        ROW("slot=13", vol.slot, 13),
        ROW("cache", serve.cache, true),
        ROW("big-endian", vol.big_endian, true),
        ROW("direct=on", vol.direct, BLK_DIRECT_ON),
        ROW("direct=off", vol.direct, BLK_DIRECT_OFF),
        ROW("discard", vol.discard, VOL_YES),
        ROW("nodiscard", vol.discard, VOL_NO),
        ROW("enospc=wait", vol.enospc_wait, VOL_YES),
        ROW("enospc=error", vol.enospc_wait, VOL_NO),
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct conf_mount m, want;
        struct test_report t;

        conf_mount_init(&want);
        memcpy((char *)&want + rows[i].at, &rows[i].value, rows[i].size); /* little-endian */
        assert_int_equal(apply(&m, &t, rows[i].words), 0);
        assert_same(&m, &want);
        assert_int_equal(t.n_lines, 0);
        conf_mount_done(&m);
    }
}

static void strings_are_kept_and_a_comma_can_be_escaped(void **state)
{
    struct test_report t;
    struct conf_mount m;

    (void)state;
    assert_int_equal(apply(&m, &t,
                           "name=photos-1.x_y,header=/m/h\\,1,keyfile=/k/a\\,b,,keyfile=c=d,"
                           "keyfile-timeout=30,"
                           "passphrase-command=printf '%s\\n' a\\\\\\,b,"),
                     0);
    assert_string_equal(m.serve.name, "photos-1.x_y");
    assert_string_equal(m.vol.header, "/m/h,1");
    assert_int_equal(m.vol.credential.n_keyfiles, 2);
    assert_string_equal(m.vol.credential.keyfiles[0], "/k/a,b");
    assert_string_equal(m.vol.credential.keyfiles[1], "c=d");
    assert_int_equal(m.vol.credential.keyfile_timeout, 30);
    assert_string_equal(m.vol.credential.passphrase_command, "printf '%s\\n' a\\\\,b");
    conf_mount_done(&m);
}

static void later_words_win_and_later_lists_may_change_their_mind(void **state)
{
    struct test_report t;
    struct conf_mount m;

    (void)state;
    assert_int_equal(apply(&m, &t, "threads=2,threads=3,discard,allow_other,keyfile=a,name=one"),
                     0);
    assert_int_equal(m.vol.threads, 3);
    assert_int_equal(conf_options_apply(&m, "passphrase-file=p", &t.rep), 0);
    assert_int_equal(conf_options_apply(&m, "nodiscard,allow_root,keyfile=b", &t.rep), 0);
    assert_int_equal(conf_options_apply(&m, "passphrase-command=c", &t.rep), 0);
    assert_int_equal(m.vol.discard, VOL_NO);
    assert_true(m.serve.allow_root);
    assert_false(m.serve.allow_other);
    assert_null(m.vol.credential.passphrase_file);
    assert_string_equal(m.vol.credential.passphrase_command, "c");
    assert_int_equal(conf_options_apply(&m, "ask-passphrase", &t.rep), 0);
    assert_true(m.vol.credential.ask);
    assert_null(m.vol.credential.passphrase_command);
    assert_string_equal(m.vol.credential.keyfiles[0], "a");
    assert_string_equal(m.vol.credential.keyfiles[1], "b");
    assert_string_equal(m.serve.name, "one");
    conf_mount_done(&m);
}

static void words_of_mount_and_fstab_are_ignored(void **state)
{
    struct conf_mount m, none;
    struct test_report t;

    (void)state;
    conf_mount_init(&none);
    assert_int_equal(apply(&m, &t,
                           "defaults,auto,noauto,nofail,_netdev,user,nouser,users,owner,group,rw,"
                           "nosuid,nodev,noexec,x-systemd.automount,x-a=b,user=ann"),
                     0);
    assert_same(&m, &none);
    assert_int_equal(t.n_lines, 0);
    conf_mount_done(&m);
}

static void wrong_words_are_refused_and_named(void **state)
{
    static const struct {
        const char *words, *said;
    } rows[] = {
        {"heading=x", "\"heading\""},
        {"heading=x", "there are: ro, allow_root, allow_other, uid=, "},
        {"heading=/x", "\"heading\""},
        {"RO", "\"RO\""},
        {"ro=1", "option ro takes no value"},
        {"uid", "option uid needs a value: uid=USER"},
        {"uid=", "option uid needs a value: uid=USER"},
        {"uid=no-such-user-here", "\"no-such-user-here\""},
        {"uid=-1", "\"-1\""},
        {"uid=4294967295", "option uid takes"},
        {"gid=no-such-group-here", "option gid takes"},
        {"mode=0800", "option mode takes octal"},
        {"mode=1777", "option mode takes octal"},
        {"mode=rw", "\"rw\""},
        {"threads=0", "from 1 to 256"},
        {"threads=257", "from 1 to 256"},
        {"readahead=511K", "off or a size"},
        {"readahead=65M", "off or a size"},
        {"readahead=on", "off or a size"},
        {"readahead=0", "off or a size"},
        {"threads=2x", "\"2x\""},
        {"threads= 2", "\" 2\""},
        {"keyfile-timeout=1m", "seconds, up to 86400"},
        {"keyfile-timeout=86401", "seconds, up to 86400"},
        {"slot=-1", "number of a key slot"},
        {"slot=99999999999999999999", "number of a key slot"},
        {"direct", "direct=auto|on|off"},
        {"direct=yes", "auto, on or off"},
        {"enospc=panic", "wait or error"},
        {"name=../x", "a-z 0-9"},
        {"name=..", "begins with"},
        {"name=-x", "begins with"},
        {"name=a/b", "a-z 0-9"},
        {"name=A", "a-z 0-9"},
        {"name=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "up to 64"},
        {"allow_root,allow_other", "options allow_root and allow_other exclude each other"},
        {"discard,ro,nodiscard", "options discard and nodiscard exclude"},
        {"passphrase-file=a,passphrase-command=b", "exclude each other"},
        {"passphrase-file=a,ask-passphrase", "exclude each other"},
        {"ask-passphrase=yes", "takes no value"},
        {"keyfile=1,keyfile=2,keyfile=3,keyfile=4,keyfile=5,keyfile=6,keyfile=7,keyfile=8,keyfile="
         "9",
         "more than 8 key files"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct test_report t;
        struct conf_mount m;

        assert_int_equal(apply(&m, &t, rows[i].words), -EINVAL);
        assert_int_equal(t.n_lines, 1);
        if (!test_report_has(&t, rows[i].said))
            fail_msg("\"%s\" said \"%s\"", rows[i].words, t.line[0]);
        conf_mount_done(&m);
    }
}

static void a_word_is_known_whatever_its_value(void **state)
{
    (void)state;
    assert_true(conf_options_knows("ro"));
    assert_true(conf_options_knows("ro=1"));
    assert_true(conf_options_knows("threads=many"));
    assert_true(conf_options_knows("x-systemd.automount"));
    assert_true(conf_options_knows("defaults"));
    assert_false(conf_options_knows("compress=zstd"));
    assert_false(conf_options_knows(""));
}

static void the_help_has_every_word(void **state)
{
    unsigned n = 0;

    (void)state;
    while (conf_options_help(n) != NULL) {
        assert_non_null(conf_options_help(n)->name);
        assert_non_null(conf_options_help(n)->help);
        n++;
    }
    assert_int_equal(n, 22);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_given_means_the_defaults),
        cmocka_unit_test(every_word_sets_its_member_and_no_other),
        cmocka_unit_test(strings_are_kept_and_a_comma_can_be_escaped),
        cmocka_unit_test(later_words_win_and_later_lists_may_change_their_mind),
        cmocka_unit_test(words_of_mount_and_fstab_are_ignored),
        cmocka_unit_test(wrong_words_are_refused_and_named),
        cmocka_unit_test(a_word_is_known_whatever_its_value),
        cmocka_unit_test(the_help_has_every_word),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
