/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* FreeBSD's GELI: docs/geli-format.md. */

#include "keystore/format.h"

extern const struct key_format geli_format;
