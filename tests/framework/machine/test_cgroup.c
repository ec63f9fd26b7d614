/* SPDX-License-Identifier: MIT */
/* Limits of control groups, read from the files of each kind of system, and from malformed ones. */
#include <stdlib.h>

#include "framework/machine/cgroup.h"
#include "framework/machine/fixture.h"

static const int64_t none = INT64_MAX;
static const int64_t mega = 1 << 20;

static void check_limits(const char *root, int64_t memory, int64_t available, int64_t processors)
{
    cgroup_limits limits = cgroup_read(root);
    CHECK_EQUAL(limits.memory, memory);
    CHECK_EQUAL(limits.available, available);
    CHECK_EQUAL(limits.processors, processors);
}

static const char unified_mount[] = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/* Any ancestor group may set the limit: here of memory two levels up, of CPU cores one level up. */
static void version_2_nested(void)
{
    char root[512];
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/cgroup", "0::/system.slice/batch.service/job\n");
    fixture_put(root, "/proc/self/mountinfo", unified_mount);
    check_limits(root, none, none, none);
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/job/memory.max", "max\n");
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/job/cpu.max", "max 100000\n");
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/cpu.max", "150000 100000\n");
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/memory.max", "629145600\n"); /* 600 MiB */
    fixture_put(root, "/sys/fs/cgroup/system.slice/memory.max", "314572800\n");               /* 300 MiB */
    fixture_put(root, "/sys/fs/cgroup/system.slice/cpu.max", "400000 100000\n");
    check_limits(root, 300 * mega, 300 * mega, 2);
    /* the smallest limit is not the one with the least available memory */
    fixture_put(root, "/sys/fs/cgroup/system.slice/memory.current", "104857600\n");
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/memory.current", "597688320\n"); /* 570 MiB */
    check_limits(root, 300 * mega, 30 * mega, 2);
    /* of which 400 MiB are cached files */
    fixture_put(root, "/sys/fs/cgroup/system.slice/batch.service/memory.stat",
                "anon 178257920\nfile 419430400\ninactive_anon 5\nactive_file 209715200\ninactive_file 209715200\n");
    check_limits(root, 300 * mega, 200 * mega, 2);
    fixture_put(root, "/sys/fs/cgroup/cpu.max", "1000 100000\n");
    check_limits(root, 300 * mega, 200 * mega, 1);
}

/* One group in each hierarchy, and a mount shared by two controllers. */
static void version_1(void)
{
    char root[512];
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/cgroup", "5:cpuset:/\n4:memory:/job\n3:cpu,cpuacct:/other/job\n1:name=systemd:/\n");
    fixture_put(root, "/proc/self/mountinfo",
                "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                "31 25 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                "33 25 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                "34 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    fixture_put(root, "/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    fixture_put(root, "/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "4096\n");
    fixture_put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "314572800\n");
    fixture_put(root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "209715200\n");
    fixture_put(root, "/sys/fs/cgroup/memory/memory.stat",
                "cache 1\nactive_file 7\ntotal_inactive_file 104857600\ntotal_active_file 0\n");
    fixture_put(root, "/sys/fs/cgroup/cpu,cpuacct/other/job/cpu.cfs_quota_us", "-1\n");
    fixture_put(root, "/sys/fs/cgroup/cpu,cpuacct/other/job/cpu.cfs_period_us", "100000\n");
    fixture_put(root, "/sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_quota_us", "300000\n");
    fixture_put(root, "/sys/fs/cgroup/cpu,cpuacct/other/cpu.cfs_period_us", "100000\n");
    fixture_put(root, "/sys/fs/cgroup/cpuset/cpu.cfs_quota_us", "1\n"); /* of another controller's hierarchy */
    fixture_put(root, "/sys/fs/cgroup/cpuset/cpu.cfs_period_us", "1\n");
    check_limits(root, 300 * mega, 200 * mega, 3);
}

/* Memory in version 1, CPU cores in version 2. */
static void both_versions(void)
{
    char root[512];
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/cgroup", "4:memory:/a\n0::/b\n");
    fixture_put(root, "/proc/self/mountinfo",
                "34 25 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
                "41 25 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    fixture_put(root, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "104857600\n");
    fixture_put(root, "/sys/fs/cgroup/unified/b/cpu.max", "100000 100000\n");
    check_limits(root, 100 * mega, 100 * mega, 1);
}

/* A container sees its own group at the mount, whatever the host calls it. */
static void containers(void)
{
    char root[512];
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/cgroup", "4:memory:/docker/0123\n3:cpu:/docker/0123/inner\n");
    fixture_put(root, "/proc/self/mountinfo",
                "34 25 0:29 /docker/0123 /sys/fs/cgroup/memory ro master:9 - cgroup cgroup rw,memory\n"
                "35 25 0:30 /docker/0123 /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n");
    fixture_put(root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "104857600\n");
    fixture_put(root, "/sys/fs/cgroup/cpu/inner/cpu.cfs_quota_us", "50000\n");
    fixture_put(root, "/sys/fs/cgroup/cpu/inner/cpu.cfs_period_us", "100000\n");
    check_limits(root, 100 * mega, 100 * mega, 1);
    /* the host's name, which is not below the mounted folder; a group outside the namespace */
    fixture_put(root, "/proc/self/cgroup", "4:memory:/docker/01234\n3:cpu:/../../x\n");
    fixture_put(root, "/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n");
    fixture_put(root, "/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    check_limits(root, 100 * mega, 100 * mega, 2);
    /* a blank in the mount's path */
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/cgroup", "0::/\n");
    fixture_put(root, "/proc/self/mountinfo", "1 2 0:3 / /sys/a\\040group rw - cgroup2 none rw\n");
    fixture_put(root, "/sys/a group/memory.max", "104857600");
    check_limits(root, 100 * mega, 100 * mega, none);
}

/* Nonsensical content sets no limit, and causes no failure. */
static void lies(void)
{
    static const char *const senseless[] = {"",     "\n", "-1\n", "0\n", "maximum\n", "99999999999999999999999999\n",
                                            "x12\n"};
    char root[512];
    for (size_t i = 0; i < sizeof senseless / sizeof senseless[0]; i++) {
        fixture_begin(root, sizeof root);
        fixture_put(root, "/proc/self/cgroup", "0::/a\n");
        fixture_put(root, "/proc/self/mountinfo", unified_mount);
        fixture_put(root, "/sys/fs/cgroup/a/memory.max", senseless[i]);
        fixture_put(root, "/sys/fs/cgroup/a/cpu.max", senseless[i]);
        fixture_put(root, "/sys/fs/cgroup/memory.max", "1048576\n");
        fixture_put(root, "/sys/fs/cgroup/memory.current", senseless[i]);
        fixture_put(root, "/sys/fs/cgroup/memory.stat", senseless[i]);
        check_limits(root, mega, mega, none);
    }
    fixture_put(root, "/sys/fs/cgroup/cpu.max", "100000 0\n");
    fixture_put(root, "/sys/fs/cgroup/memory.current", "9223372036854775807\n");
    check_limits(root, mega, 0, none);
    fixture_put(root, "/sys/fs/cgroup/memory.stat",
                "active_file 9223372036854775807\ninactive_file 9223372036854775807\n");
    check_limits(root, mega, mega, none);
    fixture_put(root, "/sys/fs/cgroup/cpu.max", "9223372036854775807 1\n");
    check_limits(root, mega, mega, none);
    fixture_put(root, "/sys/fs/cgroup/cpu.max", "100000\n");
    check_limits(root, mega, mega, none);

    static const char *const tables[] = {"",
                                         ":",
                                         "::",
                                         "0:",
                                         "0::",
                                         "0::relative\n",
                                         "\n\n:::::\n",
                                         "- - - - -\n",
                                         " - cgroup2",
                                         "1 2 3 / - cgroup2 x y\n",
                                         "1 2 3 / /m - cgroup2\n"};
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        for (size_t j = 0; j < sizeof tables / sizeof tables[0]; j++) {
            fixture_begin(root, sizeof root);
            fixture_put(root, "/proc/self/cgroup", tables[i]);
            fixture_put(root, "/proc/self/mountinfo", tables[j]);
            check_limits(root, none, none, none);
        }
}

/* Lines and paths that are too long are skipped; those after them count. */
static void long_lines(void)
{
    enum { LONG = 20000 };
    char root[512], *text = malloc(LONG + 400), *deep = malloc(LONG);
    memset(text, 'x', LONG);
    snprintf(text + LONG, 400, "\n%s", unified_mount);
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/self/mountinfo", text);
    memcpy(deep, "0::", 3);
    for (int i = 3; i < 4090; i += 2) memcpy(deep + i, "/d", 3);
    fixture_put(root, "/proc/self/cgroup", deep);
    fixture_put(root, "/sys/fs/cgroup/memory.max", "1048576\n");
    check_limits(root, mega, mega, none);
    for (int i = 3; i < 6000; i += 2) memcpy(deep + i, "/d", 3);
    fixture_put(root, "/proc/self/cgroup", deep);
    check_limits(root, none, none, none);
    free(text);
    free(deep);
}

int main(void)
{
    RUN(version_2_nested);
    RUN(version_1);
    RUN(both_versions);
    RUN(containers);
    RUN(lies);
    RUN(long_lines);
    return test_summary();
}
