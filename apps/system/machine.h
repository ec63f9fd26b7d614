/* SPDX-License-Identifier: MIT */
/* The calculators that a command works with: each opened once, by name; and the memory of this machine. */
#ifndef SDLF_APPS_SYSTEM_MACHINE_H
#define SDLF_APPS_SYSTEM_MACHINE_H

#include <sdlf/calculator.h>
#include <sdlf/plan.h>

#include "apps/arguments/arguments.h"

enum { MACHINE_MAX = 16 };

/* What the calculators are opened with; set it first. */
typedef struct machine_choice {
    int64_t threads; /* 0: all */
    int64_t device;
    int math; /* an sdlf_math */
} machine_choice;

/* --device and --math. */
extern const argument machine_arguments[];

typedef struct machine {
    machine_choice choice;
    sdlf_calculator *calculator[MACHINE_MAX];
    int count;
} machine;

/* The calculator of that name. */
sdlf_status machine_open(machine *machine, const char *name, sdlf_calculator **calculator);
/* The one calculator of a command, with this choice, which it must have. */
sdlf_status machine_open_one(machine *machine, const machine_choice *choice, const char *name,
                             sdlf_calculator **calculator);
void machine_close(machine *machine);

/* Once all are open: SDLF_ERROR_ARGUMENT if a device or a math mode was chosen and no calculator has that choice. */
sdlf_status machine_check_choice(const machine *machine);

/* Which of its devices a process takes that is the local_rank-th of several on this machine; 0: it has no choice. */
int64_t machine_device_of(const char *calculator, int local_rank);

/* Has this calculator devices to choose from? */
bool machine_has_devices(const char *calculator);

/* How many there are; of one without a choice, 1. None: the error of opening it. */
sdlf_status machine_count_devices(const char *calculator, int *count);

/* Names of the calculators in this build; NULL past the end. */
const char *machine_calculator_name(int index);

/* SDLF_ERROR_MEMORY if `bytes` are more than this process can have, with what it has already, before the machine is
 * brought to its knees; the message says that `what`, such as "a smaller --batch", needs less. What a device's memory
 * holds is left to the device to refuse. */
sdlf_status machine_check_memory(const machine *machine, int64_t bytes, const char *what);

/* The same for training `model` with this batch on a calculator of the host, before any plan is made. */
sdlf_status machine_check_training(sdlf_calculator *host, sdlf_model *model, int64_t batch);

#endif
