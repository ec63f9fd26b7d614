/* SPDX-License-Identifier: MIT */
/* Memory and CPU cores that this process may use. See sdlf/machine.h. */
#include "framework/machine/machine.h"

#include <stdlib.h>
#include <unistd.h>

#include "framework/machine/cgroup.h"
#include "framework/machine/lines.h"
#include "framework/machine/size.h"
#include "framework/portable.h"
#include "framework/require.h"

/* ---- memory ---- */

static int64_t pages(int64_t count)
{
    long size = sysconf(_SC_PAGESIZE);
    return size > 0 && count <= INT64_MAX / size ? count * size : INT64_MAX;
}

/* Applies one limit: at most `most` bytes, of which `left` are free. */
static void limit(sdlf_machine *machine, int64_t most, int64_t left, const char *by)
{
    if (left > most) left = most;
    if (most < machine->memory) {
        machine->memory = most;
        machine->memory_by = by;
    }
    if (left < machine->available) {
        machine->available = left;
        machine->available_by = by;
    }
}

/* Memory that other processes use and that could be swapped out counts as available, up to the machine's memory. */
static void limit_by_machine(sdlf_machine *machine, const char *root)
{
    static const char path[] = "/proc/meminfo";
    int64_t all, left, swap;
    if (number_behind(root, path, "MemTotal:", &all) && all > 0 && all <= INT64_MAX / 1024) {
        if (!number_behind(root, path, "MemAvailable:", &left) || left > all) left = all;
        if (number_behind(root, path, "SwapFree:", &swap)) left = swap > all - left ? all : left + swap;
        limit(machine, all * 1024, left * 1024, "the machine's memory");
        return;
    }
    all = sysconf(_SC_PHYS_PAGES);
    if (all > 0) limit(machine, pages(all), pages(all), "the machine's memory");
}

/* Pages of this process, as /proc/self/statm counts them. */
typedef struct statm {
    int64_t size, resident, shared, text, lib, data;
} statm;

static statm read_statm(const char *root)
{
    statm found = {0};
    int64_t *number[] = {&found.size, &found.resident, &found.shared, &found.text, &found.lib, &found.data};
    line_reader reader;
    if (!lines_open(&reader, root, "/proc/self/statm")) return found;
    const char *at = lines_next(&reader);
    for (size_t i = 0; at != NULL && i < sizeof number / sizeof number[0]; i++)
        if (!number_at(at, number[i], &at)) break;
    lines_close(&reader);
    return found;
}

/* The soft limit: "Max address space  unlimited  unlimited  bytes". */
static void limit_by_ulimit(sdlf_machine *machine, const char *root, const char *name, int64_t used, const char *by)
{
    int64_t most;
    if (number_behind(root, "/proc/self/limits", name, &most)) limit(machine, most, most > used ? most - used : 0, by);
}

static sdlf_status read_memory(sdlf_machine *machine, const char *root, const char *asked, const cgroup_limits *group)
{
    statm used = read_statm(root);
    int64_t most;
    machine->held = pages(used.resident);
    if (asked != NULL) {
        if (!size_read(asked, &most))
            return sdlf_fail(SDLF_ERROR_ARGUMENT,
                             "SDLF_MEMORY is '%.40s': expected bytes, or a size such as 512M or 4G", asked);
        limit(machine, most, most > machine->held ? most - machine->held : 0, "SDLF_MEMORY");
        return SDLF_OK;
    }
    limit_by_machine(machine, root);
    limit(machine, group->memory, group->available, "the memory limit of its control group");
    limit_by_ulimit(machine, root, "Max address space ", pages(used.size), "its limit of address space, ulimit -v");
    limit_by_ulimit(machine, root, "Max data size ", pages(used.data), "its limit of data, ulimit -d");
    return SDLF_OK;
}

/* ---- processors ---- */

static int count_processors(int64_t quota)
{
    int64_t count = portable_processors();
    if (quota < count) count = quota;
    return count < 1 ? 1 : (int)count;
}

int sdlf_machine_processors(void)
{
    return count_processors(cgroup_read("").processors);
}

/* ---- both ---- */

sdlf_status machine_look(sdlf_machine *machine, const char *root, const char *asked)
{
    *machine =
        (sdlf_machine){.memory = INT64_MAX, .memory_by = "nothing", .available = INT64_MAX, .available_by = "nothing"};
    cgroup_limits group = cgroup_read(root);
    machine->processors = count_processors(group.processors);
    return read_memory(machine, root, asked, &group);
}

sdlf_status sdlf_machine_look(sdlf_machine *machine)
{
    SDLF_REQUIRE(machine);
    return machine_look(machine, "", getenv("SDLF_MEMORY"));
}

sdlf_status sdlf_machine_check(int64_t bytes, const char *what)
{
    sdlf_machine machine;
    sdlf_status status = sdlf_machine_look(&machine);
    if (status != SDLF_OK || bytes <= machine.available) return status;
    return sdlf_fail(SDLF_ERROR_MEMORY, "%s: %s of memory are needed, and %s are available (%s)",
                     what != NULL ? what : "memory", size_show(bytes).text, size_show(machine.available).text,
                     machine.available_by);
}
