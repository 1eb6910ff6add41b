/* SPDX-License-Identifier: BSD-2-Clause */
#include "keystore/interrupt.h"

/* Kept for the process, beside the errno: it is of use to main() alone, and everything in between
 * passes on errnos and nothing else. */

static int interrupt;

void key_interrupted(int sig)
{
    interrupt = sig;
}

int key_interrupt(void)
{
    return interrupt;
}
