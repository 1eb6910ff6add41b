/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The options that say what a new container is: of which format, and what that format lets one
 * choose. Shared by create and convert. */

#include "cli/command.h"
#include "keystore/format.h"

/* Far from CMD_OPT_OWN and from those of credential_options.h. */
enum {
    CMD_OPT_FORMAT = 768,
    CMD_OPT_CIPHER,
    CMD_OPT_KEY_SIZE,
    CMD_OPT_SECTOR_SIZE,
    CMD_OPT_INTEGRITY,
    CMD_OPT_FLAGS,
    CMD_OPT_GELI_VERSION,
    CMD_OPT_PROVIDER_SECTOR,
    CMD_OPT_INSECURE_NULL,
};

/* Rows for a long option table. */
/* clang-format off */
#define CMD_FORMAT_OPTIONS                                                                         \
    {"format", required_argument, NULL, CMD_OPT_FORMAT},                                           \
    {"cipher", required_argument, NULL, CMD_OPT_CIPHER},                                           \
    {"key-size", required_argument, NULL, CMD_OPT_KEY_SIZE},                                       \
    {"sector-size", required_argument, NULL, CMD_OPT_SECTOR_SIZE},                                 \
    {"integrity", required_argument, NULL, CMD_OPT_INTEGRITY},                                     \
    {"flags", required_argument, NULL, CMD_OPT_FLAGS},                                             \
    {"geli-version", required_argument, NULL, CMD_OPT_GELI_VERSION},                               \
    {"provider-sector", required_argument, NULL, CMD_OPT_PROVIDER_SECTOR},                         \
    {"insecure-null-cipher", no_argument, NULL, CMD_OPT_INSECURE_NULL}

/* Lines for the usage text. */
#define CMD_FORMAT_USAGE                                                                           \
    "  --format NAME            native (default), or geli: FreeBSD's, see docs/geli.md\n"          \
    "  --cipher NAME            native: aes-256-xts (default), aes-128-xts, null\n"                \
    "                           geli: aes-xts (default), aes-cbc, camellia-cbc, 3des-cbc,\n"       \
    "                           blowfish-cbc, null\n"                                              \
    "  --key-size BITS          of a geli cipher (128; 192 for 3des-cbc)\n"                        \
    "  --sector-size SIZE       of the cipher: 512 to 64K (geli: 128K), a power of two (4096)\n"   \
    "  --integrity NAME         none (default): changes to the container are not detected; geli:\n"\
    "                           hmac-sha256, -sha384, -sha512, -sha1, -ripemd160, -md5\n"          \
    "  --flags WORD,...         geli: boot, nodelete, geliboot, displaypass, no-autoresize\n"      \
    "  --geli-version N         0 to 7 (7)\n"                                                      \
    "  --provider-sector SIZE   geli: of the disk that the container is an image of (512)\n"       \
    "  --insecure-null-cipher   confirms --cipher null, which encrypts nothing (to measure)\n"
/* clang-format on */

/* What the words say; borrowed. */
struct cmd_format_words {
    const char *format;       /* NULL: not said */
    struct key_create header; /* zeros: not said */
    bool insecure_null;
    bool integrity; /* was said, if only "none" */
};

/* Put opt, as getopt_long returned it, where it belongs. 1 it was one of these, 0 it was not;
 * -EINVAL a value that is wrong (said). */
int cmd_format_option(const struct command *c, int opt, const char *arg,
                      struct cmd_format_words *words);
/* The format exists, *header has its cipher, and nobody encrypts nothing by mistake. -EINVAL,
 * -EOPNOTSUPP, said. */
int cmd_format_settle(const struct command *c, const struct cmd_format_words *words,
                      const char *format, struct key_create *header, struct report *rep);
