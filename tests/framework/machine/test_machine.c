/* SPDX-License-Identifier: MIT */
/* The resources that a process may use: the smallest of the system's limits, or SDLF_MEMORY. */
#include <sched.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "framework/machine/fixture.h"
#include "framework/machine/machine.h"
#include "framework/machine/size.h"

static const int64_t mega = 1 << 20;

static sdlf_machine look(const char *root)
{
    sdlf_machine machine;
    CHECK_OK(machine_look(&machine, root, NULL));
    return machine;
}

static void the_smallest_limit_counts(void)
{
    char root[512];
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/meminfo",
                "MemTotal:        2048000 kB\nMemFree:  1 kB\nMemAvailable:    1024000 kB\nSwapFree: 512000 kB\n");
    sdlf_machine machine = look(root);
    CHECK_EQUAL(machine.memory, 2000 * mega);
    CHECK_EQUAL(machine.available, 1500 * mega);
    CHECK_TEXT(machine.memory_by, "the machine's memory");
    /* more swap than memory does not add memory */
    fixture_put(root, "/proc/meminfo",
                "MemTotal: 2048000 kB\nMemAvailable: 1024000 kB\nSwapFree: 9223372036854775807 kB\n");
    CHECK_EQUAL(look(root).available, 2000 * mega);
    fixture_put(root, "/proc/meminfo", "MemTotal: 2048000 kB\n");
    CHECK_EQUAL(look(root).available, 2000 * mega);

    fixture_put(root, "/proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n"
                "Max data size             unlimited            unlimited            bytes     \n"
                "Max address space         1048576000           unlimited            bytes     \n");
    fixture_put(root, "/proc/self/statm", "25600 512 300 10 0 2560 0\n");
    machine = look(root);
    int64_t page = 4096;
    CHECK_EQUAL(machine.memory, 1000 * mega);
    CHECK_EQUAL(machine.available, 1000 * mega - 25600 * page);
    CHECK_EQUAL(machine.held, 512 * page);
    CHECK_TEXT(machine.available_by, "its limit of address space, ulimit -v");
    fixture_put(root, "/proc/self/limits", "Max data size   20971520   unlimited   bytes\n");
    machine = look(root);
    CHECK_EQUAL(machine.memory, 20 * mega);
    CHECK_EQUAL(machine.available, 20 * mega - 2560 * page);

    fixture_put(root, "/proc/self/cgroup", "0::/\n");
    fixture_put(root, "/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    fixture_put(root, "/sys/fs/cgroup/memory.max", "10485760\n");
    fixture_put(root, "/sys/fs/cgroup/memory.current", "10485761\n");
    fixture_put(root, "/sys/fs/cgroup/cpu.max", "10000 100000\n");
    machine = look(root);
    CHECK_EQUAL(machine.memory, 10 * mega);
    CHECK_EQUAL(machine.available, 0);
    CHECK_EQUAL(machine.processors, 1);
    CHECK_TEXT(machine.available_by, "the memory limit of its control group");
}

static void what_is_asked_for_counts_alone(void)
{
    char root[512];
    sdlf_machine machine;
    fixture_begin(root, sizeof root);
    fixture_put(root, "/proc/meminfo", "MemTotal: 1024 kB\n");
    fixture_put(root, "/proc/self/statm", "100 10 1 1 0 1 0\n");
    CHECK_OK(machine_look(&machine, root, "512M"));
    CHECK_EQUAL(machine.memory, 512 * mega);
    CHECK_EQUAL(machine.available, 512 * mega - 40960);
    CHECK_TEXT(machine.memory_by, "SDLF_MEMORY");
    CHECK_OK(machine_look(&machine, root, "4096"));
    CHECK_EQUAL(machine.available, 0);
    static const char *const wrong[] = {"", "0", "M", "-1", "4X", "4GB", "1.5G", "99999999999999999999", "9999999T"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        CHECK_FAILS(machine_look(&machine, root, wrong[i]), SDLF_ERROR_ARGUMENT, "SDLF_MEMORY is '");
}

static void this_machine(void)
{
    sdlf_machine machine;
    cpu_set_t usable;
    CHECK_OK(sdlf_machine_look(&machine));
    CHECK(machine.available >= 0 && machine.available <= machine.memory);
    CHECK(machine.held > 0 && machine.held < INT64_C(1) << 40);
    CHECK(machine.processors >= 1 && sdlf_machine_processors() == machine.processors);
    CHECK(sched_getaffinity(0, sizeof usable, &usable) == 0);
    CHECK(machine.processors <= CPU_COUNT(&usable));
    int first = 0;
    while (!CPU_ISSET(first, &usable)) first++;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK_EQUAL(sdlf_machine_processors(), 1);
    CHECK(sched_setaffinity(0, sizeof usable, &usable) == 0);
}

static void too_much_is_refused(void)
{
    CHECK_OK(sdlf_machine_check(1, "a byte"));
    CHECK(setenv("SDLF_MEMORY", "1G", 1) == 0);
    CHECK_OK(sdlf_machine_check(100 * mega, "some"));
    CHECK_FAILS(sdlf_machine_check(1 << 30, "the pictures"), SDLF_ERROR_MEMORY,
                "the pictures: 1.1 GB of memory are needed, and ");
    CHECK_FAILS(sdlf_machine_check(INT64_MAX, NULL), SDLF_ERROR_MEMORY, "(SDLF_MEMORY)");
    CHECK(setenv("SDLF_MEMORY", "lots", 1) == 0);
    CHECK_FAILS(sdlf_machine_check(1, NULL), SDLF_ERROR_ARGUMENT, "'lots'");
    CHECK(unsetenv("SDLF_MEMORY") == 0);
}

/* A real limit of the process. Some builds cannot limit their address space. */
static void a_real_limit(void)
{
    struct rlimit before, less;
    if (!TEST_LIMITS_MEMORY) {
        test_skip("the address space cannot be limited");
        return;
    }
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    less = before;
    less.rlim_cur = 700 << 20;
    CHECK(setrlimit(RLIMIT_AS, &less) == 0);
    sdlf_machine machine;
    CHECK_OK(sdlf_machine_look(&machine));
    CHECK(machine.memory <= 700 << 20 && machine.available < machine.memory);
    CHECK_FAILS(sdlf_machine_check(700 << 20, "it"), SDLF_ERROR_MEMORY, "it: 734.0 MB of memory are needed, and ");
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

static void sizes_are_shown(void)
{
    CHECK_TEXT(size_show(0).text, "0 bytes");
    CHECK_TEXT(size_show(999).text, "999 bytes");
    CHECK_TEXT(size_show(1000).text, "1.0 kB");
    CHECK_TEXT(size_show(999960).text, "1.0 MB");
    CHECK_TEXT(size_show(300000000).text, "300.0 MB");
    CHECK_TEXT(size_show(INT64_MAX).text, "9.2 EB");
}

int main(void)
{
    RUN(the_smallest_limit_counts);
    RUN(what_is_asked_for_counts_alone);
    RUN(this_machine);
    RUN(too_much_is_refused);
    RUN(a_real_limit);
    RUN(sizes_are_shown);
    return test_summary();
}
