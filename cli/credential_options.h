/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The options by which every command takes a passphrase and key files, the same with --new- for a
 * key that is to be made, what such a key may cost, and where the header is. */

#include "cli/command.h"
#include "keystore/credential.h"
#include "keystore/kdf.h"

/* Far from CMD_OPT_OWN, where a command's own options begin. */
enum {
    CMD_OPT_PASSPHRASE_FILE = 512,
    CMD_OPT_PASSPHRASE_COMMAND,
    CMD_OPT_ASK_PASSPHRASE,
    CMD_OPT_KEYFILE,
    CMD_OPT_KEYFILE_TIMEOUT,
    CMD_OPT_NEW_PASSPHRASE_FILE,
    CMD_OPT_NEW_PASSPHRASE_COMMAND,
    CMD_OPT_NEW_ASK_PASSPHRASE,
    CMD_OPT_NEW_KEYFILE,
    CMD_OPT_KDF_MEMORY,
    CMD_OPT_KDF_TIME,
    CMD_OPT_KDF_ITERATIONS,
    CMD_OPT_HEADER,
};

/* Rows for a long option table. */
/* clang-format off */
#define CMD_CREDENTIAL_OPTIONS                                                                     \
    {"passphrase-file", required_argument, NULL, CMD_OPT_PASSPHRASE_FILE},                         \
    {"passphrase-command", required_argument, NULL, CMD_OPT_PASSPHRASE_COMMAND},                   \
    {"ask-passphrase", no_argument, NULL, CMD_OPT_ASK_PASSPHRASE},                                 \
    {"keyfile", required_argument, NULL, CMD_OPT_KEYFILE},                                         \
    {"keyfile-timeout", required_argument, NULL, CMD_OPT_KEYFILE_TIMEOUT}
#define CMD_NEW_CREDENTIAL_OPTIONS                                                                 \
    {"new-passphrase-file", required_argument, NULL, CMD_OPT_NEW_PASSPHRASE_FILE},                 \
    {"new-passphrase-command", required_argument, NULL, CMD_OPT_NEW_PASSPHRASE_COMMAND},           \
    {"new-ask-passphrase", no_argument, NULL, CMD_OPT_NEW_ASK_PASSPHRASE},                         \
    {"new-keyfile", required_argument, NULL, CMD_OPT_NEW_KEYFILE}
#define CMD_KDF_OPTIONS                                                                            \
    {"kdf-memory", required_argument, NULL, CMD_OPT_KDF_MEMORY},                                   \
    {"kdf-time", required_argument, NULL, CMD_OPT_KDF_TIME},                                       \
    {"kdf-iterations", required_argument, NULL, CMD_OPT_KDF_ITERATIONS}
#define CMD_HEADER_OPTION {"header", required_argument, NULL, CMD_OPT_HEADER}
/* clang-format on */

/* Lines for the usage text. */
#define CMD_CREDENTIAL_USAGE                                                                       \
    "  --passphrase-file FILE   read the passphrase from FILE (one newline at its end is\n"        \
    "                           dropped); - is the first line of standard input; geli: the\n"      \
    "                           first line, of several files one behind the other\n"               \
    "  --passphrase-command CMD read it from what CMD prints\n"                                    \
    "  --keyfile FILE           a key file, beside or instead of a passphrase; may be repeated;\n" \
    "                           - is standard input, behind the passphrase if that is there too\n" \
    "  --ask-passphrase         ask for a passphrase although there are key files: it needs "      \
    "both\n"                                                                                       \
    "  --keyfile-timeout SEC    wait so long for key files that are not there yet (a stick that\n" \
    "                           is put in), new ones too\n"
#define CMD_NEW_CREDENTIAL_USAGE                                                                   \
    "  --new-passphrase-file FILE, --new-passphrase-command CMD, --new-keyfile FILE,\n"            \
    "  --new-ask-passphrase\n"                                                                     \
    "                           the same for the new key (default: asked twice)\n"
#define CMD_KDF_USAGE                                                                              \
    "  --kdf-memory SIZE        memory that one guess of the passphrase takes (256M; geli: "       \
    "none)\n"                                                                                      \
    "  --kdf-time MS            choose the passes so that unlocking takes MS here (1000; geli "    \
    "2000)\n"                                                                                      \
    "  --kdf-iterations N       exactly N passes, instead of --kdf-time (geli: 0 is none)\n"
#define CMD_HEADER_USAGE                                                                           \
    "  --header FILE            the header is in FILE, and only the data in CONTAINER\n"

/* Put opt, as getopt_long returned it, into the struct it belongs to; one that may be NULL is for
 * options that the command's table does not have. arg is borrowed. 1 it was one of these, 0 it was
 * not; -EINVAL a value that is wrong or contradicts another option (said). */
int cmd_credential_option(const struct command *c, int opt, const char *arg,
                          struct credential_source *src, struct credential_source *new_src);
int cmd_kdf_option(const struct command *c, int opt, const char *arg, struct kdf_request *kdf);
int cmd_header_option(const struct command *c, int opt, const char *arg, const char **header);
