/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* What sshd_config(5) texts say for every connection: the first value counts, a Match block does
 * not. Text in, value out. */

#include <stdbool.h>
#include <stddef.h>

/* The value of keyword (in any case), size bytes. */
bool doctor_sshd_value(const char *text, const char *keyword, char *out, size_t size);
