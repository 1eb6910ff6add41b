/* SPDX-License-Identifier: BSD-2-Clause */

/* Runs a fuzz target over the files of the folders that are named: the corpus as a test, with any
 * compiler. */

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t len);

static int run_file(const char *path)
{
    static unsigned char data[1 << 20];
    FILE *f = fopen(path, "re");
    size_t n;

    if (f == NULL) {
        perror(path);
        return 1;
    }
    n = fread(data, 1, sizeof(data), f);
    fclose(f);
    printf("%s\n", path);
    fflush(stdout); /* the name of the one that crashes */
    return LLVMFuzzerTestOneInput(data, n);
}

static int run_folder(const char *folder)
{
    struct dirent **found;
    int n = scandir(folder, &found, NULL, alphasort), bad = n <= 2;

    for (int i = 0; i < n; i++) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/%s", folder, found[i]->d_name);
        if (found[i]->d_name[0] != '.')
            bad |= run_file(path);
        free(found[i]);
    }
    if (n >= 0)
        free(found);
    return bad;
}

int main(int argc, char **argv)
{
    int bad = argc < 2;

    for (int i = 1; i < argc; i++)
        bad |= run_folder(argv[i]);
    return bad;
}
