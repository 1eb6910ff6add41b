/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/credential_options.h"

/* Contradictions are found here, where the words are still options that the user typed; what is in
 * the files, and whether they can be read, is credential_read()'s. */

#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A passphrase comes from one place. prefix is "new-" or nothing. */
static int check_passphrase(const struct command *c, const struct credential_source *src,
                            const char *prefix)
{
    if (src->passphrase_file != NULL && src->passphrase_command != NULL)
        return cmd_usage(c, "--%spassphrase-file and --%spassphrase-command exclude each other",
                         prefix, prefix);
    if (src->ask && (src->passphrase_file != NULL || src->passphrase_command != NULL))
        return cmd_usage(c, "--%sask-passphrase and --%spassphrase-%s exclude each other", prefix,
                         prefix, src->passphrase_file != NULL ? "file" : "command");
    return 1;
}

static int set_passphrase(const struct command *c, const char **to, const char *arg,
                          const char *prefix)
{
    if (arg[0] == '\0')
        return cmd_usage(c, "--%spassphrase-file and -command need a value", prefix);
    *to = arg;
    return 1;
}

/* The first, or behind those that are there. */
static int add_passphrase_file(const struct command *c, struct credential_source *src,
                               const char *arg, const char *prefix)
{
    if (src->passphrase_file == NULL)
        return set_passphrase(c, &src->passphrase_file, arg, prefix);
    if (src->n_more_passphrase_files == CREDENTIAL_PASSPHRASE_FILES - 1)
        return cmd_usage(c, "more than %d passphrase files", CREDENTIAL_PASSPHRASE_FILES);
    return set_passphrase(c, &src->more_passphrase_files[src->n_more_passphrase_files++], arg,
                          prefix);
}

static int set_ask(struct credential_source *src)
{
    src->ask = true;
    return 1;
}

static int add_keyfile(const struct command *c, struct credential_source *src, const char *arg)
{
    if (arg[0] == '\0')
        return cmd_usage(c, "the name of a key file is empty");
    if (src->n_keyfiles == CREDENTIAL_KEYFILES)
        return cmd_usage(c, "more than %u key files", CREDENTIAL_KEYFILES);
    src->keyfiles[src->n_keyfiles++] = arg;
    return 1;
}

static int set_timeout(const struct command *c, struct credential_source *src,
                       struct credential_source *new_src, const char *arg)
{
    char *end;
    unsigned long v = strtoul(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || v > CREDENTIAL_TIMEOUT_MAX)
        return cmd_usage(c, "--keyfile-timeout takes seconds, up to %d, not \"%s\"",
                         CREDENTIAL_TIMEOUT_MAX, arg);
    src->keyfile_timeout = (unsigned)v;
    if (new_src != NULL)
        new_src->keyfile_timeout = (unsigned)v;
    return 1;
}

static bool is_stdin(const char *path)
{
    return path != NULL && strcmp(path, "-") == 0;
}

/* How many key files of src are standard input. */
static unsigned stdin_keyfiles(const struct credential_source *src)
{
    unsigned n = 0;

    for (unsigned i = 0; i < src->n_keyfiles; i++)
        n += is_stdin(src->keyfiles[i]);
    return n;
}

/* A key file takes all that is left of standard input: only passphrases can be before it. */
static int check_stdin(const struct command *c, const struct credential_source *src,
                       const struct credential_source *new_src)
{
    unsigned n = stdin_keyfiles(src), n_new = new_src != NULL ? stdin_keyfiles(new_src) : 0;
    bool follows = new_src != NULL && (n_new > 0 || is_stdin(new_src->passphrase_file));

    if (n > 1 || n_new > 1 || (n > 0 && follows))
        return cmd_usage(c, "a key file from standard input (-) leaves nothing of it for another");
    return 1;
}

static int take_option(const struct command *c, int opt, const char *arg,
                       struct credential_source *src, struct credential_source *new_src)
{
    switch (opt) {
    case CMD_OPT_PASSPHRASE_FILE:
        return add_passphrase_file(c, src, arg, "");
    case CMD_OPT_PASSPHRASE_COMMAND:
        return set_passphrase(c, &src->passphrase_command, arg, "");
    case CMD_OPT_ASK_PASSPHRASE:
        return set_ask(src);
    case CMD_OPT_KEYFILE:
        return add_keyfile(c, src, arg);
    case CMD_OPT_KEYFILE_TIMEOUT:
        return set_timeout(c, src, new_src, arg);
    case CMD_OPT_NEW_PASSPHRASE_FILE:
        return add_passphrase_file(c, new_src, arg, "new-");
    case CMD_OPT_NEW_PASSPHRASE_COMMAND:
        return set_passphrase(c, &new_src->passphrase_command, arg, "new-");
    case CMD_OPT_NEW_ASK_PASSPHRASE:
        return set_ask(new_src);
    case CMD_OPT_NEW_KEYFILE:
        return add_keyfile(c, new_src, arg);
    default:
        return 0;
    }
}

int cmd_credential_option(const struct command *c, int opt, const char *arg,
                          struct credential_source *src, struct credential_source *new_src)
{
    int r = take_option(c, opt, arg, src, new_src);

    if (r > 0)
        r = check_passphrase(c, src, "");
    if (r > 0 && new_src != NULL)
        r = check_passphrase(c, new_src, "new-");
    return r > 0 ? check_stdin(c, src, new_src) : r;
}

static int set_count(const struct command *c, uint32_t *to, const char *arg, const char *option)
{
    char *end;
    unsigned long v;

    errno = 0;
    v = strtoul(arg, &end, 10);
    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || errno != 0 || v == 0 || v > UINT32_MAX)
        return cmd_usage(c, "%s takes a positive number, not \"%s\"", option, arg);
    *to = (uint32_t)v;
    return 1;
}

int cmd_kdf_option(const struct command *c, int opt, const char *arg, struct kdf_request *kdf)
{
    int r = 1;

    switch (opt) {
    case CMD_OPT_KDF_MEMORY:
        if (size_parse(&kdf->memory, arg) < 0 || kdf->memory == 0)
            return cmd_usage(c, "--kdf-memory takes a size like 256M, not \"%s\"", arg);
        break;
    case CMD_OPT_KDF_TIME:
        r = set_count(c, &kdf->time_ms, arg, "--kdf-time");
        break;
    case CMD_OPT_KDF_ITERATIONS:
        if (strcmp(arg, "0") == 0)
            kdf->iterations = KDF_NO_PASSES;
        else
            r = set_count(c, &kdf->iterations, arg, "--kdf-iterations");
        break;
    default:
        return 0;
    }
    if (r > 0 && kdf->time_ms != 0 && kdf->iterations != 0)
        return cmd_usage(c, "--kdf-time and --kdf-iterations exclude each other");
    return r;
}

int cmd_header_option(const struct command *c, int opt, const char *arg, const char **header)
{
    if (opt != CMD_OPT_HEADER)
        return 0;
    if (arg[0] == '\0')
        return cmd_usage(c, "the name of the header's file is empty");
    if (*header != NULL)
        return cmd_usage(c, "the file of the header is given twice");
    *header = arg;
    return 1;
}
