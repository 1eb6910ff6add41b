/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* Where a passphrase and key files come from, and what was read. Nothing here is kept longer than
 * the unlock: sources are words of the command line, credentials are secrets. */

#include "base/report.h"
#include "base/secret.h"

#define CREDENTIAL_KEYFILES 8
#define CREDENTIAL_PASSPHRASE_FILES 8
#define CREDENTIAL_PASSPHRASE_MAX 8192           /* bytes */
#define CREDENTIAL_TIMEOUT_MAX 86400             /* seconds */
#define CREDENTIAL_KEYFILE_MAX (8 * 1024 * 1024) /* bytes, all key files together */

struct credential;
struct credential_source {
    const char *passphrase_file; /* one trailing newline dropped; "-": first line of stdin */
    const char *more_passphrase_files[CREDENTIAL_PASSPHRASE_FILES - 1]; /* behind that one, */
    unsigned n_more_passphrase_files;                                   /* where lines says so */
    bool lines; /* of a file the first line counts, all of them make one passphrase, which may be
                   empty: what geli(8) does */
    const char *passphrase_command;            /* run by /bin/sh -c; one trailing newline dropped */
    const char *keyfiles[CREDENTIAL_KEYFILES]; /* read in this order, no byte dropped; "-": all
                                                  that the passphrase leaves of stdin, once */
    unsigned n_keyfiles;
    bool ask;                 /* for a passphrase on the terminal, also when there are key files */
    unsigned keyfile_timeout; /* seconds to wait for key files that are not there yet */
    const char *prompt;       /* what the prompt on /dev/tty names: "Passphrase for NAME" */
    bool confirm;             /* ask twice: a new passphrase */
    const char *prefix;      /* of the options that fill this, for messages: "new-"; NULL is none */
    const char *name;        /* volume name, for a systemd credential hushvol.NAME; may be NULL */
    struct credential *keep; /* gets a copy of what is read, each time; owned by the caller */
    const struct credential *given; /* read already: nothing above is looked at; may be NULL */
};

struct credential {
    bool has_passphrase;
    bool typed; /* the passphrase came from the terminal, and all of this can be read again */
    struct secret passphrase;
    struct secret keyfiles; /* the bytes of all key files in order; len 0 when there are none */
    unsigned n_keyfiles;
};

/* Read what src names. A passphrase is asked for on /dev/tty when no other source gives one and
 * there are no key files, or when src wants both. The first of: file, command,
 * $CREDENTIALS_DIRECTORY/hushvol.NAME, terminal. An entry that is a recovery key becomes that key's
 * one spelling (recovery.h); one that looks like it is said, with the groups that are mistyped, and
 * stays. Says a hint when an entry typed or read is not UTF-8 in NFC, and a warning for a
 * passphrase file that others can read. Errors of the key files as keyfile_read_all(). -ENOENT,
 * -EACCES; -EINVAL empty, too long, two sources or, without lines, files, the entries differ;
 * -ENXIO no terminal to ask on (says which options give one); -EINTR Ctrl-C, terminal restored;
 * -EIO the command failed.
 */
int credential_read(struct credential *ret, const struct credential_source *src,
                    struct report *rep);
/* Wipe. Fine on a zeroed struct. */
void credential_done(struct credential *c);
#define AUTO_CREDENTIAL __attribute__((cleanup(credential_done)))
