/* SPDX-License-Identifier: MIT */
/* Several ranks: --devices starts them as threads of this process, and --communicator joins those that mpirun started.
 * These are the options that train, eval and bench scaling share. */
#ifndef SDLF_APPS_ARGUMENTS_RANKS_H
#define SDLF_APPS_ARGUMENTS_RANKS_H

#include <stddef.h>

#include <sdlf/communicator.h>

#include "apps/arguments/arguments.h"
#include "apps/output/terminal.h"
#include "apps/system/machine.h"

enum { RANKS_MOST_DEVICES = 64 };

typedef struct rank_settings {
    const char *devices, *communicator; /* NULL: not given */
    double timeout;
    /* filled by ranks_check and ranks_run: */
    int64_t device[RANKS_MOST_DEVICES];
    int device_count; /* 0: --devices was not given */
    sdlf_rank_group *group;
    int rank; /* of this thread */
} rank_settings;

extern const argument rank_arguments[];
extern const argument device_list_arguments[]; /* only --devices, for commands without a communicator */

/* Read a list of this calculator's devices, such as 0,1; with more than one entry, each GPU may be listed once. Errors:
 * SDLF_ERROR_ARGUMENT, and those of opening the calculator if this build or machine has none of that name. */
sdlf_status ranks_read_devices(rank_settings *settings, const char *calculator);

/* Read --devices and check it against the other options. A single device becomes chosen->device and starts no ranks. */
sdlf_status ranks_check(rank_settings *settings, const arguments *given, const char *calculator,
                        machine_choice *chosen);

/* Run `work` once, or, for several devices, on one thread each with its own copy of the `size` bytes at `session`,
 * whose rank_settings are at `offset`. Rank 0 uses the session itself, on this thread. Returns the result of rank 0's
 * `work`. */
int ranks_run(void *session, size_t size, size_t offset, int (*work)(void *session));

/* True on any thread other than the program's main one, which owns signals and the terminal. */
bool ranks_is_second(const rank_settings *settings);

/* Open the communicator of this rank; NULL if there is only one. `calculator` is the one whose GPUs would be used. */
sdlf_status ranks_open(const rank_settings *settings, sdlf_communicator **ranks, const char *calculator);

/* Choose what a rank computes on: its own entry of --devices, else, unless --device was given, the host's devices in
 * turn; and, for ranks that share the host's CPU cores, its part of them, unless --threads was given. */
void ranks_take_place(const rank_settings *settings, const sdlf_communicator *ranks, const arguments *given,
                      const char *calculator, machine_choice *choice);

/* This device's share of the host's CPU cores, at least 1. */
int64_t ranks_processors_part(const rank_settings *settings);

/* The number of threads that decode images: `asked`, or, for 0, one for each CPU core, divided among the ranks. */
int64_t ranks_workers(const rank_settings *settings, int64_t asked);

/* Print "2 of nccl, devices 0,1 of HOST" after a label. */
void ranks_print(const rank_settings *settings, const sdlf_communicator *ranks, const terminal *out);

#endif
