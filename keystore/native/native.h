/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* hushvol's own container format, plain mode: docs/format.md 9 and 10. */

#include "keystore/format.h"

extern const struct key_format native_format;
