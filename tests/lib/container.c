/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/container.h"

#include "block/memory.h"
#include "lib/test.h"

#include <openssl/evp.h>
#include <string.h>

const struct kdf_cost container_cost = {8, 1, 1};

struct native_header container_header(void)
{
    struct native_header h = {
        .major = NATIVE_MAJOR,
        .minor = NATIVE_MINOR,
        .seq = 5,
        .slot_seq = 7,
        .uuid = "0123456789abcde",
        .mode = NATIVE_MODE_PLAIN,
        .cipher = 1,
        .kdf = NATIVE_KDF_HKDF,
        .unit = 4096,
        .logical_block = 512,
        .chunk_shift = 32,
        .data_offset = NATIVE_DATA,
        .salt = "a salt of thirty-two bytes, here",
        .capacity = CONTAINER_DISK,
        .label = "label",
    };

    return h;
}

void container_master(struct secret *master)
{
    assert_int_equal(secret_copy(master, "the master key of the container.", NATIVE_MASTER), 0);
}

void container_credential(struct credential *c, const char *passphrase, const char *keyfile)
{
    *c = (struct credential){.has_passphrase = passphrase != NULL,
                             .n_keyfiles = keyfile != NULL ? 1 : 0};
    if (passphrase != NULL)
        assert_int_equal(secret_copy(&c->passphrase, passphrase, strlen(passphrase)), 0);
    if (keyfile != NULL)
        assert_int_equal(secret_copy(&c->keyfiles, keyfile, strlen(keyfile)), 0);
}

void container_block(unsigned char block[NATIVE_BLOCK], struct native_header *h)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};
    AUTO_CREDENTIAL struct credential cred = {0};

    memset(block, 0, NATIVE_BLOCK);
    container_master(&master);
    container_credential(&cred, "old horse", NULL);
    assert_int_equal(native_header_encode(block, h), 0);
    assert_int_equal(native_slot_wrap(native_header_slot(block, 2), 2, h, &container_cost, "slot",
                                      &cred, &master, NULL),
                     0);
    assert_int_equal(native_header_prk(&prk, h, &master), 0);
    assert_int_equal(native_header_seal(block, h, &prk), 0);
}

/* The salt and the parameter block are taken as they stand in the bytes, whatever they say. */
void container_reseal(unsigned char block[NATIVE_BLOCK], int with_mac)
{
    AUTO_SECRET struct secret master = {0}, prk = {0};
    struct native_header h = {0};
    unsigned char mac[32];

    memcpy(h.salt, block + 0x60, sizeof(h.salt));
    assert_int_equal(EVP_Q_digest(NULL, "SHA256", NULL, block + 0x38, 128, h.params_sha256, NULL),
                     1);
    container_master(&master);
    assert_int_equal(native_header_prk(&prk, &h, &master), 0);
    memcpy(mac, block + 0x1c0, sizeof(mac));
    assert_int_equal(native_header_seal(block, &h, &prk), 0);
    if (with_mac)
        return;
    memcpy(block + 0x1c0, mac, sizeof(mac));
    memset(block + 0x1e0, 0, 32);
    assert_int_equal(EVP_Q_digest(NULL, "SHA256", NULL, block, NATIVE_BLOCK, block + 0x1e0, NULL),
                     1);
}

struct blk *container_open(const unsigned char block[NATIVE_BLOCK])
{
    struct blk *b = NULL;

    assert_int_equal(blk_memory_open(&b, CONTAINER_SIZE, 1), 0);
    for (unsigned i = 0; i < NATIVE_COPIES; i++)
        memcpy(blk_memory_bytes(b) + i * NATIVE_COPY_STEP, block, NATIVE_BLOCK);
    return b;
}
