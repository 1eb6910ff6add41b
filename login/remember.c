/* SPDX-License-Identifier: BSD-2-Clause */
#include "login/remember.h"

/* PAM forgets the password itself when authentication is over. It is kept by the handle and not in
 * a variable of ours: a process may have several handles, and threads. The host decides what it is
 * to its debuggers and core dumps: the memory is locked and left out of dumps, and that is all. */

#include "login/run_as.h"

#include <errno.h>
#include <security/_pam_types.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define DATA "pam_hushvol_password"

struct remembered {
    struct secret password;
    char user[]; /* whose */
};

static void forget(struct remembered *m)
{
    secret_done(&m->password);
    free(m);
}

static void clean_up(pam_handle_t *pamh, void *data, int status)
{
    (void)pamh;
    (void)status;
    if (data != NULL)
        forget(data);
}

/* The library may have been started by the host, or never: this is for both. */
int login_secret(struct secret *ret, const char *text)
{
    return sodium_init() < 0 ? -ENOMEM : secret_copy(ret, text, strlen(text));
}

static struct remembered *make(const char *user, const char *password)
{
    size_t len = strlen(user) + 1;
    struct remembered *m = calloc(1, sizeof(*m) + len);

    if (m == NULL)
        return NULL;
    memcpy(m->user, user, len);
    if (login_secret(&m->password, password) == 0)
        return m;
    free(m);
    return NULL;
}

int login_remember(pam_handle_t *pamh, const char *user, const char *password)
{
    struct remembered *m = NULL;
    int r;

    if (password == NULL)
        return pam_set_data(pamh, DATA, NULL, NULL);
    m = make(user, password);
    if (m == NULL)
        return PAM_BUF_ERR;
    r = pam_set_data(pamh, DATA, m, clean_up);
    if (r != PAM_SUCCESS)
        forget(m);
    return r;
}

const struct secret *login_remembered(pam_handle_t *pamh, const char *user)
{
    const struct remembered *m;
    const void *data = NULL;

    if (pam_get_data(pamh, DATA, &data) != PAM_SUCCESS || data == NULL)
        return NULL;
    m = data;
    return strcmp(m->user, user) == 0 ? &m->password : NULL;
}

static bool is_a_line(const struct secret *s)
{
    return s->len < PAM_MAX_RESP_SIZE && memchr(s->bytes, '\n', s->len) == NULL;
}

int login_lines(struct secret *ret, const struct secret *first, const struct secret *second)
{
    size_t len = first->len + 1 + (second != NULL ? second->len + 1 : 0);
    int r;

    _Static_assert(2 * PAM_MAX_RESP_SIZE <= LOGIN_INPUT_MAX, "two lines fit in a pipe");
    if (!is_a_line(first) || (second != NULL && !is_a_line(second)))
        return -EINVAL;
    r = secret_make(ret, len);
    if (r < 0)
        return r;
    memcpy(ret->bytes, first->bytes, first->len);
    ret->bytes[first->len] = '\n';
    if (second != NULL) {
        memcpy(ret->bytes + first->len + 1, second->bytes, second->len);
        ret->bytes[len - 1] = '\n';
    }
    return 0;
}
