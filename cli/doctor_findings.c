/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/doctor.h"

/* How the checks say what they found, and how they read the system's small files. */

#include "base/auto.h"
#include "base/report.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define TEXT_MAX ((size_t)256 << 10)

static bool is_known(const struct doctor *d, const struct doctor_finding *f)
{
    for (unsigned i = 0; i < d->n; i++)
        if (strcmp(d->findings[i].check, f->check) == 0 &&
            strcmp(d->findings[i].text, f->text) == 0)
            return true;
    return false;
}

void doctor_found(struct doctor *d, enum doctor_level level, const char *check, const char *fix,
                  const char *fmt, ...)
{
    struct doctor_finding f = {.level = level, .check = check, .fix = fix};
    char raw[REPORT_LINE];
    va_list ap;

    if (d->n == DOCTOR_FINDINGS)
        return;
    va_start(ap, fmt);
    vsnprintf(raw, sizeof(raw), fmt, ap);
    va_end(ap);
    report_escape(f.text, sizeof(f.text), raw);
    if (is_known(d, &f))
        return;
    if (d->n == DOCTOR_FINDINGS - 1)
        f = (struct doctor_finding){.level = level,
                                    .check = "more",
                                    .text = "there is more to find",
                                    .fix = "mend what is named here, and ask again"};
    d->findings[d->n++] = f;
}

bool doctor_field(const char *path, const char *key, char *out, size_t size)
{
    size_t key_len = strlen(key);
    char line[4096];
    FILE *f = fopen(path, "re");
    bool hit = false;

    if (f == NULL)
        return false;
    while (!hit && fgets(line, sizeof(line), f) != NULL)
        hit = strncmp(line, key, key_len) == 0;
    fclose(f);
    if (!hit)
        return false;
    line[strcspn(line, "\n")] = '\0';
    snprintf(out, size, "%s", line + key_len + strspn(line + key_len, " \t:"));
    return true;
}

/* Not blocking: a FIFO in the place of a file stops nobody. */
char *doctor_text(const char *path)
{
    AUTO_FD int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    AUTO_FREE char *text = NULL;
    struct stat st;
    size_t len = 0;
    ssize_t n;

    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return NULL;
    text = malloc(TEXT_MAX + 1);
    if (text == NULL)
        return NULL;
    while (len < TEXT_MAX && (n = read(fd, text + len, TEXT_MAX - len)) > 0)
        len += (size_t)n;
    text[len] = '\0';
    return TAKE(text);
}
