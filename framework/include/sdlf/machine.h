/* SPDX-License-Identifier: MIT */
/* What this process may use of the machine: in a container, under a batch system or after ulimit that is less than the
 * machine has.
 *
 * Threads: all functions may be called from any thread.
 * Ownership: nothing is allocated; texts are the library's.
 * Errors: what the system does not tell counts as no limit. */
#ifndef SDLF_MACHINE_H
#define SDLF_MACHINE_H

#include <stdint.h>

#include <sdlf/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The smallest of what the system says: the machine's memory and what others leave of it, the limits of the process's
 * control groups (cgroups, versions 1 and 2) with what is in use there, and its limits of address space and data
 * (ulimit -v, -d). SDLF_MEMORY in the environment, bytes or a whole number with K, M, G or T, takes the place of all of
 * these. */
typedef struct sdlf_machine {
    int64_t memory;           /* bytes that this process can have at most; INT64_MAX: nobody says */
    const char *memory_by;    /* what sets that: "the machine's memory", "the memory limit of its control group" */
    int64_t available;        /* bytes that it can still take now */
    const char *available_by; /* what sets that */
    int64_t held;             /* bytes that it has now */
    int processors; /* that it may run on: its affinity and the quota of its control groups, rounded up; 1 at least */
    void *reserved[4]; /* zero: room for members to come */
} sdlf_machine;

/* Looks again with every call, which takes a fraction of a millisecond. What cannot be read sets no limit. Errors:
 * SDLF_ERROR_ARGUMENT where SDLF_MEMORY is no size. */
sdlf_status sdlf_machine_look(sdlf_machine *machine);

/* SDLF_ERROR_MEMORY unless `bytes` more can be had now; the message says "WHAT: 4.3 GB of memory are needed", how much
 * there is, and what limits it. To ask before memory is taken: a system that hands out more than it has ends the
 * process later, without a word. */
sdlf_status sdlf_machine_check(int64_t bytes, const char *what);

/* The same for what is made of a file of `stored` bytes while it is read, such as JSON out of text, beside what the file
 * stores as such. It may be 128 MB and 32 times the file, and half of what can be had now at most; SDLF_READ_MEMORY in
 * the environment, a size as SDLF_MEMORY, takes the place of both. All readers of this library keep to that.
 * SDLF_ERROR_MEMORY: "WHAT becomes 4.3 GB: more than the 129.0 MB ..."; SDLF_ERROR_ARGUMENT where one of the two
 * variables is no size. */
sdlf_status sdlf_machine_check_reading(int64_t bytes, int64_t stored, const char *what);

/* Only sdlf_machine.processors. */
int sdlf_machine_processors(void);

#ifdef __cplusplus
}
#endif
#endif
