/* SPDX-License-Identifier: BSD-2-Clause */
#include "fuse/pass.h"

#include <string.h>
#include <sys/socket.h>

ssize_t serve_pass(int to, const void *bytes, size_t len, int fd)
{
    _Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {.iov_base = (void *)bytes, .iov_len = len}; /* only read */
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    struct cmsghdr *c;

    if (fd >= 0) {
        m.msg_control = room;
        m.msg_controllen = sizeof(room);
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(c), &fd, sizeof(int));
    }
    return sendmsg(to, &m, MSG_NOSIGNAL);
}
