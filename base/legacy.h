/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

#include <openssl/types.h>

/* OpenSSL's library context that also offers algorithms of its legacy provider. It is made on the
 * first call, which loads that module from the disk, and lives as long as the process; what does
 * not ask for it never has those algorithms. NULL when this machine does not have the module. */
OSSL_LIB_CTX *legacy_context(void);
