/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/talk.h"

/* The log is syslog's facility for authentication, which others do not read: pam_syslog() gives it
 * with each line, so nothing of the host's own connection is touched. */

#include "login/remember.h"

#include <errno.h>
#include <security/pam_ext.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

static void talk_say(struct report *rep, enum report_level level, const char *text)
{
    static const int priority[] = {
        [REPORT_INFO] = LOG_NOTICE, [REPORT_WARN] = LOG_WARNING, [REPORT_ERROR] = LOG_ERR};
    const struct login_talk *t = (const struct login_talk *)rep;

    pam_syslog(t->pamh, priority[level], "%s", text);
    if (t->silent)
        return;
    if (level == REPORT_ERROR)
        pam_error(t->pamh, "hushvol: %s", text);
    else
        pam_info(t->pamh, "hushvol: %s", text);
}

void login_talk_init(struct login_talk *t, pam_handle_t *pamh, bool silent)
{
    *t = (struct login_talk){.rep = {.say = talk_say}, .pamh = pamh, .silent = silent};
}

void login_debug(const struct login_talk *t, const char *fmt, ...)
{
    va_list ap;

    if (!t->debug)
        return;
    va_start(ap, fmt);
    pam_vsyslog(t->pamh, LOG_DEBUG, fmt, ap);
    va_end(ap);
}

static void log_line(const struct login_talk *t, const char *text)
{
    char shown[REPORT_LINE];

    report_escape(shown, sizeof(shown), text);
    pam_syslog(t->pamh, LOG_NOTICE, "%s", shown);
}

/* The program calls itself by name at the beginning of a line, and so do we. */
void login_talk_lines(struct login_talk *t, char *text, bool failed)
{
    static const char name[] = "hushvol: ";
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, name, sizeof(name) - 1) == 0)
            line += sizeof(name) - 1;
        if (failed)
            report_error(&t->rep, EIO, "%s", line);
        else
            log_line(t, line);
    }
}

int login_ask(struct login_talk *t, struct secret *ret, const char *about)
{
    char *answer = NULL;
    int r;

    if (t->silent)
        return -ENOTTY;
    r = pam_prompt(t->pamh, PAM_PROMPT_ECHO_OFF, &answer, "hushvol: passphrase for %s: ", about);
    if (r != PAM_SUCCESS || answer == NULL)
        return -ENOTTY;
    r = answer[0] != '\0' ? login_secret(ret, answer) : -ENODATA;
    secret_wipe(answer, strlen(answer));
    free(answer);
    return r;
}
