/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/all.h"

/* key change --login: after a user's password has changed, the volumes that it opens change too. */

#include "base/auto.h"
#include "base/run.h"
#include "cli/key.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What the new key may cost, in the words of the options. */
struct kdf_words {
    char memory[24], time[24], iterations[24];
};

static void add_kdf(struct cmd_argv *a, struct kdf_words *words, const struct kdf_request *kdf)
{
    const uint32_t passes = kdf->iterations == KDF_NO_PASSES ? 0 : kdf->iterations;

    snprintf(words->memory, sizeof(words->memory), "%" PRIu64, kdf->memory);
    snprintf(words->time, sizeof(words->time), "%" PRIu32, kdf->time_ms);
    snprintf(words->iterations, sizeof(words->iterations), "%" PRIu32, passes);
    if (kdf->memory != 0)
        cmd_argv_add_option(a, "--kdf-memory", words->memory);
    if (kdf->time_ms != 0)
        cmd_argv_add_option(a, "--kdf-time", words->time);
    if (kdf->iterations != 0)
        cmd_argv_add_option(a, "--kdf-iterations", words->iterations);
}

static int change_one(const struct cmd_volume *v, const struct secret *lines,
                      const struct key_words *w, struct report *rep)
{
    struct cmd_argv a = {.words = {RUN_SELF, "key", "change", v->said->name}, .n = 4};
    struct kdf_words kdf;

    if (w->verbose)
        cmd_argv_add(&a, "--verbose");
    add_kdf(&a, &kdf, &w->kdf);
    cmd_argv_add_option(&a, "--passphrase-file", "-");
    cmd_argv_add_keyfiles(&a, "--keyfile", v);
    cmd_argv_add_option(&a, "--new-passphrase-file", "-");
    cmd_argv_add_keyfiles(&a, "--new-keyfile", v);
    return run_feed_in(CMD_ALL_FOLDER, a.words, lines, RUN_SHOW, rep);
}

static int read_line(struct credential *ret, const struct credential_source *from,
                     struct report *rep)
{
    int r = credential_read(ret, from, rep);

    return r < 0 ? r : cmd_all_check_line(&ret->passphrase, rep);
}

/* The old and the new one as two lines, of which run_feed ends the second. */
static int read_lines(struct secret *ret, const struct key_words *w, struct report *rep)
{
    AUTO_CREDENTIAL struct credential old = {0}, new = {0};
    int r = read_line(&old, &w->key, rep);

    if (r == 0)
        r = read_line(&new, &w->new_key, rep);
    if (r == 0)
        r = secret_make(ret, old.passphrase.len + 1 + new.passphrase.len);
    if (r < 0)
        return r;
    memcpy(ret->bytes, old.passphrase.bytes, old.passphrase.len);
    ret->bytes[old.passphrase.len] = '\n';
    memcpy(ret->bytes + old.passphrase.len + 1, new.passphrase.bytes, new.passphrase.len);
    return 0;
}

static bool is_to_change(const struct cmd_volume *v)
{
    return v->chosen && v->needs_passphrase;
}

int cmd_key_change_all(const struct key_words *w, struct report *rep)
{
    AUTO_SECRET struct secret lines = {0};
    AUTO_VOLUMES struct cmd_volumes all = {0};
    AUTO_FD int turn = -1;
    unsigned n = 0;
    int r = cmd_volumes_choose(&all, &w->which, rep);

    for (unsigned i = 0; r == 0 && i < all.n; i++)
        n += is_to_change(&all.list[i]);
    if (r == 0 && n > 0)
        r = read_lines(&lines, w, rep);
    if (r < 0 || n == 0)
        return r;
    turn = cmd_all_turn(rep);
    if (turn < 0)
        return turn;
    for (unsigned i = 0; i < all.n; i++)
        if (is_to_change(&all.list[i]) && change_one(&all.list[i], &lines, w, rep) != 0)
            r = -EIO;
    return r;
}
