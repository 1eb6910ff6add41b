/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/format_options.h"

/* Only what is wrong whatever the format is found here; what a format does not have it refuses
 * itself (prepare in keystore/format.h). */

#include "base/size.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int take_sector(const struct command *c, uint32_t *to, const char *option, const char *arg)
{
    uint64_t size;

    if (size_parse(&size, arg) < 0 || size == 0 || size > UINT32_MAX)
        return cmd_usage(c, "%s takes a size like 512 or 4K, not \"%s\"", option, arg);
    *to = (uint32_t)size;
    return 1;
}

static int take_bits(const struct command *c, uint32_t *to, const char *arg)
{
    char *end;
    unsigned long v = strtoul(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || v == 0 || v > UINT16_MAX)
        return cmd_usage(c, "--key-size takes bits like 256, not \"%s\"", arg);
    *to = (uint32_t)v;
    return 1;
}

static int take_word(const struct command *c, const char **to, const char *arg)
{
    if (arg[0] == '\0')
        return cmd_usage(c, "an option has an empty value");
    *to = arg;
    return 1;
}

int cmd_format_option(const struct command *c, int opt, const char *arg,
                      struct cmd_format_words *words)
{
    struct key_create *h = &words->header;

    switch (opt) {
    case CMD_OPT_FORMAT:
        return take_word(c, &words->format, arg);
    case CMD_OPT_CIPHER:
        return take_word(c, &h->cipher, arg);
    case CMD_OPT_KEY_SIZE:
        return take_bits(c, &h->key_bits, arg);
    case CMD_OPT_SECTOR_SIZE:
        return take_sector(c, &h->sector_size, "--sector-size", arg);
    case CMD_OPT_INTEGRITY:
        h->integrity = NULL;
        words->integrity = true;
        return strcmp(arg, "none") == 0 ? 1 : take_word(c, &h->integrity, arg);
    case CMD_OPT_FLAGS:
        return take_word(c, &h->flags, arg);
    case CMD_OPT_GELI_VERSION:
        return take_word(c, &h->version, arg);
    case CMD_OPT_PROVIDER_SECTOR:
        return take_sector(c, &h->medium_sector, "--provider-sector", arg);
    case CMD_OPT_INSECURE_NULL:
        words->insecure_null = true;
        return 1;
    default:
        return 0;
    }
}

int cmd_format_settle(const struct command *c, const struct cmd_format_words *words,
                      const char *format, struct key_create *header, struct report *rep)
{
    const struct key_format *f = key_format_named(format);
    bool null;

    if (f == NULL || f->create == NULL)
        return report_error(rep, EOPNOTSUPP, "this version cannot make containers of format \"%s\"",
                            format);
    if (header->cipher == NULL)
        header->cipher = f->default_cipher;
    null = strncmp(header->cipher, "null", 4) == 0;
    if (null && !words->insecure_null)
        return cmd_usage(c,
                         "the cipher %s encrypts nothing; if that is what you want, add "
                         "--insecure-null-cipher (else name another --cipher)",
                         header->cipher);
    if (!null && words->insecure_null)
        return cmd_usage(c, "--insecure-null-cipher and --cipher %s contradict", header->cipher);
    return 0;
}
