/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/test.h"

#include "cli/command.h"

#include <errno.h>

static void each_errno_has_the_status_that_the_manual_promises(void **state)
{
    static const struct {
        int err, status;
    } rows[] = {
        {0, 0},     {EIO, 1},    {ENOMEM, 1},     {EEXIST, 1}, {EACCES, 1},  {EPERM, 1},
        {EINTR, 1}, {ENOSPC, 1}, {EROFS, 1},      {EINVAL, 2}, {EBADMSG, 4}, {EKEYREJECTED, 3},
        {EBUSY, 5}, {ENXIO, 1},  {EOPNOTSUPP, 6}, {ENOENT, 7},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_int_equal(exit_status(-rows[i].err), rows[i].status);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_errno_has_the_status_that_the_manual_promises),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
