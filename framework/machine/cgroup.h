/* SPDX-License-Identifier: MIT */
/* What control groups (cgroups) allow this process: version 1, where each controller has a hierarchy of its own,
 * version 2, where there is one, or both at once, as on many systems.
 *
 * A process is in one group of each hierarchy (/proc/self/cgroup says which), and the limits of that group and of all
 * above it hold. A container sees a part of a hierarchy: /proc/self/mountinfo says which group is mounted where. Limits
 * of groups above that part cannot be seen. */
#ifndef SDLF_FRAMEWORK_MACHINE_CGROUP_H
#define SDLF_FRAMEWORK_MACHINE_CGROUP_H

#include <stdint.h>

typedef struct cgroup_limits {
    int64_t memory; /* the smallest limit, bytes; INT64_MAX: none */
    /* The least that a group's limit leaves of what is in use there; files that are only cached do not count. */
    int64_t available;
    int64_t processors; /* the smallest quota, rounded up to whole processors; INT64_MAX: none */
} cgroup_limits;

/* `root` goes before every path: "" but in tests. What is not there, or makes no sense, sets no limit. */
cgroup_limits cgroup_read(const char *root);

#endif
