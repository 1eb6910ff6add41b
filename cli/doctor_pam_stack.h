/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* One service's lines of one type ("auth"), those of included files in their places, and the way
 * through them. pam.conf(5) is the source of all of it. */

#include "cli/doctor_pam.h"

#define PAM_STACK_MAX 192

struct pam_line {
    const struct doctor_pam_file *file;
    unsigned line;
    unsigned depth;    /* of substacks around it */
    bool substack;     /* not a module: where one begins */
    char control[192]; /* "optional", "[success=1 default=ignore]" */
    char module[128];  /* "pam_unix.so", without folders */
    char path[128];    /* as it stands there */
};

struct pam_stack {
    unsigned n;
    struct pam_line lines[PAM_STACK_MAX]; /* those after the last are left out */
};

/* included[i] is set for each file that this leads to. */
void pam_stack_read(struct pam_stack *s, const char *type, const struct doctor_pam_file *service,
                    const struct doctor_pam_file *files, unsigned n, bool *included);

/* The first line of a module at from or after it; -1. */
int pam_stack_find(const struct pam_stack *s, const char *module, unsigned from);

/* What a control makes of a result ("success", "auth_err"). n counts what JUMP passes over. */
enum pam_what { PAM_IGNORED, PAM_BAD, PAM_DIE, PAM_OK, PAM_DONE, PAM_JUMP };
struct pam_action {
    enum pam_what what;
    unsigned n;
};
struct pam_action pam_action(const char *control, const char *result);

/* Does this module ask for a password, or check it? */
bool pam_asks_password(const struct pam_line *l);

struct pam_walk {
    bool refused;               /* it ends in a refusal, whatever comes */
    bool seen[PAM_STACK_MAX];   /* which lines are reached */
    int left_by[PAM_STACK_MAX]; /* which line passed over, or ended, what is not seen; -1 */
};
/* The way when the password module at line winner takes the password, the others do not, and any
 * other module does what leads on to the next line. winner -1: none is asked (session), and they
 * all succeed. */
void pam_stack_walk(const struct pam_stack *s, int winner, struct pam_walk *w);
