/* SPDX-License-Identifier: MIT */
/* The limits that control groups (cgroups) set for this process: version 1, where each controller has its own
 * hierarchy, version 2, where there is a single one, or both at once, as on many systems.
 *
 * A process is in one group of each hierarchy (listed in /proc/self/cgroup), and the limits of that group and of all
 * its ancestors apply. A container sees a part of a hierarchy: /proc/self/mountinfo lists which group is mounted where.
 * Limits of groups above that part are not visible. */
#ifndef SDLF_FRAMEWORK_MACHINE_CGROUP_H
#define SDLF_FRAMEWORK_MACHINE_CGROUP_H

#include <stdint.h>

typedef struct cgroup_limits {
    int64_t memory; /* the smallest limit, bytes; INT64_MAX: none */
    /* The smallest difference of a group's limit and its memory in use, where cached files do not count as used. */
    int64_t available;
    int64_t processors; /* the smallest quota, rounded up to whole CPU cores; INT64_MAX: none */
} cgroup_limits;

/* `root` is prepended to every path: "" except in tests. Missing or invalid files set no limit. */
cgroup_limits cgroup_read(const char *root);

#endif
