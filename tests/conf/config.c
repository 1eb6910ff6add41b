/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves conf/config.h, ini.h and expand.h: every key arrives, with the line that says it; faults
 * are named by file, line and key. No file is opened but by iniparser. */

#include "conf/config.h"
#include "conf/expand.h"
#include "conf/ini.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct test_report t;

/* The configuration of a system file and a user's own; NULL is none. */
static int read_two(struct conf **ret, const char *system, const char *own)
{
    struct conf *c;
    int r, status = 0;

    test_report_init(&t);
    assert_int_equal(conf_new(&c), 0);
    if (system != NULL)
        status = conf_add(c, "sys", true, system, strlen(system), &t.rep);
    r = own != NULL ? conf_add(c, "own", false, own, strlen(own), &t.rep) : 0;
    status = status < 0 ? status : r;
    if (status == 0)
        status = conf_settle(c, &t.rep);
    if (status < 0)
        conf_free(c);
    else
        *ret = c;
    return status;
}

static struct conf *read_good(const char *system, const char *own)
{
    struct conf *c = NULL;

    if (read_two(&c, system, own) < 0)
        fail_msg("refused: %s", t.n_lines > 0 ? t.line[0] : "without a word");
    assert_int_equal(t.n_lines, 0);
    return c;
}

static const struct conf_said *said(const struct conf_volume *v, const char *key)
{
    for (unsigned i = 0; i < v->n_said; i++)
        if (strcmp(v->said[i].key, key) == 0)
            return &v->said[i];
    fail_msg("%s says nothing of %s", v->name, key);
    return NULL;
}

#define IN_VOLUME "[volume v]\ncontainer = /c\n"

static void faults_are_named_by_file_line_and_key(void **state)
{
    static const struct {
        const char *text, *message;
    } bad[] = {
        {IN_VOLUME "colour = red\n", "own:3: unknown key \"colour\" (there are: container, mount"},
        {IN_VOLUME "container = /d\n", "own:3: container is in line 2 already"},
        {IN_VOLUME IN_VOLUME, "own:3: this section is in line 1 already"},
        {"[defaults]\n[defaults]\n", "own:2: this section is in line 1 already"},
        {IN_VOLUME "threads = many\n", "own:3: option threads takes a number from 1 to 256, not"},
        {IN_VOLUME "enospc = panic\n", "own:3: option enospc takes wait or error, not \"panic\""},
        {IN_VOLUME "direct = maybe\n", "own:3: option direct takes auto, on or off"},
        {IN_VOLUME "ro = true\n", "own:3: ro takes yes or no, not \"true\""},
        {IN_VOLUME "login = 1\n", "own:3: login takes yes or no, not \"1\""},
        {IN_VOLUME "filesystem = ext4\n", "own:3: filesystem takes auto"},
        {IN_VOLUME "filesystem = auto\n", "own:1: volume v: filesystem = auto needs a mountpoint"},
        {IN_VOLUME "mountpoint = mnt\n", "own:3: mountpoint takes a path that begins with / or ~"},
        {IN_VOLUME "keyfile = ${HOME}/k\n", "own:3: keyfile: ${} takes XDG_CONFIG_HOME"},
        {IN_VOLUME "keyfile = /%d\n", "own:3: keyfile: % is followed by u"},
        {IN_VOLUME "owner = root\n", "own:3: owner is for the files in /etc only"},
        {IN_VOLUME "after = w\n", "own:1: volume v: after names no volume: \"w\""},
        {IN_VOLUME "after = v\n", "own:1: volume v waits for itself by after = v"},
        {IN_VOLUME "discard = yes\nnodiscard = yes\n",
         "own:4: nodiscard = yes and discard = yes in own:3 exclude each other"},
        {IN_VOLUME "discard = no\nnodiscard = no\n", "own:4: nodiscard = no and discard = no in"},
        {"[defaults]\nallow_root = yes\nallow_other = yes\n",
         "own:3: allow_other = yes and allow_root = yes in own:2 exclude each other"},
        {IN_VOLUME "keyfile =\n", "own:3: keyfile has no value"},
        {IN_VOLUME "keyfile = ; none\n", "own:3: keyfile has no value"},
        {IN_VOLUME "keyfile = \"/a\n", "own:3: keyfile: something between quotes"},
        {IN_VOLUME "keyfile = \"/a\" b\n", "own:3: keyfile: something between quotes"},
        {IN_VOLUME "keyfile = /a#2\n",
         "own:3: keyfile: a value with # in it needs quotes, a comment a blank before it"},
        {IN_VOLUME "keyfile = /a; none\n", "own:3: keyfile: a value with ; in it needs quotes"},
        {IN_VOLUME "keyfile = /a\r/b\n", "own:3: a control character"},
        {IN_VOLUME "keyfile\n", "own:3: a line is KEY = VALUE"},
        {IN_VOLUME "Keyfile = /a\n", "own:3: a key is of a-z 0-9 _ -"},
        {IN_VOLUME "keyfile = /a \\\n", "own:3: a line does not go on in the next"},
        {IN_VOLUME "keyfile = /a\001\n", "own:3: a control character"},
        {"[volume v]\nkeyfile = /k\n", "own:1: volume v has no container = PATH"},
        {"[volume Photos]\n", "own:1: the name of a volume is up to 64 of a-z 0-9"},
        {"[volume ../x]\n", "own:1: the name of a volume is up to 64 of a-z 0-9"},
        {"[volume ]\n", "own:1: the name of a volume is up to 64 of a-z 0-9"},
        {"[photos]\n", "own:1: there are the sections [defaults] and [volume NAME]"},
        {"[volume v\n", "own:1: a section ends in ]"},
        {"ro = yes\n", "own:1: a setting before the first [section]"},
        {"[defaults]\ncontainer = /c\n", "own:2: container is for a [volume NAME]"},
        {"[defaults]\nthreads = 0\n", "own:2: option threads takes a number"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct conf *c;

        if (read_two(&c, NULL, bad[i].text) != -EUCLEAN)
            fail_msg("taken: %s", bad[i].text);
        if (!test_report_has(&t, bad[i].message))
            fail_msg("no \"%s\" but \"%s\"", bad[i].message, t.n_lines > 0 ? t.line[0] : "");
    }
}

static void every_fault_of_a_text_is_said(void **state)
{
    struct conf *c;

    (void)state;
    assert_int_equal(read_two(&c, NULL, "x\n[volume v]\ny\n[z]\nkeyfile=\n"), -EUCLEAN);
    assert_int_equal(t.n_lines, 3); /* what is in a section that is not one says no more */
    assert_int_equal(read_two(&c, NULL, IN_VOLUME "a=1\nb=2\nro=on\nslot=x\n"), -EUCLEAN);
    assert_int_equal(t.n_lines, 4);
}

static void one_name_is_in_one_system_file(void **state)
{
    struct conf *c;

    (void)state;
    test_report_init(&t);
    assert_int_equal(conf_new(&c), 0);
    assert_int_equal(conf_add(c, "a", true, IN_VOLUME, strlen(IN_VOLUME), &t.rep), 0);
    assert_int_equal(conf_add(c, "b", true, IN_VOLUME, strlen(IN_VOLUME), &t.rep), 0);
    assert_int_equal(conf_settle(c, &t.rep), -EUCLEAN);
    assert_true(test_report_has(&t, "b:1: volume v is in a:1 already"));
    conf_free(c);
}

static void every_key_arrives_with_its_line(void **state)
{
    static const struct {
        const char *key, *value, *wanted; /* NULL: as it is */
    } all[] = {
        {"container", "\"/srv/a;b#c.hv\"  ; quoted", "/srv/a;b#c.hv"},
        {"mountpoint", "/mnt/%u-%%", "/mnt/root-%"},
        {"filesystem", "auto", NULL},
        {"login", "yes", NULL},
        {"owner", "root", NULL},
        {"after", "w", NULL},
        {"ro", "yes", NULL},
        {"allow_root", "yes", NULL},
        {"allow_other", "no", NULL},
        {"uid", "12", NULL},
        {"gid", "34", NULL},
        {"mode", "0640", NULL},
        {"keyfile", "~/a, b", "/root/a, b"},
        {"keyfile-timeout", "9", NULL},
        {"passphrase-file", "/p", NULL},
        {"ask-passphrase", "no", NULL},
        {"header", "%h/h", "/root/h"},
        {"slot", "3", NULL},
        {"threads", "2", NULL},
        {"readahead", "1M", NULL},
        {"cache", "yes", NULL},
        {"direct", "off", NULL},
        {"discard", "no", NULL},
        {"enospc", "error", NULL},
        {"name", "other", NULL},
    };
    const unsigned n = sizeof(all) / sizeof(all[0]);
    const struct conf_volume *v;
    struct conf_mount m;
    struct conf *c;
    char text[4096];
    size_t len = (size_t)sprintf(text, "# all of them\n[volume w]\ncontainer=/w\n[volume v]\n");

    (void)state;
    for (unsigned i = 0; i < n; i++)
        len += (size_t)sprintf(text + len, "%s = %s\n", all[i].key, all[i].value);
    c = read_good(text, NULL);
    v = conf_find(c, "v");
    assert_non_null(v);
    assert_int_equal(v->line, 4);
    assert_int_equal(v->n_said, n);
    for (unsigned i = 0; i < n; i++) {
        const struct conf_said *s = said(v, all[i].key);

        assert_string_equal(s->value, all[i].wanted != NULL ? all[i].wanted : all[i].value);
        assert_int_equal(s->line, 5 + i);
        assert_string_equal(s->file, "sys");
    }
    assert_string_equal(v->container, "/srv/a;b#c.hv");
    assert_string_equal(v->after, "w");
    assert_true(v->login && v->filesystem && v->system);
    conf_mount_init(&m);
    assert_int_equal(conf_volume_apply(&m, v, &t.rep), 0);
    assert_true(m.vol.read_only && m.serve.allow_root && !m.serve.allow_other && m.serve.cache);
    assert_int_equal(m.serve.uid, 12);
    assert_int_equal(m.vol.slot, 3);
    assert_int_equal(m.vol.discard, VOL_NO);
    assert_string_equal(m.serve.name, "other");
    assert_string_equal(m.vol.credential.keyfiles[0], "/root/a, b");
    assert_string_equal(m.vol.header, "/root/h");
    conf_mount_done(&m);
    conf_free(c);
}

/* The test above names all words but the one that excludes another of it. */
static void a_word_of_the_options_is_a_key(void **state)
{
    const struct conf_word_help *w;

    (void)state;
    for (unsigned i = 0; (w = conf_options_help(i)) != NULL; i++) {
        char text[200];
        struct conf *c = NULL;

        snprintf(text, sizeof(text), IN_VOLUME "%s = ?\n", w->name);
        if (read_two(&c, NULL, text) == 0) /* a value that is one */
            assert_string_equal(said(conf_find(c, "v"), w->name)->value, "?");
        conf_free(c);
        assert_false(test_report_has(&t, "unknown key"));
    }
}

static void a_volume_overrules_its_defaults(void **state)
{
    static const char system[] = "[defaults]\nro = yes\nthreads = 2\nkeyfile = /sys\n"
                                 "nodiscard = yes\n";
    static const char own[] = "[defaults]\nthreads = 3\n[volume v]\ncontainer = /c\nro = no\n"
                              "discard = yes\n";
    struct conf *c = read_good(system, own);
    const struct conf_volume *v = conf_find(c, "v");
    struct conf_mount m;

    (void)state;
    conf_mount_init(&m);
    assert_int_equal(conf_volume_apply(&m, v, &t.rep), 0);
    assert_false(m.vol.read_only);
    assert_int_equal(m.vol.threads, 3);
    assert_int_equal(m.vol.discard, VOL_YES);
    assert_string_equal(m.serve.name, "v");
    assert_string_equal(said(v, "keyfile")->file, "sys");
    assert_int_equal(said(v, "keyfile")->line, 4);
    assert_string_equal(said(v, "threads")->file, "own");
    conf_mount_done(&m);
    conf_free(c);
}

static void what_excludes_a_default_takes_its_place(void **state)
{
    static const char system[] = "[defaults]\nallow_other = yes\ndiscard = no\n"
                                 "passphrase-file = /sys\n";
    static const char own[] =
        "[defaults]\npassphrase-command = pass\n" IN_VOLUME "allow_root = yes\nnodiscard = no\n"
        "[volume w]\ncontainer = /w\nallow_root = no\n";
    struct conf *c = read_good(system, own);
    const struct conf_volume *v = conf_find(c, "v"), *w = conf_find(c, "w");

    (void)state;
    assert_int_equal(v->n_said, 4); /* nothing of the system's is left */
    assert_string_equal(said(v, "passphrase-command")->file, "own");
    assert_string_equal(said(v, "allow_root")->value, "yes");
    assert_string_equal(said(v, "nodiscard")->value, "no");
    assert_string_equal(said(w, "allow_other")->value, "yes"); /* a no excludes nothing */
    conf_free(c);
}

static void a_users_volume_stands_for_the_systems(void **state)
{
    struct conf *c = read_good("[volume v]\ncontainer = /sys\nthreads = 2\n", IN_VOLUME);

    (void)state;
    assert_string_equal(conf_find(c, "v")->container, "/c");
    assert_int_equal(conf_find(c, "v")->n_said, 1);
    assert_null(conf_volume(c, 1));
    assert_null(conf_find(c, "w"));
    conf_free(c);
}

static void circles_of_after_are_refused(void **state)
{
    struct conf *c;

    (void)state;
    assert_int_equal(read_two(&c, NULL,
                              "[volume a]\ncontainer=/a\nafter=b\n[volume b]\ncontainer=/b\n"
                              "after=c\n[volume c]\ncontainer=/c\nafter=b\n"),
                     -EUCLEAN);
    assert_true(test_report_has(&t, "waits for itself"));
}

static void limits_hold(void **state)
{
    static char big[CONF_TEXT_MAX + 2];
    struct conf *c;
    size_t len = 0;

    (void)state;
    memset(big, '\n', sizeof(big) - 1);
    assert_int_equal(read_two(&c, NULL, big), -EUCLEAN);
    assert_true(test_report_has(&t, "own: more than 1 MiB"));
    memset(big, 'a', 1001);
    big[1001] = '\0';
    assert_int_equal(read_two(&c, NULL, big), -EUCLEAN);
    assert_true(test_report_has(&t, "own:1: a line has up to 1000 bytes"));
    for (unsigned i = 0; i <= CONF_SETTINGS_MAX / 2; i++)
        len += (size_t)sprintf(big + len, "[volume v%u]\ncontainer=/c\n", i);
    assert_int_equal(read_two(&c, NULL, big), -EUCLEAN);
    assert_true(test_report_has(&t, "more than 1024 settings"));
}

static void places_of_a_user_are_put_in(void **state)
{
    AUTO_CONF_USER struct conf_user u = {0};
    static const char *const pairs[][2] = {
        {"~", "/root"},
        {"~/x", "/root/x"},
        {"~x", "~x"},
        {"/a~", "/a~"},
        {"/%u/%h%%", "/root//root%"},
        {"${XDG_DATA_HOME}/v", "/root/.local/share/v"},
        {"${XDG_RUNTIME_DIR}", "/run/user/0"},
        {"$HOME", "$HOME"},
    };

    (void)state;
    assert_int_equal(conf_user_named(&u, "root"), 0);
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        char *out = NULL;
        const char *why;

        assert_int_equal(conf_expand(&out, pairs[i][0], &u, &why), 0);
        assert_string_equal(out, pairs[i][1]);
        free(out);
    }
    assert_int_equal(conf_user_named(&u, "no such user"), -ENOENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_are_named_by_file_line_and_key),
        cmocka_unit_test(every_fault_of_a_text_is_said),
        cmocka_unit_test(one_name_is_in_one_system_file),
        cmocka_unit_test(every_key_arrives_with_its_line),
        cmocka_unit_test(a_word_of_the_options_is_a_key),
        cmocka_unit_test(a_volume_overrules_its_defaults),
        cmocka_unit_test(what_excludes_a_default_takes_its_place),
        cmocka_unit_test(a_users_volume_stands_for_the_systems),
        cmocka_unit_test(circles_of_after_are_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(places_of_a_user_are_put_in),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
