/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves base/cpus.c and base/cgroup.c: the quota of our group or of any above it counts, in both
 * versions of cgroups. */

#include "lib/machine.h"
#include "lib/test.h"

#include "base/cpus.h"

#include <sched.h>
#include <unistd.h>

static void without_cgroups_there_is_no_quota(void **state)
{
    (void)state;
    assert_int_equal(cpus_quota(machine_root()), 0);
}

static void the_least_quota_on_the_way_up_counts(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "1:name=systemd:/x\n0::/user/job\n");
    machine_put("/sys/fs/cgroup/user/job/cpu.max", "max 100000\n");
    assert_int_equal(cpus_quota(machine_root()), 0);
    machine_put("/sys/fs/cgroup/user/cpu.max", "350000 100000\n");
    assert_int_equal(cpus_quota(machine_root()), 4);
    machine_put("/sys/fs/cgroup/user/job/cpu.max", "50000 100000\n");
    assert_int_equal(cpus_quota(machine_root()), 1);
}

static void the_first_version_counts_too(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a/b\n2:cpuset:/c\n");
    machine_put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1\n");
    machine_put("/sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_quota(machine_root()), 0);
    machine_put("/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "200000\n");
    machine_put("/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
    assert_int_equal(cpus_quota(machine_root()), 2);
}

static void a_group_outside_of_what_is_mounted_ends_at_its_root(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "0::/../..\n");
    machine_put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    assert_int_equal(cpus_quota(machine_root()), 1);
}

static void a_process_bound_to_one_cpu_uses_one(void **state)
{
    cpu_set_t before, one;
    unsigned first = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_true(cpus_usable() >= 1 && cpus_usable() <= (unsigned)CPU_COUNT(&before));
    while (!CPU_ISSET(first, &before))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(cpus_usable(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(without_cgroups_there_is_no_quota, machine_make,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(the_least_quota_on_the_way_up_counts, machine_make,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(the_first_version_counts_too, machine_make, machine_remove),
        cmocka_unit_test_setup_teardown(a_group_outside_of_what_is_mounted_ends_at_its_root,
                                        machine_make, machine_remove),
        cmocka_unit_test(a_process_bound_to_one_cpu_uses_one),
    };

    return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
