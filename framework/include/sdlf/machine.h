/* SPDX-License-Identifier: MIT */
/* The resources that this process may use; in a container, under a batch system or after ulimit these are less than the
 * machine has.
 *
 * Threads: all functions may be called from any thread.
 * Ownership: nothing is allocated; strings belong to the library.
 * Errors: a limit that the system does not report is treated as absent. */
#ifndef SDLF_MACHINE_H
#define SDLF_MACHINE_H

#include <stdint.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The tightest of the limits that the system reports: the machine's memory and how much of it is free, the limits of
 * the process's control groups (cgroups, versions 1 and 2) and their current use, and the process's limits of address
 * space and data (ulimit -v, -d). The environment variable SDLF_MEMORY, in bytes or as a whole number with K, M, G or
 * T, overrides them all. */
typedef struct sdlf_machine {
    int64_t memory;           /* bytes that this process may use in total; INT64_MAX: no limit is known */
    const char *memory_by;    /* its source: "the machine's memory", "the memory limit of its control group" */
    int64_t available;        /* bytes that it can still allocate now */
    const char *available_by; /* its source */
    int64_t held;             /* bytes that it uses now */
    int processors; /* CPU cores that it may use: its affinity and the quota of its cgroups, rounded up; at least 1 */
    void *reserved[4]; /* zero; reserved for new members */
} sdlf_machine;

/* Query the limits anew, which takes a fraction of a millisecond. A limit that cannot be read is ignored. Errors:
 * SDLF_ERROR_ARGUMENT if SDLF_MEMORY is not a size. */
sdlf_status sdlf_machine_look(sdlf_machine *machine);

/* Returns SDLF_ERROR_MEMORY unless `bytes` more can be allocated now. The message says "WHAT: 4.3 GB of memory are
 * needed", how much there is, and what limits it. Call it before large allocations: a system that overcommits memory
 * kills the process later, without a message. */
sdlf_status sdlf_machine_check(int64_t bytes, const char *what);

/* The same for memory used while reading a file of `stored` bytes (such as JSON parsed from text), in addition to the
 * data stored in it. The limit is 128 MB plus 32 times the file's size, but at most half of the available memory. The
 * environment variable SDLF_READ_MEMORY, a size like SDLF_MEMORY, replaces both. All readers of this library observe
 * it. Errors: SDLF_ERROR_MEMORY ("WHAT becomes 4.3 GB: more than the 129.0 MB ..."); SDLF_ERROR_ARGUMENT if either
 * variable is not a size. */
sdlf_status sdlf_machine_check_reading(int64_t bytes, int64_t stored, const char *what);

/* Returns only sdlf_machine.processors. */
int sdlf_machine_processors(void);

#ifdef __cplusplus
}
#endif
#endif
