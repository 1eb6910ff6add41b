/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/named.h"

#include "cli/owner.h"
#include "conf/files.h"
#include "fuse/record.h"

#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Read once, when the first name needs it. */
static struct conf *config;

/* Something that is there. A folder is no container: who stands in ~ and says "mount photos" means
 * the volume of that name and not its mountpoint ~/photos. */
static bool is_path(const char *word)
{
    struct stat st;

    return lstat(word, &st) == 0 && !(stat(word, &st) == 0 && S_ISDIR(st.st_mode));
}

int cmd_named(const struct conf_volume **ret, const char *word, struct report *rep)
{
    int r;

    if (!serve_name_valid(word) || is_path(word))
        return 0;
    if (config == NULL) {
        r = conf_read(&config, rep);
        if (r < 0)
            return r;
    }
    *ret = conf_find(config, word);
    return *ret != NULL;
}

static bool is_given(const struct credential_source *s)
{
    return s->passphrase_file != NULL || s->passphrase_command != NULL || s->ask ||
           s->n_keyfiles > 0;
}

static void take_key(struct credential_source *key, const struct credential_source *from)
{
    key->passphrase_file = from->passphrase_file;
    key->passphrase_command = from->passphrase_command;
    key->ask = from->ask;
    key->n_keyfiles = from->n_keyfiles;
    memcpy(key->keyfiles, from->keyfiles, sizeof(key->keyfiles));
    if (key->keyfile_timeout == 0)
        key->keyfile_timeout = from->keyfile_timeout;
}

int cmd_named_container(const char **word, const char **header, struct credential_source *key,
                        struct report *rep)
{
    static struct conf_mount words; /* holds the texts that *key and *header then point to */
    const struct conf_volume *v;
    int r = cmd_named(&v, *word, rep);

    if (r <= 0)
        return r;
    r = cmd_owner_become(v, NULL, rep);
    if (r < 0)
        return r;
    conf_mount_done(&words);
    r = conf_volume_apply(&words, v, rep);
    if (r < 0)
        return r;
    *word = v->container;
    if (header != NULL && *header == NULL)
        *header = words.vol.header;
    if (key != NULL && !is_given(key))
        take_key(key, &words.vol.credential);
    return 0;
}

bool cmd_named_is_ours(const struct conf_volume *v)
{
    const struct passwd *owner;

    if (v->owner == NULL)
        return !v->system || geteuid() == 0;
    owner = getpwnam(v->owner);
    return owner != NULL && owner->pw_uid == geteuid();
}
