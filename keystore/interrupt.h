/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* The signal that ended a question or a wait with -EINTR. It was taken, so that the terminal and
 * whatever was half made could be put in order first; when that is done, a program ends by it, as
 * whoever sent it expects. From one thread. */

void key_interrupted(int sig);
/* 0: none came. */
int key_interrupt(void);
