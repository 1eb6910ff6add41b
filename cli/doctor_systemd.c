/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor_systemd.h"

/* These are INI files, which iniparser reads. It folds case, which systemd does not; nobody has two
 * keys that differ in that. */

#include <glob.h>
#include <iniparser/iniparser.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Those further down win over those before them. */
static const char *const folders[] = {"/usr/lib/systemd", "/usr/local/lib/systemd", "/run/systemd",
                                      "/etc/systemd"};
#define N_FOLDERS (sizeof(folders) / sizeof(folders[0]))
#define DROP_INS_MAX 64

static int be_silent(const char *format, ...)
{
    (void)format;
    return 0;
}

/* Keeps what is in out when the file does not set the key, or cannot be read. */
static bool read_one(const char *path, const char *key, char *out, size_t size)
{
    const char *value;
    dictionary *ini;

    iniparser_set_error_callback(be_silent);
    ini = iniparser_load(path);
    if (ini == NULL)
        return false;
    value = iniparser_getstring(ini, key, NULL);
    if (value != NULL)
        snprintf(out, size, "%s", value);
    iniparser_freedict(ini);
    return value != NULL;
}

/* The main file: only the one of the strongest folder counts. */
static bool read_main(const char *root, const char *name, const char *key, char *out, size_t size)
{
    char path[PATH_MAX];

    for (size_t i = N_FOLDERS; i-- > 0;) {
        snprintf(path, sizeof(path), "%s%s/%s", root, folders[i], name);
        if (access(path, F_OK) == 0)
            return read_one(path, key, out, size);
    }
    return false;
}

static const char *base_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Of two files of one name the later of the list, which is of the stronger folder, counts alone. */
static size_t first_of_name(char **paths, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (strcmp(base_of(paths[k]), base_of(paths[i])) == 0 && k > i)
            return k;
    return i;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(base_of(*(char *const *)a), base_of(*(char *const *)b));
}

static bool read_drop_ins(const char *root, const char *name, const char *key, char *out,
                          size_t size)
{
    char *chosen[DROP_INS_MAX], pattern[PATH_MAX];
    glob_t found = {0};
    size_t n = 0;
    bool hit = false;

    for (size_t i = 0; i < N_FOLDERS; i++) {
        snprintf(pattern, sizeof(pattern), "%s%s/%s.d/*.conf", root, folders[i], name);
        glob(pattern, i > 0 ? GLOB_APPEND : 0, NULL, &found);
    }
    for (size_t i = 0; i < found.gl_pathc && n < DROP_INS_MAX; i++)
        if (first_of_name(found.gl_pathv, found.gl_pathc, i) == i)
            chosen[n++] = found.gl_pathv[i];
    qsort(chosen, n, sizeof(chosen[0]), by_name);
    for (size_t i = 0; i < n; i++)
        hit = read_one(chosen[i], key, out, size) || hit;
    globfree(&found);
    return hit;
}

bool doctor_systemd_value(const char *root, const char *name, const char *key, char *out,
                          size_t size)
{
    bool main_file = read_main(root, name, key, out, size);

    return read_drop_ins(root, name, key, out, size) || main_file;
}

bool doctor_systemd_yes(const char *value)
{
    static const char *const words[] = {"1", "yes", "y", "true", "t", "on"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcasecmp(value, words[i]) == 0)
            return true;
    return false;
}
