/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/machine.h"

#include "lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[] = "/tmp/hushvol-machine-XXXXXX";

int machine_make(void **state)
{
    (void)state;
    return mkdtemp(root) == NULL ? -1 : 0;
}

int machine_remove(void **state)
{
    char command[64];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", root);
    strcpy(root + strlen(root) - 6, "XXXXXX");
    return system(command);
}

const char *machine_root(void)
{
    return root;
}

void machine_put(const char *path, const char *text)
{
    char full[512];
    FILE *f;

    snprintf(full, sizeof(full), "%s%s", root, path);
    for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0700);
        *slash = '/';
    }
    f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}
