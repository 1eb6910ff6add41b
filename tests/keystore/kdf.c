/* SPDX-License-Identifier: BSD-2-Clause */

/* Proves keystore/kdf.c and keystore/meminfo.c. The Argon2id answers are those of the algorithm's
 * reference implementation (python3-argon2), which libsodium does not share code with. */

#include "keystore/kdf.h"
#include "keystore/meminfo.h"
#include "lib/machine.h"
#include "lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

static void argon2id_gives_the_known_answers(void **state)
{
    static const unsigned char want_1[32] = {0x9c, 0x49, 0x30, 0x22, 0x87, 0x73, 0x48, 0xe0,
                                             0x34, 0x71, 0x9b, 0xce, 0x11, 0x0c, 0x99, 0x30,
                                             0x1e, 0x5d, 0x4d, 0x16, 0xac, 0xac, 0xc6, 0xa8,
                                             0x29, 0x00, 0x0f, 0xf2, 0x04, 0x4b, 0x1b, 0x0c};
    static const unsigned char want_2[32] = {0x6b, 0x3d, 0x08, 0x22, 0x54, 0xea, 0xeb, 0x2e,
                                             0x6a, 0x82, 0xad, 0x89, 0x54, 0xa9, 0xa8, 0xad,
                                             0x71, 0x16, 0x26, 0xcd, 0xe6, 0x79, 0xb0, 0xaa,
                                             0x7a, 0x21, 0x82, 0x83, 0xe8, 0x83, 0x7d, 0x81};
    AUTO_SECRET struct secret password = {0};
    unsigned char salt[16], out[32];

    (void)state;
    for (unsigned i = 0; i < 16; i++)
        salt[i] = (unsigned char)i;
    assert_int_equal(secret_copy(&password, "password", 8), 0);
    assert_int_equal(kdf_argon2id(out, &password, salt, &(struct kdf_cost){64, 1, 1}, NULL), 0);
    assert_memory_equal(out, want_1, 32);

    assert_int_equal(secret_make(&password, 80), 0);
    for (unsigned i = 1; i < 80; i += 2)
        password.bytes[i] = 0xff;
    memset(salt, 0xa5, sizeof(salt));
    assert_int_equal(kdf_argon2id(out, &password, salt, &(struct kdf_cost){8192, 3, 1}, NULL), 0);
    assert_memory_equal(out, want_2, 32);
}

static void what_a_header_may_ask_for_has_limits(void **state)
{
    static const struct {
        struct kdf_cost cost;
        int want;
    } asks[] = {
        {{8, 1, 1}, 0},
        {{64 * 1024, 64, 1}, 0},
        {{7, 1, 1}, -EBADMSG},
        {{0, 0, 0}, -EBADMSG},
        {{64 * 1024, 0, 1}, -EBADMSG},
        {{64 * 1024, 65, 1}, -EBADMSG},
        {{64 * 1024, 3, 0}, -EBADMSG},
        {{64 * 1024, 3, 2}, -EBADMSG},
        {{4 * 1024 * 1024 + 1, 1, 1}, -EBADMSG},
        {{4 * 1024 * 1024, 9, 1}, -EBADMSG}, /* more than 32 GiB of work */
        {{1024 * 1024, 33, 1}, -EBADMSG},
        {{UINT32_MAX, UINT32_MAX, 1}, -EBADMSG},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(kdf_check(&asks[i].cost, 4, &said.rep), asks[i].want);
        assert_int_equal(said.n_lines, asks[i].want != 0);
        if (asks[i].want != 0)
            assert_true(test_report_has(&said, "key slot 4"));
    }
}

static void more_than_three_quarters_of_memory_is_refused(void **state)
{
    struct kdf_cost cost = {4 * 1024 * 1024, 1, 1};
    struct test_report said;

    (void)state;
    test_report_init(&said);
    if (kdf_memory_available() / 4 * 3 >= 4 * GIB)
        assert_int_equal(kdf_check(&cost, 1, &said.rep), 0);
    else
        assert_int_equal(kdf_check(&cost, 1, &said.rep), -ENOMEM);
}

static void the_default_follows_the_memory_available(void **state)
{
    static const struct {
        uint64_t available;
        struct kdf_cost want;
    } tiers[] = {
        {1024 * GIB, {256 * 1024, 3, 1}},   {GIB, {256 * 1024, 3, 1}},
        {GIB - 1, {128 * 1024, 4, 1}},      {512 * MIB, {128 * 1024, 4, 1}},
        {512 * MIB - 1, {64 * 1024, 6, 1}}, {0, {64 * 1024, 6, 1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(tiers) / sizeof(tiers[0]); i++) {
        struct kdf_cost cost;

        kdf_default_cost(&cost, tiers[i].available);
        assert_memory_equal(&cost, &tiers[i].want, sizeof(cost));
    }
}

static void a_request_is_met_exactly_or_refused(void **state)
{
    static const struct {
        struct kdf_request req;
        int want;
        struct kdf_cost cost;
    } asks[] = {
        {{64 * MIB, 0, 3}, 0, {64 * 1024, 3, 1}}, {{64 * MIB + 1023, 0, 64}, 0, {64 * 1024, 64, 1}},
        {{64 * MIB, 1, 0}, 0, {64 * 1024, 3, 1}}, /* never below three passes */
        {{64 * MIB - 1, 0, 3}, -EINVAL, {0}},     {{4 * GIB + 1, 0, 3}, -EINVAL, {0}},
        {{64 * MIB, 0, 2}, -EINVAL, {0}},         {{64 * MIB, 0, 65}, -EINVAL, {0}},
        {{4 * GIB, 0, 9}, -EINVAL, {0}},          {{64 * MIB, 1000, 3}, -EINVAL, {0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct kdf_cost cost;
        struct test_report said;

        test_report_init(&said);
        assert_int_equal(kdf_choose(&cost, &asks[i].req, &said.rep), asks[i].want);
        assert_int_equal(said.n_lines, asks[i].want != 0);
        assert_int_equal(kdf_request_check(&asks[i].req, NULL), asks[i].want);
        if (asks[i].want == 0)
            assert_memory_equal(&cost, &asks[i].cost, sizeof(cost));
    }
}

static void a_longer_time_gives_more_passes(void **state)
{
    struct kdf_cost cost;

    (void)state;
    assert_int_equal(kdf_choose(&cost, &(struct kdf_request){64 * MIB, 4000000, 0}, NULL), 0);
    assert_int_equal(cost.t, 64);
    assert_int_equal(kdf_choose(&cost, &(struct kdf_request){64 * MIB, 0, 0}, NULL), 0);
    assert_in_range(cost.t, 3, 12);
}

static void what_replaces_a_dear_slot_is_not_cheaper_unless_asked_for(void **state)
{
    static const struct {
        struct kdf_cost old;
        struct kdf_request req;
        struct kdf_cost least, most;
    } asks[] = {
        {{320 * 1024, 20, 1}, {0}, {320 * 1024, 20, 1}, {320 * 1024, 20, 1}},
        {{8, 1, 1}, {0}, {256 * 1024, 3, 1}, {256 * 1024, 12, 1}},
        {{320 * 1024, 20, 1}, {64 * MIB, 0, 3}, {64 * 1024, 3, 1}, {64 * 1024, 3, 1}},
        {{320 * 1024, 99, 1}, {0}, {256 * 1024, 3, 1}, {256 * 1024, 12, 1}}, /* impossible */
    };

    (void)state;
    if (kdf_memory_available() < GIB)
        skip();
    for (size_t i = 0; i < sizeof(asks) / sizeof(asks[0]); i++) {
        struct kdf_cost cost;

        assert_int_equal(kdf_choose_instead(&cost, &asks[i].req, &asks[i].old, NULL), 0);
        assert_int_equal(cost.m_kib, asks[i].least.m_kib);
        assert_in_range(cost.t, asks[i].least.t, asks[i].most.t);
    }
}

static double cpu_ms(const struct kdf_cost *cost)
{
    AUTO_SECRET struct secret password = {0};
    unsigned char salt[16] = {0}, out[32];
    struct timespec from, to;

    assert_int_equal(secret_copy(&password, "x", 1), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
    assert_int_equal(kdf_argon2id(out, &password, salt, cost, NULL), 0);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
    return 1e3 * (double)(to.tv_sec - from.tv_sec) + 1e-6 * (double)(to.tv_nsec - from.tv_nsec);
}

/* Five times what three passes take here is asked for, so this holds on any machine. */
static void a_calibrated_slot_takes_the_time_that_was_asked_for(void **state)
{
    struct kdf_cost cost = {64 * 1024, 3, 1};
    uint32_t wanted = (uint32_t)(5 * cpu_ms(&cost));
    double got;

    (void)state;
    assert_int_equal(kdf_choose(&cost, &(struct kdf_request){64 * MIB, wanted, 0}, NULL), 0);
    assert_in_range(cost.t, 4, 63);
    got = cpu_ms(&cost);
    assert_true(got > wanted / 2.0 && got < wanted * 2.0);
}

/* --- meminfo: a machine made of files --- */

static int make_machine(void **state)
{
    int r = machine_make(state);

    if (r < 0)
        return r;
    machine_put("/proc/meminfo", "MemTotal: 8000 kB\nMemFree: 100 kB\nMemAvailable:    4000 kB\n");
    machine_put("/proc/self/cgroup", "");
    return 0;
}

static void without_cgroups_the_machine_counts(void **state)
{
    (void)state;
    assert_int_equal(meminfo_available(machine_root()), 4000 * KIB);
}

static void the_limit_of_a_group_above_ours_counts(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "1:name=systemd:/x\n0::/user/job\n");
    machine_put("/sys/fs/cgroup/user/job/memory.max", "max\n");
    machine_put("/sys/fs/cgroup/user/job/memory.current", "1000000\n");
    assert_int_equal(meminfo_available(machine_root()), 4000 * KIB);
    machine_put("/sys/fs/cgroup/user/memory.max", "3000000\n");
    machine_put("/sys/fs/cgroup/user/memory.current", "2000000\n");
    assert_int_equal(meminfo_available(machine_root()), 1000000);
    machine_put("/sys/fs/cgroup/user/memory.stat",
                "anon 5\ninactive_file 300000\nactive_file 200000\n");
    assert_int_equal(meminfo_available(machine_root()), 1500000);
    machine_put("/sys/fs/cgroup/user/job/memory.max", "900000\n");
    assert_int_equal(meminfo_available(machine_root()), 0);
}

static void the_first_version_of_cgroups_counts_too(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "4:memory:/a/b\n3:cpu:/a\n0::/\n");
    machine_put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    machine_put("/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "500\n");
    machine_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2000000\n");
    machine_put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "500000\n");
    machine_put("/sys/fs/cgroup/memory/a/memory.stat", "cache 9\ntotal_inactive_file 100000\n");
    assert_int_equal(meminfo_available(machine_root()), 1600000);
}

static void a_path_that_leads_nowhere_ends_at_the_mounted_root(void **state)
{
    (void)state;
    machine_put("/proc/self/cgroup", "4:memory:/docker/0123\n0::/../..\n");
    machine_put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "3000000\n");
    machine_put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1000000\n");
    assert_int_equal(meminfo_available(machine_root()), 2000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(argon2id_gives_the_known_answers),
        cmocka_unit_test(what_a_header_may_ask_for_has_limits),
        cmocka_unit_test(more_than_three_quarters_of_memory_is_refused),
        cmocka_unit_test(the_default_follows_the_memory_available),
        cmocka_unit_test(a_request_is_met_exactly_or_refused),
        cmocka_unit_test(a_longer_time_gives_more_passes),
        cmocka_unit_test(what_replaces_a_dear_slot_is_not_cheaper_unless_asked_for),
        cmocka_unit_test(a_calibrated_slot_takes_the_time_that_was_asked_for),
        cmocka_unit_test_setup_teardown(without_cgroups_the_machine_counts, make_machine,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(the_limit_of_a_group_above_ours_counts, make_machine,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(the_first_version_of_cgroups_counts_too, make_machine,
                                        machine_remove),
        cmocka_unit_test_setup_teardown(a_path_that_leads_nowhere_ends_at_the_mounted_root,
                                        make_machine, machine_remove),
    };

    return cmocka_run_group_tests(tests, test_start, NULL);
}
