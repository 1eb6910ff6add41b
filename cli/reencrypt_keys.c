/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/reencrypt.h"

/* A slot goes only when somebody was told, and nothing is written before all of them are settled: a
 * passphrase mistyped here must not cost the slot that it is for. */

#include "base/report_held.h"
#include "cli/confirm.h"
#include "cli/credential_options.h"
#include "cli/key.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct credential_source *next_source(struct reencrypt_words *w)
{
    struct credential_source *src;

    if (w->n_keep == KEY_SLOTS_MAX)
        return NULL;
    src = &w->keep[w->n_keep++];
    *src = (struct credential_source){.prefix = "keep-"};
    return src;
}

int reencrypt_keep_option(const struct command *c, int opt, const char *arg,
                          struct reencrypt_words *w)
{
    bool more = opt == REENCRYPT_OPT_KEEP_AND;
    struct credential_source *src;

    if (opt < REENCRYPT_OPT_KEEP_PASSPHRASE || opt > REENCRYPT_OPT_KEEP_AND)
        return 0;
    if (more && w->n_keep == 0)
        return cmd_usage(c, "--keep-and-keyfile stands behind the --keep- option of its slot");
    src = more ? &w->keep[w->n_keep - 1] : next_source(w);
    if (src == NULL)
        return cmd_usage(c, "more than %d slots to keep", KEY_SLOTS_MAX);
    return cmd_credential_option(
        c, opt == REENCRYPT_OPT_KEEP_PASSPHRASE ? CMD_OPT_PASSPHRASE_FILE : CMD_OPT_KEYFILE, arg,
        src, NULL);
}

void reencrypt_kept_done(struct reencrypt_kept *k)
{
    for (unsigned i = 0; i < k->n; i++)
        credential_done(&k->creds[i]);
    *k = (struct reencrypt_kept){0};
}

static bool is_kept(const struct reencrypt_kept *k, unsigned slot)
{
    for (unsigned i = 0; i < k->n; i++)
        if (k->keep[i].slot == slot)
            return true;
    return false;
}

/* Takes cred over. */
static void add(struct reencrypt_kept *k, unsigned slot, struct credential *cred)
{
    if (is_kept(k, slot) || k->n == KEY_SLOTS_MAX) {
        credential_done(cred);
        return;
    }
    k->creds[k->n] = *cred;
    k->keep[k->n] = (struct key_keep){.slot = slot, .cred = &k->creds[k->n]};
    k->n++;
    *cred = (struct credential){0};
}

/* Which slot does cred open? Returns it. */
static int try_open(struct key_container *c, const struct credential *cred, int slot,
                    struct report *rep)
{
    AUTO_KEY_VOLUME struct key_volume v = {0};
    int r = c->format->unlock(c->store, cred, slot, &v, rep);

    return r < 0 ? r : (int)v.slot;
}

static int add_named(struct reencrypt_kept *k, struct key_container *c,
                     const struct credential_source *src, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    int r = credential_read(&cred, src, rep);

    if (r == 0)
        r = try_open(c, &cred, KEY_SLOT_ANY, rep);
    if (r < 0)
        return r;
    add(k, (unsigned)r, &cred);
    return 0;
}

/* One entry for the passphrase of a slot. 1 it stays, 0 Enter said that it may go, -EKEYREJECTED it
 * does not open, -ENXIO nobody is there to ask: these without words. */
static int ask_once(struct reencrypt_kept *k, struct key_container *c, unsigned slot,
                    const struct credential_source *src, struct report *rep)
{
    AUTO_CREDENTIAL struct credential cred = {0};
    struct report_held held;
    int r;

    report_held_init(&held, rep); /* hints at what was typed are heard at once */
    r = credential_read(&cred, src, &held.rep);
    if (r == -EINVAL)
        return 0;
    if (r == 0)
        r = try_open(c, &cred, (int)slot, &held.rep);
    if (r >= 0)
        add(k, slot, &cred);
    else if (r != -ENXIO && r != -EKEYREJECTED)
        report_held_say(&held);
    return r < 0 ? r : 1;
}

/* The same, with more than one try; every error but -ENXIO is said. */
static int ask_slot(struct reencrypt_kept *k, struct key_container *c,
                    const struct key_slot_info *slot, struct report *rep)
{
    char prompt[REPORT_LINE];
    const struct credential_source src = {.prompt = prompt};

    snprintf(prompt, sizeof(prompt), "Passphrase of key slot %u%s%s%s (Enter: the slot goes)",
             slot->index, slot->label[0] != '\0' ? ", \"" : "", slot->label,
             slot->label[0] != '\0' ? "\"" : "");
    for (unsigned n = 0; n < KEY_TRIES; n++) {
        int r = ask_once(k, c, slot->index, &src, rep);

        if (r != -EKEYREJECTED)
            return r;
        report_warn(rep, "key slot %u does not open with this passphrase", slot->index);
    }
    return report_error(rep, EKEYREJECTED, "key slot %u does not open, nothing was changed",
                        slot->index);
}

static int ask_others(struct reencrypt_kept *k, struct key_container *c,
                      const struct key_slot_info *slots, int n, struct report *rep)
{
    for (int i = 0; i < n; i++) {
        int r;

        if (is_kept(k, slots[i].index) || slots[i].kind != KEY_SLOT_PASSPHRASE)
            continue;
        r = ask_slot(k, c, &slots[i], rep);
        if (r == -ENXIO)
            return 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* Slots that nobody opened do not go without a word. */
static int confirm_removal(const struct reencrypt_kept *k, const struct key_slot_info *slots, int n,
                           bool yes, const char *name, struct report *rep)
{
    char question[REPORT_LINE], list[REPORT_LINE / 2] = "";
    size_t at = 0;
    int r;

    for (int i = 0; i < n; i++) {
        if (is_kept(k, slots[i].index))
            continue;
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%u (%s%s%s)", at > 0 ? ", " : "",
                               slots[i].index, key_kind_text(slots[i].kind),
                               slots[i].label[0] != '\0' ? ", " : "", slots[i].label);
        if (at >= sizeof(list))
            at = sizeof(list) - 1;
    }
    if (at == 0)
        return 0;
    snprintf(question, sizeof(question),
             "What opens these key slots of %s was not given, so they will be removed: %s.", name,
             list);
    r = cmd_confirm(yes, question, "yes", rep);
    if (r == -EINVAL) /* nobody has seen what it was about */
        report_warn(rep, "%s Give what opens them with --keep- options, or answer with --yes.",
                    question);
    return r;
}

int reencrypt_collect(struct reencrypt_kept *kept, struct key_container *c, unsigned slot,
                      struct credential *opened, const struct reencrypt_words *w, bool yes,
                      const char *name, struct report *rep)
{
    struct key_slot_info slots[KEY_SLOTS_MAX];
    int r = 0, n;

    add(kept, slot, opened);
    for (unsigned i = 0; i < w->n_keep && r == 0; i++)
        r = add_named(kept, c, &w->keep[i], rep);
    if (r < 0)
        return r;
    n = c->format->slots(c->store, slots, KEY_SLOTS_MAX, NULL);
    if (n > 0 && !yes)
        r = ask_others(kept, c, slots, n, rep);
    return r < 0 ? r : confirm_removal(kept, slots, n, yes, name, rep);
}
