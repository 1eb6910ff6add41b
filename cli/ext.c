/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/ext.h"

/* libblkid knows the type of an ext file system but not its state, which "dumpe2fs -h" prints as
 * two lines, the same in every language. e2fsck could be run always, but then nobody could be told
 * whether it was needed. */

#include "base/run.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TARGET_MAX (PATH_MAX + 32)

static const char *target(char out[TARGET_MAX], const char *path, uint64_t off)
{
    if (off == 0)
        snprintf(out, TARGET_MAX, "%s", path);
    else
        snprintf(out, TARGET_MAX, "%s?offset=%" PRIu64, path, off);
    return out;
}

/* Copy what stands behind the first line's name. false: there is no such line. */
static bool find_line(char *out, size_t size, const char *text, const char *name)
{
    const char *at = strstr(text, name);

    if (at == NULL || (at != text && at[-1] != '\n'))
        return false;
    at += strlen(name);
    at += strspn(at, " ");
    snprintf(out, size, "%.*s", (int)strcspn(at, "\n"), at);
    return true;
}

enum cmd_ext_state cmd_ext_state(const char *path, uint64_t off)
{
    char where[TARGET_MAX], said[8192], state[64], features[1024];
    const char *const argv[] = {"dumpe2fs", "-h", target(where, path, off), NULL};

    if (run_read(argv, said, sizeof(said), NULL) != 0 ||
        !find_line(state, sizeof(state), said, "Filesystem state:") ||
        !find_line(features, sizeof(features), said, "Filesystem features:"))
        return CMD_EXT_UNCLEAN;
    if (strstr(features, "needs_recovery") != NULL)
        return CMD_EXT_JOURNAL;
    return strcmp(state, "clean") == 0 ? CMD_EXT_CLEAN : CMD_EXT_UNCLEAN;
}

int cmd_ext_mend(const char *path, uint64_t off, struct report *rep)
{
    char where[TARGET_MAX];
    const char *const argv[] = {"e2fsck", "-p", target(where, path, off), NULL};
    int r = run_wait(argv, RUN_HIDE, rep);

    if (r == -ENOENT)
        return -EOPNOTSUPP;
    if (r >= 4 && r < 8) /* errors are left; 1 and 2 are added for what was mended */
        return -EUCLEAN;
    if (r >= 8)
        return report_error(rep, EIO, "e2fsck -p ended with status %d", r);
    return r > 0 ? 1 : r;
}
