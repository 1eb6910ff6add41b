/* SPDX-License-Identifier: BSD-2-Clause */

/* Fuzzes what reads how far a re-encryption is. Input: one byte of choices, then record A, then
 * record B, 512 bytes of each as far as there are, zeros behind. A choice lets a fuzzer past the
 * MAC. */

#include "block/memory.h"
#include "keystore/native/reencrypt.h"
#include "lib/container.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDS = 2, LEN = 512, AT_MAC = 0xc0, SEAL_MAC = 1 };

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

/* A container that says it is being re-encrypted, opened and unlocked once. */
static struct key_store *store(void)
{
    static struct key_store *ks;
    struct native_header h = container_header();
    AUTO_CREDENTIAL struct credential cred = {0};
    AUTO_KEY_VOLUME struct key_volume v = {0};
    unsigned char block[NATIVE_BLOCK];
    struct blk *b;

    if (ks != NULL)
        return ks;
    if (secret_start(NULL) < 0)
        abort();
    container_block(block, &h);
    b = container_open(block);
    container_credential(&cred, "old horse", NULL);
    if (native_store_open(&ks, b, b, NULL) < 0 ||
        key_format_named("native")->unlock(ks, &cred, KEY_SLOT_ANY, &v, NULL) < 0)
        abort();
    ks->copy[ks->current].header.incompat = NATIVE_INCOMPAT_REENCRYPT;
    if (native_record_keys(&ks->record_keys, &ks->copy[ks->current].header, &ks->prk) < 0)
        abort();
    return ks;
}

static void lay_out(struct key_store *ks, unsigned choices, const unsigned char *data, size_t len)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        unsigned char *record = blk_memory_bytes(ks->b) + NATIVE_RECORD_AT + i * NATIVE_BLOCK;
        size_t n = len < LEN ? len : LEN;

        memset(record, 0, NATIVE_BLOCK);
        memcpy(record, data, n);
        if (choices & SEAL_MAC &&
            EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, ks->record_keys.bytes + NATIVE_RECORD_KEY,
                      32, record, AT_MAC, record + AT_MAC, 32, NULL) == NULL)
            abort();
        data += n;
        len -= n;
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len)
{
    AUTO_KEY_VOLUME struct key_volume v = {.sector_size = 4096, .size = CONTAINER_DISK};
    struct key_store *ks = store();

    if (len == 0)
        return 0;
    lay_out(ks, data[0], data + 1, len - 1);
    if (native_reencrypt_load(ks, &v, NULL) < 0)
        return 0;
    if (!v.mixed || v.boundary > v.size || v.zone > v.size - v.boundary || v.boundary % 4096 != 0 ||
        v.zone % 4096 != 0 || v.old_rule.prk.len != 32)
        abort();
    return 0;
}
