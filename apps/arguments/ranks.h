/* SPDX-License-Identifier: MIT */
/* Several ranks: --devices makes them, as threads of this process, and --communicator joins those that mpirun has
 * started. The options that train, eval and bench scaling share. */
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
extern const argument device_list_arguments[]; /* only --devices, for what needs no communicator */

/* Read a list like 0,1, of devices that this calculator has; of more than one GPU it is listed once. Errors:
 * SDLF_ERROR_ARGUMENT, and those of opening the calculator where this build or machine has none of that name. */
sdlf_status ranks_read_devices(rank_settings *settings, const char *calculator);

/* Read --devices, and find what contradicts it. One device is chosen->device, and makes no ranks. */
sdlf_status ranks_check(rank_settings *settings, const arguments *given, const char *calculator,
                        machine_choice *chosen);

/* Run `work` once; or, where there are several devices, on a thread for each, with a copy of the `size` bytes at
 * `session`, whose rank_settings lie at `offset`. Rank 0 has the session itself, on this thread. Returns what rank 0's
 * work does. */
int ranks_run(void *session, size_t size, size_t offset, int (*work)(void *session));

/* Is this a thread beside the one that the program began with, to which signals and the terminal belong? */
bool ranks_is_second(const rank_settings *settings);

/* The communicator of this rank; NULL where there is one rank. `calculator` is what a GPU would be of. */
sdlf_status ranks_open(const rank_settings *settings, sdlf_communicator **ranks, const char *calculator);

/* What a rank computes on: of --devices its own, else, unless --device was given, one of the host's in turn; and, of
 * threads that share the host's processors, its part of them, unless --threads was given. */
void ranks_take_place(const rank_settings *settings, const sdlf_communicator *ranks, const arguments *given,
                      const char *calculator, machine_choice *choice);

/* This device's part of the host's processors, 1 at least. */
int64_t ranks_processors_part(const rank_settings *settings);

/* Threads that decode pictures: as many as were asked for, or, 0, of threads their part of one for each processor. */
int64_t ranks_workers(const rank_settings *settings, int64_t asked);

/* "2 of nccl, devices 0,1 of HOST", behind a label. */
void ranks_print(const rank_settings *settings, const sdlf_communicator *ranks, const terminal *out);

#endif
